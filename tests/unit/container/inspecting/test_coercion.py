"""Values as annotations want them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Protocol,
    TypedDict,
    TypeVar,
)

import pytest
import typing_extensions
from pydantic import BaseModel, Field

from iocflow.container.inspecting.annotations import UNKNOWN
from iocflow.container.inspecting.coercion import Coercion, MisfitError
from tests.unit.container import parts

if TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found]

NO_NUMBER = "input should be a valid number, unable to parse string as a number"
INCOMPLETE = "write `!new {class: …, args: …}`: its own annotations name what no data becomes, or is not there"
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Seconds = NewType("Seconds", float)


class Getter(Protocol[T_co]):
    """A Protocol of something; a dict has what it names."""

    def get(self, key: str) -> T_co:
        """Return it."""


class Colour(enum.Enum):
    """An enum."""

    RED = "red"


class Model(BaseModel):
    """A model of pydantic."""

    a: int = 0


@dataclass
class Tree:
    """A recursive data class."""

    kids: list[Tree]


@dataclass
class Incomplete:
    """Cannot be understood at run time."""

    a: Missing


class IncompleteRow(NamedTuple):
    """A row that cannot be understood at run time."""

    a: Missing


@dataclass
class Pace:
    """A data class with durations, at several depths."""

    pause: float
    wait: timedelta = timedelta(0)
    at_most: float | None = None
    note: float | str = ""
    slower: list[Pace] = field(default_factory=list)


class Row(NamedTuple):
    """A row with durations."""

    pause: float
    wait: timedelta = timedelta(0)
    pace: Pace | None = None


class Options(TypedDict):
    """Keys with types, one of them its own."""

    host: str
    pause: NotRequired[float]
    price: NotRequired[Decimal]
    rows: NotRequired[list[Row]]
    sender: NotRequired[parts.Sender]
    then: NotRequired[Options]


class MoreOptions(Options, total=False):
    """More keys, which may be missing; one is what a schema of pydantic calls something else."""

    type: timedelta
    default: Mapping[str, float]


class Extended(typing_extensions.TypedDict):
    """The other kind of keys with types."""

    pause: float
    fields: Pace


@dataclass
class WithProtocol:
    """Has a part that no data can be."""

    sender: parts.Sender


@dataclass
class Picky:
    """Refuses values in its own way."""

    a: int

    def __post_init__(self) -> None:
        if self.a > 3:
            raise KeyError(self.a)


class OwnSchema:
    """Brings a schema of its own that does not work."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        raise RuntimeError("no schema")


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        ("25", int, 25),
        ("x", UNKNOWN, "x"),
        (3, Any, 3),
        ("true", bool, True),
        ("500ms", float, 0.5),
        ("1.5h", float | None, 5400.0),
        ("1d", timedelta, timedelta(days=1)),
        (90, timedelta, timedelta(seconds=90)),
        (["5s", 3], list[float], [5.0, 3.0]),
        ({"a": ["2m"]}, Mapping[str, Sequence[float]], {"a": [120.0]}),
        ("30s", str, "30s"),
        ("30s", float | str, "30s"),
        ("2s", Seconds, 2.0),
        ("2s", Annotated[float, Field(gt=1)], 2.0),
        ("30.28", Decimal, Decimal("30.28")),
        ("var/x", Path, Path("var/x")),
        ("2027-01-01", date, date(2027, 1, 1)),
        ("red", Colour, Colour.RED),
        ("a", Literal["a", "b"], "a"),
        (["1"], tuple[int, ...], (1,)),
        (["1", "x"], set[str], {"1", "x"}),
        (None, parts.Sender | None, None),
        ({"a": "3"}, Model, Model(a=3)),
        ({"kids": [{"kids": []}]}, Tree, Tree([Tree([])])),
        ([1], Iterable[T], [1]),
        ([1], Iterable, [1]),
        ("anything", OwnSchema, "anything"),
        (
            {"pause": "2s", "wait": "1m", "at_most": "1h", "note": "3s", "slower": [{"pause": "5s"}]},
            Pace,
            Pace(2.0, timedelta(minutes=1), 3600.0, "3s", [Pace(5.0)]),
        ),
        ([{"pause": "2s"}], list[Pace] | None, [Pace(2.0)]),
        (["2s", "1m", {"pause": "3s"}], Row, Row(2.0, timedelta(minutes=1), Pace(3.0))),
        ({"pause": "2s"}, Row, Row(2.0)),
        ({"a": ["2s"]}, Mapping[str, Row], {"a": Row(2.0)}),
        (
            {"host": "h", "pause": "2s", "price": "30.10"},
            Options,
            {"host": "h", "pause": 2.0, "price": Decimal("30.10")},
        ),
        ([{"host": "h", "rows": [["2s"]]}], Sequence[Options], [{"host": "h", "rows": [Row(2.0)]}]),
        (
            {"host": "h", "then": {"host": "i", "pause": "1m"}},
            Options,
            {"host": "h", "then": {"host": "i", "pause": 60.0}},
        ),
        ({"host": "h", "pause": "1s"}, MoreOptions | None, {"host": "h", "pause": 1.0}),
        (
            {"host": "h", "type": "2s", "default": {"a": "3s"}},
            MoreOptions,
            {"host": "h", "type": timedelta(seconds=2), "default": {"a": 3.0}},
        ),
        ({"pause": "2s", "fields": {"pause": "3s"}}, Extended, {"pause": 2.0, "fields": Pace(3.0)}),
        ([1], Annotated[list[int], [1]], [1]),
    ],
)
def test_coerce(value: Any, annotation: Any, expected: Any) -> None:
    """Values become what the annotation says, by pydantic's lax rules, with durations as seconds or timedelta."""
    assert Coercion().coerce(value, annotation) == expected


