"""The stored form of contexts: what comes back, and what is refused when it is written."""

from __future__ import annotations

import datetime as dt
import json
import math
import sys
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from unit.durable.context_parts import Box, Customer, Line, Order, Point, Seed, Tree, order

from iocflow.context import ProcessContext
from iocflow.durable.contexts.codec import DEFAULT_LIMIT, ContextCodec
from iocflow.durable.errors import ContextTooLargeError, ContextValueError
from iocflow.errors import SeedError, UnsetError

BERLIN = dt.datetime(2024, 3, 30, 12, tzinfo=ZoneInfo("Europe/Berlin"))


class Slotted(ProcessContext):
    __slots__ = ("_hidden", "kept")
    seed_data: None
    kept: int
    loose: str


@dataclass
class Counted(ProcessContext):
    seed_data: None = None
    names: list[str] = field(default_factory=list)
    count: int = 0


@dataclass
class Raised:
    percent: int

    def __post_init__(self) -> None:
        self.percent += 1


@dataclass
class Special(Line):
    reason: str = ""


class Odd(ProcessContext):
    seed_data: None
    raised: Raised
    plain: str
    ints: list[int]
    number: int
    key: dict[int, str]


def back(context: ProcessContext) -> Any:
    """Return a new context of the same class that read what `context` wrote."""
    codec = ContextCodec(type(context))
    read = type(context)()
    codec.read(codec.write(context), read)
    return read


def refusal(context: ProcessContext) -> str:
    """Return why `context` cannot be written."""
    with pytest.raises(ContextValueError) as caught:
        ContextCodec(type(context)).write(context)
    return str(caught.value)


def test_context_comes_back() -> None:
    """Every kind of field is read as it was written; what was not set is not set."""
    written = order(
        seed_data=Seed("PO-17", (Line("a", Decimal("1.10")),)),
        lines=[Line("a", Decimal("1.10"), 2, ["x"])],
        total=Decimal("-0.00"),
        prices={"a\x00\U0001f600": Decimal("1E+50")},
        address={"street": "Kai"},
        point=Point(1.5, -0.0),
        customer=Customer(name="ACME", limit=Decimal("10.00"), since=dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        file=Path("/tmp/order"),
        at=dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-5, minutes=-30))),
        tree=Tree(1, [Tree(2), Tree(3, [Tree(4)])]),
        boxed=Box(1, [2**70]),
    )
    read = back(written)
    assert vars(read) == vars(written)
    assert str(read.total) == "-0.00"
    assert type(read.seed_data.lines) is tuple
    with pytest.raises(UnsetError):
        _ = read.when
    assert read.note == ""


def test_stop_is_stored_and_the_engines_marks_are_not() -> None:
    """A stop and its reason come back; what was asked, what was lent, and names with an underscore do not."""
    written = order(note="n", _mine=1)
    written.stop_process("no stock")
    written.next_activity = "pay"
    _ = written.step
    assert json.loads(ContextCodec(Order).write(written)) == {"note": "n", "stopped": True, "stop_reason": "no stock"}
    read = back(written)
    assert (read.stopped, read.stop_reason, read.next_activity) == (True, "no stock", None)


def test_slots_and_dataclasses() -> None:
    """Fields in slots, and those of a context that is a dataclass, come back."""
    written = Slotted()
    written.kept, written.loose, written._hidden = 1, "x", object()  # type: ignore[attr-defined]
    read = back(written)
    assert (read.kept, read.loose, hasattr(read, "_hidden")) == (1, "x", False)
    assert vars(back(Counted(names=["a"], count=3))) == {"seed_data": None, "names": ["a"], "count": 3}


def test_what_is_not_stored_stays_as_the_factory_made_it() -> None:
    """Reading leaves alone what the stored context lacks, as a field that the class did not have then."""
    made = Counted(names=["new"])
    ContextCodec(Counted).read(b'{"count":2}', made)
    assert (made.names, made.count) == (["new"], 2)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mystery": 1}, "Order.mystery is set and cannot be stored: annotate it on the class"),
        ({"lines": [Line("a", Decimal(1)), Line("b", "1.50")]}, "Order.lines[1].price: str '1.50' is not Decimal"),
        ({"lines": [Line("a", Decimal(1), notes=["ok", b"no"])]}, "Order.lines[0].notes[1]: bytes b'no' is not str"),
        ({"lines": [Special("a", Decimal(1), reason="old")]}, "Order.lines[0]: Special "),
        ({"lines": (Line("a", Decimal(1)),)}, "Order.lines: tuple "),
        ({"total": 0.1}, "Order.total: float 0.1 is not Decimal"),
        ({"total": Decimal("NaN")}, "Order.total: NaN equals nothing, not even itself; use None"),
        ({"total": Decimal("sNaN")}, "Order.total: sNaN equals nothing, not even itself; use None"),
        ({"share": math.nan}, "Order.share: nan has no form in JSON; use None"),
        ({"share": -math.inf}, "Order.share: -inf has no form in JSON; use None"),
        ({"share": "x"}, "Order.share: str 'x' is not float | None"),
        ({"share": True}, "Order.share: bool True is not float | None"),
        ({"share": 2**53 + 1}, "Order.share: it does not come back equal"),
        ({"note": "a\ud800"}, "Order.note: 'a\\ud800' has a lone surrogate, which is no text; keep it as bytes"),
        ({"note": Decimal(1)}, "Order.note: Decimal Decimal('1') is not str"),
        ({"prices": {"a": Decimal(1), "b": None}}, "Order.prices['b']: NoneType None is not Decimal"),
        ({"prices": {1: Decimal(1)}}, "Order.prices[1]: int 1 is not str"),
        ({"address": {"street": "s", "city": "c"}}, "Order.address: Address has no 'city'"),
        ({"address": {}}, "Order.address: Object missing required field `street`"),
        ({"address": {"street": None}}, "Order.address.street: NoneType None is not str"),
        ({"point": Point(1.0, math.nan)}, "Order.point.y: nan has no form in JSON; use None"),
        ({"file": "a"}, "Order.file: str 'a' is not Path"),
        ({"customer": {"name": "ACME"}}, "Order.customer: dict {'name': 'ACME'} is not Customer"),
        ({"boxed": Box("a")}, "Order.boxed.value: str 'a' is not int"),
        ({"tree": Tree(1, [Tree(2, [Tree("x")])])}, "Order.tree.branches[0].branches[0].value: str 'x' is not int"),
        ({"stop_reason": 5}, "Order.stop_reason: int 5 is not str"),
        ({"at": BERLIN}, "Order.at: the zone Europe/Berlin of 2024-03-30 12:00:00+01:00 would be lost"),
        ({"when": {"a": [None, BERLIN]}}, "Order.when['a'][1]: the zone Europe/Berlin of "),
        ({"opens": dt.time(9, tzinfo=ZoneInfo("Europe/Berlin"))}, "Order.opens: the zone Europe/Berlin of 09:00:00 "),
        ({"at": dt.datetime(2024, 1, 1, fold=1)}, "Order.at: `fold=1` of 2024-01-01 00:00:00 would be lost"),
        (
            {"at": dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(seconds=90)))},
            "Order.at: the zone UTC+00:01:",
        ),
    ],
)
def test_what_would_not_come_back_is_refused(fields: dict[str, Any], message: str) -> None:
    """A value that JSON or the annotation would change is refused; the message names the place and the type found."""
    assert refusal(order(**{"note": "fine"} | fields)).startswith(message)


