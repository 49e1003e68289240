"""Seed data is checked against the annotation of `seed_data`, and fitted to it."""

from __future__ import annotations

import collections
import datetime
import enum
import pathlib
import typing
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NewType, TypedDict, TypeVar

import pydantic
import pytest

from iocflow import CONTINUE, FAIL, STOP, ProcessContext, Retry, SeedError, SequenceProcessor
from iocflow.coercion import coerce

T = TypeVar("T")
Code = NewType("Code", str)


class Cabin(enum.Enum):
    ECONOMY = "Y"
    FIRST = "F"


class Stars(enum.IntEnum):
    ONE = 1
    TWO = 2


class Odd(enum.Enum):
    LISTED = ["unhashable"]  # noqa: RUF012 - the odd case that is meant


class Range(TypedDict):
    low: int
    high: typing.NotRequired[int]


class Loose(TypedDict, total=False):
    low: typing.Required[int]
    high: int


@dataclass
class Leg:
    origin: str
    departs: datetime.date | None = None


@dataclass(frozen=True, slots=True)
class Fare:
    route: int
    drop: Decimal
    cabin: Cabin = Cabin.ECONOMY
    legs: list[Leg] = field(default_factory=list)
    tags: tuple[str, ...] = ()


@dataclass
class Positive:
    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError("n must not be negative")


@dataclass
class Pair(Generic[T]):
    left: T


@dataclass
class Unresolved:
    what: Missing  # type: ignore[name-defined]  # noqa: F821 - what the test is about


class Model(pydantic.BaseModel):
    rate: Decimal = pydantic.Field(gt=0)


class Shape:
    """What a third party offers with pydantic's method, but without pydantic."""

    def __init__(self, sides: int) -> None:
        self.sides = sides

    @classmethod
    def model_validate(cls, value: Any) -> Shape:
        if value["sides"] < 3:
            raise ValueError("a shape has three sides\nor more")
        return cls(value["sides"])


@pytest.mark.parametrize(
    ("value", "wanted", "result"),
    [
        ("12", int, 12),
        (12, int, 12),
        ("1.5", float, 1.5),
        (1, float, 1.0),
        ("30.28", Decimal, Decimal("30.28")),
        (30.28, Decimal, Decimal("30.28")),
        (30, Decimal, Decimal(30)),
        ("2005-04-11", datetime.date, datetime.date(2005, 4, 11)),
        ("2005-04-11T08:00:00+02:00", datetime.datetime, datetime.datetime.fromisoformat("2005-04-11T06:00:00+00:00")),
        ("08:15", datetime.time, datetime.time(8, 15)),
        ("F", Cabin, Cabin.FIRST),
        ("FIRST", Cabin, Cabin.FIRST),
        (2, Stars, Stars.TWO),
        ("TWO", Stars, Stars.TWO),
        (["unhashable"], Odd, Odd.LISTED),
        ("var/x", pathlib.Path, pathlib.Path("var/x")),
        ("12345678123456781234567812345678", uuid.UUID, uuid.UUID("12345678123456781234567812345678")),
        ("x", Code, "x"),
        ("3", Annotated[int, "more than 2"], 3),
        ("a", Literal["a", "b"], "a"),
        (None, None, None),
        (None, int | None, None),
        ("5", int | None, 5),
        ("5", int | str, "5"),
        (5, Decimal | str, Decimal(5)),
        (["1", 2], list[int], [1, 2]),
        (("1", 2), list[int], [1, 2]),
        (["1", "x"], tuple[int, str], (1, "x")),
        (["1", "2"], tuple[int, ...], (1, 2)),
        ([], tuple[()], ()),
        (["1", 1], set[int], {1}),
        (["1"], frozenset[int], frozenset({1})),
        (["1"], Set[int], {1}),
        (["1"], Sequence[int], [1]),
        (["1"], Collection[int], [1]),
        (["1"], collections.deque[int], collections.deque([1])),
        ([1], typing.List, [1]),  # noqa: UP006 - older code writes it so
        ({"a": 1}, typing.Dict, {"a": 1}),  # noqa: UP006
        ({"a": ["1"]}, dict[str, list[int]], {"a": [1]}),
        ({1: "2"}, Mapping[str | int, int], {1: 2}),
        ({"low": "1"}, Range, {"low": 1}),
        ({"low": "1", "high": "2"}, Loose, {"low": 1, "high": 2}),
        ({"left": 1}, Pair[int], Pair(1)),
        ([1], Iterable[int], [1]),
        ("anything", T, "anything"),
        ("anything", Any, "anything"),
        ("anything", object, "anything"),
        (True, object, True),
        (
            {"route": 117, "drop": "30.28", "cabin": "F", "legs": [{"origin": "BWI", "departs": "2005-04-11"}]},
            Fare,
            Fare(117, Decimal("30.28"), Cabin.FIRST, [Leg("BWI", datetime.date(2005, 4, 11))]),
        ),
        ({"rate": "2.5"}, Model, Model(rate=Decimal("2.5"))),
    ],
)
def test_what_fits_is_fitted(value: object, wanted: Any, result: object) -> None:
    """Data as it comes from JSON becomes what the annotation says, of exactly that type."""
    made = coerce(value, wanted, "seed")
    assert made == result
    assert type(made) is type(result)