@pytest.mark.parametrize(
    ("value", "annotation", "path", "why"),
    [
        ("x", int, (), "input should be a valid integer, unable to parse string as an integer"),
        ("30s", int, (), "input should be a valid integer, unable to parse string as an integer"),
        (3, str, (), "input should be a valid string"),
        ([1, "x"], list[int], (1,), "input should be a valid integer, unable to parse string as an integer"),
        ({"street": "s", "nr": 1}, parts.Address, ("nr",), "unexpected keyword argument"),
        ({}, parts.Address, ("street",), "field required"),
        ("smtp", parts.Sender, (), "it needs send"),
        ("smtp", Getter[int], (), "it needs get"),
        ([{"a": 1}, "smtp"], list[Getter[Any]], (1,), "it needs get"),
        (True, int, (), "input should be a number"),
        ([1.5, False], list[float], (1,), "input should be a number"),
        ({"a": True}, Picky, ("a",), "input should be a number"),
        ("smtp", parts.Smtp, (), "input should be an instance of Smtp"),
        ("x", Callable[[int], str], (), "input should be callable"),
        ({"a": 4}, Picky, (), "KeyError: 4"),
        ({}, Options, ("host",), "field required"),
        ({"host": 3}, Options, ("host",), "input should be a valid string"),
        ({"host": "h", "prot": 1}, Options, ("prot",), "extra inputs are not permitted"),
        ({"host": "h", "sender": "smtp"}, Options, ("sender",), "it needs send"),
        ({"host": "h", "then": {}}, MoreOptions, ("then", "host"), "field required"),
        ({"host": "h", "default": {"a": "x"}}, MoreOptions, ("default", "a"), NO_NUMBER),
        ({"pause": "3 weeks"}, Pace, ("pause",), NO_NUMBER),
        (["1s", "1s", {"pause": "x"}], Row, (2, "pause"), NO_NUMBER),
        ({"pause": "2s"}, Extended, ("fields",), "field required"),
        ("smtp", Options, (), "input should be a valid dictionary"),
        ({"a": 1}, Incomplete, (), INCOMPLETE),
        ([{"a": 1}], list[Incomplete], (), INCOMPLETE),
        ([1], IncompleteRow, (), INCOMPLETE),
        ({"sender": 1}, WithProtocol, (), INCOMPLETE),
    ],
)
def test_misfits(value: Any, annotation: Any, path: tuple[str | int, ...], why: str) -> None:
    """What does not fit is told with the part that does not, whatever the class raises."""
    with pytest.raises(MisfitError) as refused:
        Coercion().coerce(value, annotation)
    assert [(one.path, one.why) for one in refused.value.misfits] == [(path, why)]