def test_zones_with_one_offset_are_kept() -> None:
    """A zone that has one offset, as UTC by any name, loses nothing."""
    at = dt.datetime(2024, 1, 1, tzinfo=ZoneInfo("UTC"))
    assert back(order(at=at, when={"a": [None, at]})).at == at


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"raised": Raised(1)}, "Odd.raised: it does not come back equal; does `__post_init__` change what is read"),
        ({"number": 10**5000}, "Odd.number: Exceeds the limit (4300 digits) for integer string conversion"),
        ({"ints": [1, True]}, "Odd.ints[1]: bool True is not int"),
    ],
)
def test_odd_values_are_refused(fields: dict[str, Any], message: str) -> None:
    """A class that changes what it reads, a number that Python will not print, and a bool for an int are refused."""
    odd = Odd()
    vars(odd).update(fields)
    assert refusal(odd).startswith(message)


def test_deep_and_endless_values_are_refused() -> None:
    """What is nested beyond the recursion limit, or holds itself, is refused by name."""
    deep = Tree(0)
    for _ in range(sys.getrecursionlimit() * 30):
        deep = Tree(0, [deep])
    assert refusal(order(note="x", tree=deep)) == "Order.tree: it is nested too deeply, or holds itself"
    endless = Tree(0)
    endless.branches.append(endless)
    assert refusal(order(tree=endless)) == "Order.tree: it is nested too deeply, or holds itself"


def test_subclasses_of_text_and_numbers_come_back_plain() -> None:
    """Text and numbers of a class of their own, as lxml's text is, come back as what the field is annotated with."""

    class Text(str):
        __slots__ = ()

    class Number(int):
        pass

    odd = Odd()
    odd.plain, odd.ints, odd.key = Text("x"), [Number(3)], {4: "four"}
    read = back(odd)
    assert (read.plain, type(read.plain), read.ints, type(read.ints[0]), read.key) == ("x", str, [3], int, {4: "four"})


def test_large_contexts_are_refused() -> None:
    """A context over the limit is refused with its size, the limit and its biggest field."""
    large = order(note="x", prices={"a": Decimal(1)}, seed_data=Seed("n" * DEFAULT_LIMIT))
    with pytest.raises(ContextTooLargeError, match="its biggest field is seed_data with 16,777,2") as caught:
        ContextCodec(Order).write(large)
    assert (caught.value.field, caught.value.limit) == ("seed_data", DEFAULT_LIMIT)
    assert caught.value.size > DEFAULT_LIMIT
    with pytest.raises(ContextTooLargeError):
        ContextCodec(Order, limit=20).write_seed(Seed("n" * 20))


def test_seed_is_fitted_and_comes_back() -> None:
    """A seed is fitted to the annotation as inline runs fit it, and is read as that type; it is a context, too."""
    codec = ContextCodec(Order)
    stored = codec.write_seed({"number": "PO-1", "lines": [{"article": "a", "price": "1.10"}]})
    seed = codec.read_seed(stored)
    assert seed == Seed("PO-1", (Line("a", Decimal("1.10")),))
    context = Order()
    codec.read(stored, context)
    assert context.seed_data == seed


def test_bad_seeds_are_refused() -> None:
    """What does not fit the annotation, or would not come back, is refused with its place."""
    codec = ContextCodec(Order)
    with pytest.raises(SeedError, match=r"seed\.number is missing"):
        codec.write_seed({})
    with pytest.raises(ContextValueError, match=r"Order\.seed_data\.lines\[0\]\.price: str '1' is not Decimal"):
        codec.write_seed(Seed("PO-1", (Line("a", "1"),)))  # type: ignore[arg-type]