@pytest.mark.parametrize("value", [Fare(1, Decimal(2)), Cabin.FIRST, Model(rate=Decimal(1)), "text", Stars.ONE])
def test_what_fits_already_is_the_same_object(value: object) -> None:
    """A value of the wanted type is not copied."""
    assert coerce(value, type(value), "seed") is value


@pytest.mark.parametrize(
    ("value", "wanted", "said"),
    [
        ("many", int, "seed: 'many' is not int"),
        (1.5, int, "seed: 1.5 is not int"),
        (True, int, "seed: True is not int"),
        (True, float, "seed: True is not float"),
        (True, Decimal, "seed: True is not Decimal"),
        (12, str, "seed: 12 is not str"),
        (None, str, "seed: None is not str"),
        ("x", None, "seed: 'x' is not null"),
        ("NaN", Decimal, "seed: 'NaN' is not Decimal"),
        ("sNaN", Decimal, "seed: 'sNaN' is not Decimal"),
        (float("inf"), Decimal, "seed: inf is not Decimal"),
        (Decimal("Infinity"), Decimal, r"seed: Decimal\('Infinity'\) is not Decimal"),
        ("x" * 100, Decimal, r"seed: 'x+\.\.\.x+' is not Decimal$"),
        ("2005-13-01", datetime.date, "seed: '2005-13-01' is not date"),
        ("X", Cabin, r"seed: 'X' is not one of \['Y', 'F'\]"),
        ([], Cabin, r"seed: \[\] is not one of \['Y', 'F'\]"),
        (True, Literal[1], r"seed: True is not one of \(1,\)"),
        ("x", int | None, "seed: 'x' is not int"),
        ("x", int | Decimal, "seed: 'x' is not any of int, Decimal"),
        ("ab", list[str], "seed: 'ab' is not a list"),
        ([1, "x"], list[int], r"seed\[1\]: 'x' is not int"),
        ([1], tuple[int, int], r"seed: \[1\] is not a list of 2 values"),
        ([], dict[str, int], r"seed: \[\] is not a mapping"),
        ({"a": {"b": "x"}}, dict[str, dict[str, int]], "seed.a.b: 'x' is not int"),
        ({}, Range, "seed.low is missing"),
        ({}, Loose, "seed.low is missing"),
        ([], Fare, r"seed: \[\] is not a mapping with route, drop, cabin, legs, tags"),
        ({"route": 1, "drop": 2, "legs": [{"origin": 3}]}, Fare, r"seed.legs\[0\].origin: 3 is not str"),
        ({"rout": 1}, Fare, "seed.drop is missing; seed.route is missing; seed.rout is unknown .known: route, drop"),
        ({"n": -1}, Positive, r"seed: {'n': -1} is not Positive: n must not be negative$"),
        ({"rate": -1}, Model, "seed: {'rate': -1} is not Model: 1 validation error for Model rate Input should be gr"),
        ({"sides": 2}, Shape, "seed: {'sides': 2} is not Shape: a shape has three sides or more$"),
        ({"what": 1}, Unresolved, "the annotations of Unresolved cannot be resolved .*'Missing'.*top of the module"),
    ],
)
def test_what_does_not_fit_names_the_field(value: object, wanted: Any, said: str) -> None:
    """Everything that does not fit is a SeedError whose one line begins with the field."""
    with pytest.raises(SeedError, match=f"^{said}") as raised:
        coerce(value, wanted, "seed")
    assert "\n" not in str(raised.value)


