"""Whatever a context's annotations allow comes back as it was, or is refused: for generated classes and values."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, Literal, Optional
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.durable.context_parts import Address, Box, Colour, Level, Line, OrderNumber, Point, Right, Seed, Tree

from iocflow.context import ProcessContext
from iocflow.durable.contexts.codec import ContextCodec
from iocflow.durable.errors import ContextValueError

OFFSETS = st.none() | st.integers(-1439, 1439).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
TEXT = st.text()  # without surrogates
FINITE = st.floats(allow_nan=False, allow_infinity=False)
DECIMALS = st.decimals(allow_nan=False)
LINES = st.builds(Line, TEXT, DECIMALS, st.integers(), st.lists(TEXT, max_size=3))

TREES = st.recursive(
    st.builds(Tree, st.integers()), lambda inner: st.builds(Tree, st.integers(), st.lists(inner)), max_leaves=5
)

Typed = tuple[Any, st.SearchStrategy[Any]]

# Each annotation, and what values of it there are.
PLAIN: list[Typed] = [
    (bool, st.booleans()),
    (int, st.integers() | st.integers(-(10**40), 10**40)),
    (float, FINITE),
    (str, TEXT),
    (bytes, st.binary()),
    (bytearray, st.binary().map(bytearray)),
    (Decimal, DECIMALS),
    (dt.datetime, st.datetimes(timezones=OFFSETS).map(lambda moment: moment.replace(fold=0))),
    (dt.date, st.dates()),
    (dt.time, st.times(timezones=OFFSETS).map(lambda moment: moment.replace(fold=0))),
    (dt.timedelta, st.timedeltas()),
    (UUID, st.uuids()),
    (PurePosixPath, TEXT.map(PurePosixPath)),
    (Colour, st.sampled_from(Colour)),
    (Level, st.sampled_from(Level)),
    (Right, st.sampled_from([Right(0), Right.READ, Right.WRITE, Right.READ | Right.WRITE])),
    (OrderNumber, TEXT),
    (Literal["a", 1, None], st.sampled_from(["a", 1, None])),
    (int | str | None, st.integers() | TEXT | st.none()),
    (float | int | Decimal, FINITE | st.integers() | DECIMALS),
    (None, st.none()),
]
KEYS = [PLAIN[i] for i in (1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 13, 14, 16)]
RECORDS: list[Typed] = [
    (Line, LINES),
    (Seed, st.builds(Seed, TEXT, st.lists(LINES, max_size=2).map(tuple))),
    (Point, st.builds(Point, FINITE, FINITE)),
    (Address, st.fixed_dictionaries({"street": TEXT}, optional={"zip": st.integers()})),
    (
        Tree,
        st.recursive(
            st.builds(Tree, st.integers()), lambda t: st.builds(Tree, st.integers(), st.lists(t)), max_leaves=5
        ),
    ),
]


def larger(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    """Return annotations of what holds `inner`."""
    few = 3
    return st.one_of(
        inner.map(lambda one: (list[one[0]], st.lists(one[1], max_size=few))),
        inner.map(lambda one: (tuple[one[0], ...], st.lists(one[1], max_size=few).map(tuple))),
        inner.map(lambda one: (Optional[one[0]], st.none() | one[1])),  # noqa: UP045 - `None | None` is no type
        inner.map(lambda one: (Box[one[0]], st.builds(Box, one[1], st.lists(one[1], max_size=few)))),
        st.tuples(inner, inner).map(lambda two: (tuple[two[0][0], two[1][0]], st.tuples(two[0][1], two[1][1]))),
        st.sampled_from(KEYS).map(lambda key: (set[key[0]], st.sets(key[1], max_size=few))),
        st.sampled_from(KEYS).map(lambda key: (frozenset[key[0]], st.frozensets(key[1], max_size=few))),
        st.tuples(st.sampled_from(KEYS), inner).map(
            lambda two: (dict[two[0][0], two[1][0]], st.dictionaries(two[0][1], two[1][1], max_size=few))
        ),
    )


TYPES = st.recursive(st.sampled_from(PLAIN + RECORDS), larger, max_leaves=6)


def context_of(fields: dict[str, Any]) -> ProcessContext:
    """Return a context of a new class that has these annotations."""
    made: ProcessContext = type("Drawn", (ProcessContext,), {"__annotations__": {"seed_data": None, **fields}})()
    return made


@st.composite
def contexts(draw: st.DrawFn) -> ProcessContext:
    """Draw a class with some fields, and a context of it with some of them set."""
    fields = {f"f{i}": typed for i, typed in enumerate(draw(st.lists(TYPES, max_size=4)))}
    context = context_of({name: annotation for name, (annotation, _) in fields.items()})
    for name, (_, values) in fields.items():
        if draw(st.booleans()):
            setattr(context, name, draw(values))
    return context


def printed(value: Any) -> str:
    """Return the text of a value, sets in order: -0.0 is not 0, 1.0 is not 1, a tuple is no list, and offsets count."""
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__} {sorted(map(printed, value))}"
    if isinstance(value, dict):
        return f"dict {[(printed(key), printed(item)) for key, item in value.items()]}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__} {[printed(item) for item in value]}"
    if isinstance(value, Box | Tree | Line | Seed):
        names = type(value).__dataclass_fields__
        return f"{type(value).__name__} {[printed(getattr(value, name)) for name in names]}"
    return f"{type(value).__name__} {value!r}".replace(
        "datetime.timezone.utc", "datetime.timezone(datetime.timedelta(0))"
    )


@settings(max_examples=200, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(contexts())
def test_generated_contexts_come_back(written: ProcessContext) -> None:
    """For classes and values of all supported types: what is written is JSON, and is read as it was."""
    codec = ContextCodec(type(written))
    data = codec.write(written)
    assert json.loads(data).keys() == vars(written).keys()
    read = type(written)()
    codec.read(data, read)
    assert vars(read) == vars(written)
    assert printed(vars(read)) == printed({name: vars(written)[name] for name in vars(read)})


@settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(TYPES, TYPES, st.data())
def test_values_of_another_type_never_change(declared: Typed, other: Typed, data: st.DataObject) -> None:
    """A value that the annotation does not allow is refused by name, or is read as an equal one."""
    context = context_of({"f": declared[0]})
    context.f = data.draw(other[1])  # type: ignore[attr-defined]
    codec, read = ContextCodec(type(context)), type(context)()
    refusal, stored = "", b""
    try:
        stored = codec.write(context)
    except ContextValueError as error:
        refusal = str(error)
    if refusal:
        assert refusal.startswith("Drawn.f")
    else:
        codec.read(stored, read)
        assert vars(read) == vars(context)
