"""What annotations say, and who fits them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NewType,
    Optional,
    Protocol,
    TypeVar,
    Union,
    get_type_hints,
)

import pytest

from iocflow.activity import Activity
from iocflow.container.inspecting.annotations import (
    UNKNOWN,
    Candidate,
    fields_of,
    fits,
    members,
    missing,
    resolved,
    shown,
)
from iocflow.container.inspecting.contexts import activity_context, results
from iocflow.container.inspecting.parameters import Signatures
from iocflow.context import ProcessContext
from tests.unit.container import parts
from tests.unit.container.parts import Clock

if TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found]

T = TypeVar("T")
C = TypeVar("C", bound=parts.Order)
Id = NewType("Id", parts.Smtp)


class Both(parts.Sender, Protocol):
    """A Protocol of two parts."""

    host: str

    def __len__(self) -> int: ...


class Late:
    """Sets its field where its constructor calls for it."""

    def __init__(self) -> None:
        self.prepare()

    def prepare(self) -> None:
        self.host = "h"

    def send(self, text: str) -> None: ...

    def __len__(self) -> int:
        return 0


class Anything:
    """Has whatever is asked for."""

    def __getattr__(self, name: str) -> Any: ...


@pytest.mark.parametrize(
    ("cls", "annotation", "expected"),
    [
        (parts.Smtp, parts.Smtp, True),
        (parts.Clock, parts.Smtp, False),
        (parts.Clock, Any, True),
        (parts.Clock, object, True),
        (parts.Clock, UNKNOWN, True),
        (parts.Clock, "a name that nobody resolved", True),
        (object, parts.Smtp, True),
        (parts.Clock, Optional[parts.Smtp], False),  # noqa: UP045
        (parts.Smtp, parts.Clock | parts.Sender, True),
        (parts.Smtp, Annotated[parts.Smtp, "x"], True),
        (parts.Clock, Final[parts.Smtp], False),
        (parts.Clock, Id, False),
        (parts.Smtp, T, True),
        (parts.Smtp, parts.Sender, True),
        (parts.Clock, parts.Sender, False),
        (Late, Both, True),
        (parts.Smtp, Both, False),
        (Anything, Both, True),
        (parts.Box, parts.Box[int], True),
        (parts.Clock, Sequence[int], False),
        (list, Iterable[int], True),
        (parts.Clock, Literal["a"], False),
        (parts.Clock, Callable[[], int], False),
        (parts.Decide, Activity[parts.Parcel], True),
        (parts.Order, parts.HasLines, True),
        (parts.Parcel, parts.HasLines, False),
    ],
)
def test_fits(cls: type, annotation: Any, expected: bool) -> None:
    """Classes fit by inheritance, Protocols by what they name, unions by one of their members; in doubt all fits."""
    assert fits(Candidate(cls), annotation) is expected


def test_what_a_factory_may_return() -> None:
    """What a factory says it returns may be a subclass, so that it fits where one is wanted."""
    assert fits(Candidate(ProcessContext, loose=True), parts.Order)
    assert not fits(Candidate(ProcessContext), parts.Order)
    assert not fits(Candidate(parts.Clock, loose=True), parts.Order)


def test_objects_are_what_they_claim() -> None:
    """An object is compared itself: by what it has, and by the class that it claims."""
    late = Late()
    assert fits(Candidate(Late, objects=(late,)), Both)
    del late.host
    assert not fits(Candidate(Late, objects=(late,)), Both)


def test_members_and_fields() -> None:
    """A Protocol's members are its own and inherited ones; a context's fields are what it annotates or sets."""
    assert members(Both) == ("send", "host", "__len__")
    assert missing(Candidate(parts.Clock), Both | None) == " without `send`, `host`, `__len__`"
    assert set(fields_of(parts.Order)) >= {"lines", "line", "seed_data", "stopped"}
    assert fields_of(parts.Smtp) == ("host", "port", "timeout", "sent")


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int, "int"),
        (Optional[int], "int | None"),  # noqa: UP045
        (Union[int, str], "int | str"),  # noqa: UP007
        (int | str, "int | str"),
        (Mapping[str, list[parts.Smtp]], "Mapping[str, list[Smtp]]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (Callable[[int], str], "Callable"),
        (Literal["a", 1], "Literal['a', 1]"),
        (type[parts.Sender], "type[Sender]"),
        (Annotated[int, "x"], "int"),
        (Any, "Any"),
    ],
)
def test_shown(annotation: Any, text: str) -> None:
    """An annotation reads in a message as a person would write it."""
    assert shown(annotation) == text


@dataclass
class Part:
    """Has annotations that only a type checker can resolve."""

    known: int
    unknown: Missing


def test_annotations_that_cannot_be_resolved() -> None:
    """One annotation that cannot be looked up leaves the others as they are."""

    def function(known: int, unknown: Missing) -> str: ...  # type: ignore[empty-body]

    assert resolved(Part) == {"known": int}
    assert resolved(function) == {"known": int, "return": str}


def test_annotations_that_are_bare_names() -> None:
    """Names of classes, written as text or not, are looked up as `typing` does: in the module, then in Python's own."""

    def texts(clock: Clock, number: int, any: Any) -> None: ...
    def mixed(clock: Clock, number: int | None) -> list[Clock]: ...  # type: ignore[empty-body]
    def objects() -> None: ...

    objects.__annotations__ = {"clock": parts.Clock, "number": int, "any": Any, "return": None}
    assert resolved(texts) == resolved(objects) == get_type_hints(texts) == get_type_hints(objects)
    assert resolved(functools.wraps(texts)(lambda *_: None)) == resolved(texts)
    assert resolved(mixed) == get_type_hints(mixed)


class Generic1(Activity[C], Generic[C]):
    """Leaves its context open."""

    def execute(self, context: C) -> Literal["yes"] | None: ...


class Concrete(Generic1[parts.Order]):
    """Closes it."""


class Untyped(Activity[parts.Parcel]):
    """Says it in its base only."""

    def execute(self, context):  # type: ignore[no-untyped-def]
        return "anything"


@pytest.mark.parametrize(
    ("target", "context", "named"),
    [
        (parts.Weigh, parts.Parcel, ((), False)),
        (Generic1, parts.Order, (("yes",), False)),
        (Concrete, parts.Order, (("yes",), False)),
        (Untyped, parts.Parcel, ((), False)),
        (parts.Decide, parts.Order, (("approve", "review"), True)),
        (parts.Guess, parts.Order, ((), False)),
        (parts.decide, parts.Order, (("approve", "review"), True)),
        (parts.nothing, UNKNOWN, ((), False)),
        (parts.Clock, UNKNOWN, ((), False)),
    ],
)
def test_contexts_and_results(target: Any, context: Any, named: tuple[tuple[str, ...], bool]) -> None:
    """An activity's context is what `execute` annotates, or C of `Activity[C]`; its results are those of `Literal`."""
    signatures = Signatures()
    assert activity_context(target, signatures) is context
    assert results(target, signatures) == named