class Context(ProcessContext):
    seed_data: Fare
    n: int = 0


def count(context: Context) -> None:
    context.n += 1


def processor(**options: Any) -> SequenceProcessor[Any]:
    return SequenceProcessor([count], **{"context": Context, **options})


def test_a_seed_is_fitted_before_the_first_activity() -> None:
    """The first activity sees the seed as its type; a mapping that has been handed over stays as it is."""
    given = {"route": "117", "drop": "30.28"}
    run = processor().do_activities(given)
    assert run.context.seed_data == Fare(117, Decimal("30.28"))
    assert given == {"route": "117", "drop": "30.28"}


def test_without_a_seed_none_is_set() -> None:
    """Reading the seed of a run that got none names the field."""
    run = processor().do_activities()
    with pytest.raises(AttributeError, match=r"Context\.seed_data is not set"):
        run.context.seed_data  # noqa: B018


def test_falsy_seeds_are_seeds() -> None:
    """Only None means that there is no seed."""

    class Loosely(ProcessContext):
        seed_data: int | str | list[int]

    for seed in (0, "", []):
        assert processor(context=Loosely, on_error=CONTINUE).do_activities(seed).context.seed_data == seed


@pytest.mark.parametrize("decision", [CONTINUE, FAIL, Retry(), None])
def test_every_decision_but_stop_fails_a_run_without_its_seed(decision: Any) -> None:
    """The default handler is asked, no activity runs, and it ends FAILED."""

    class Asked:
        def handle_error(self, context: Any, error: Exception) -> Any:
            asked.append(error)
            return decision

    asked: list[Exception] = []
    run = processor(on_error=Asked(), finally_=[count]).do_activities({})
    assert (run.outcome.name, run.context.n, run.steps, asked) == ("FAILED", 0, (), [run.error])


def test_stop_for_a_seed_stops() -> None:
    """STOP of the default handler ends the run STOPPED, without an error and without `finally`."""
    run = processor(on_error=STOP, finally_=[count]).do_activities({})
    assert (run.outcome.name, run.error, run.context.n, run.steps) == ("STOPPED", None, 0, ())


def test_a_stop_asked_for_while_seeding_is_honoured() -> None:
    """A context that asks for a stop in `set_seed_data` ends before the first activity, without `finally`."""

    class Choosy(Context):
        def set_seed_data(self, seed_data: Any) -> None:
            super().set_seed_data(seed_data)
            if self.seed_data.route == 0:
                self.stop_process("no route")

    wired = processor(context=Choosy, finally_=[count])
    run = wired.do_activities({"route": 0, "drop": 1})
    assert (run.outcome.name, run.stop_reason, run.context.n, run.steps) == ("STOPPED", "no route", 0, ())
    assert wired.do_activities({"route": 1, "drop": 1}).outcome.name == "COMPLETED"


def test_an_annotation_that_cannot_be_resolved_says_so() -> None:
    """A seed type that is defined inside of a function is a SeedError with the remedy."""

    @dataclass
    class Local:
        n: int

    class Bad(ProcessContext):
        seed_data: Local

    with pytest.raises(SeedError, match=r"the annotations of Bad\.seed_data cannot be resolved .*top of the module"):
        processor(context=Bad).do_activities({"n": 1})


def test_other_annotations_need_not_be_resolvable() -> None:
    """Only the annotation of the seed is looked at; one that a type checker alone can resolve does no harm."""

    class Checked(ProcessContext):
        seed_data: int
        other: Missing  # type: ignore[name-defined]  # noqa: F821 - what the test is about

    assert processor(context=Checked, on_error=CONTINUE).launch("3").context.seed_data == 3


def test_a_subclass_narrows_the_seed() -> None:
    """The most derived annotation counts."""

    class Narrow(Context):
        seed_data: int  # type: ignore[assignment]

    class Same(Context):
        pass

    assert processor(context=Narrow).do_activities("3").context.seed_data == 3
    assert processor(context=Same).do_activities({"route": 1, "drop": 1}).context.seed_data.route == 1
