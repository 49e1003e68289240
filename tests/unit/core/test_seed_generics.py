"""Seeds of generic types: their parameters are checked and fitted as what they stand for."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, Required, TypedDict, TypeVar

import pytest

from iocflow import ProcessContext, SeedError, SequenceProcessor
from iocflow.coercion import coerce

T = TypeVar("T")
U = TypeVar("U")


@dataclass
class Gen(Generic[T]):
    value: T


@dataclass
class Many(Generic[T, U]):
    list_of: list[T]
    pairs: dict[str, tuple[T, U]] = field(default_factory=dict)
    maybe: T | None = None
    listed: list[U] | None = None
    inner: Gen[T] | None = None
    marked: Annotated[U, "a mark"] | None = None


@dataclass
class Ints(Gen[int]):
    more: str = ""


@dataclass
class Turned(Many[U, T], Generic[T, U]):
    first: T | None = None


@dataclass
class Lists(Gen[list[T]]):
    pass


@dataclass
class Reused(Gen[int], Generic[T]):
    own: T


class Row(TypedDict, Generic[T]):
    key: Required[T]
    other: NotRequired[T]


class IntRow(Row[int]):
    more: str


class Point(NamedTuple, Generic[T]):
    x: T


@pytest.mark.parametrize(
    ("value", "wanted", "result"),
    [
        ({"value": "7"}, Gen[int], Gen(7)),
        ({"value": "30.28"}, Gen[Decimal], Gen(Decimal("30.28"))),
        ({"value": {"value": "7"}}, Gen[Gen[int]], Gen(Gen(7))),
        ({"value": ["7"]}, Gen[list[int]], Gen([7])),
        ({"value": None}, Gen[int | None], Gen(None)),
        ({"value": "a"}, Gen[Literal["a"]], Gen("a")),
        ([{"value": "7"}], list[Gen[int]], [Gen(7)]),
        (None, Gen[int] | None, None),
        ({"value": "7"}, Gen, Gen("7")),
        (
            {"list_of": ["1"], "pairs": {"a": ["1", "2.5"]}, "maybe": "3", "listed": ["1.5"], "inner": {"value": "4"}},
            Many[int, float],
            Many([1], {"a": (1, 2.5)}, 3, [1.5], Gen(4)),
        ),
        ({"list_of": [], "marked": "1"}, Many[str, int], Many([], marked=1)),
        ({"value": "7", "more": "x"}, Ints, Ints(7, "x")),
        ({"list_of": ["1"], "first": "2.5"}, Turned[float, int], Turned([1], first=2.5)),
        ({"value": ["7"]}, Lists[int], Lists([7])),
        ({"value": "7", "own": "2.5"}, Reused[float], Reused(7, 2.5)),
        ({"key": "7"}, Row[int], {"key": 7}),
        ({"key": "7", "other": "8"}, Row[int], {"key": 7, "other": 8}),
        ({"key": "7", "more": "x"}, IntRow, {"key": 7, "more": "x"}),
        (Point(1), Point[int], Point(1)),
        (Gen(7), Gen[int], Gen(7)),
    ],
)
def test_generic_seeds_are_fitted(value: Any, wanted: Any, result: Any) -> None:
    """Whatever stands for a parameter, in the class, in a base or deep inside, is what the value is fitted to."""
    assert coerce(value, wanted, "seed") == result


@pytest.mark.parametrize(
    ("value", "wanted", "told"),
    [
        ({"value": "x"}, Gen[int], "seed.value: 'x' is not int"),
        ({"value": {"value": "x"}}, Gen[Gen[int]], "seed.value.value: 'x' is not int"),
        ({"value": ["1", "x"]}, Gen[list[int]], "seed.value[1]: 'x' is not int"),
        ({}, Gen[int], "seed.value is missing"),
        ({"value": 1, "x": 2}, Gen[int], "seed.x is unknown (known: value)"),
        ({"list_of": ["x"]}, Many[int, str], "seed.list_of[0]: 'x' is not int"),
        ({"list_of": [], "pairs": {"a": [1, "x"]}}, Many[int, float], "seed.pairs.a[1]: 'x' is not float"),
        ({"list_of": [], "maybe": "x"}, Many[int, str], "seed.maybe: 'x' is not int"),
        ({"list_of": [], "inner": {"value": "x"}}, Many[int, str], "seed.inner.value: 'x' is not int"),
        ({"value": "x"}, Ints, "seed.value: 'x' is not int"),
        ({"list_of": ["x"]}, Turned[str, int], "seed.list_of[0]: 'x' is not int"),
        ({"value": ["x"]}, Lists[int], "seed.value[0]: 'x' is not int"),
        ({"value": "x", "own": 1}, Reused[int], "seed.value: 'x' is not int"),
        ({"key": "x"}, Row[int], "seed.key: 'x' is not int"),
        ({"key": 1, "other": "x"}, Row[int], "seed.other: 'x' is not int"),
        ({"key": "x", "more": ""}, IntRow, "seed.key: 'x' is not int"),
        ([1], Point[int], "seed: [1] is not Point"),
    ],
)
def test_what_does_not_fit_a_parameter_is_told(value: Any, wanted: Any, told: str) -> None:
    """It is a SeedError that begins with the field, as for other types."""
    with pytest.raises(SeedError) as raised:
        coerce(value, wanted, "seed")
    assert str(raised.value) == told


def test_a_generic_seed_of_a_run() -> None:
    """A context may annotate its seed so."""

    class Wanting(ProcessContext):
        seed_data: Gen[int]

    processor = SequenceProcessor([lambda context: None], context=Wanting)
    assert processor.do_activities({"value": "7"}).context.seed_data == Gen(7)
    assert isinstance(processor.launch({"value": "x"}).error, SeedError)
