"""Context classes that cannot be stored, and are refused as a whole when they are loaded."""

from __future__ import annotations

import collections
import enum
import io
import socket
import typing
from collections.abc import Callable, Iterator
from dataclasses import InitVar, dataclass
from dataclasses import field as dataclass_field
from decimal import Decimal
from typing import Any, ClassVar

import pytest
from lxml import etree
from unit.durable.context_parts import Line, Order

from iocflow.context import ProcessContext
from iocflow.durable.contexts.codec import ContextCodec
from iocflow.durable.errors import ContextTypeError
from iocflow.errors import IocflowError
from samples.fare_drop.context import FareDropContext


class Mixed(enum.Enum):
    ONE = 1
    TEN = "ten"


@dataclass(eq=False)
class Unequal:
    value: int


@dataclass
class Handled:
    lines: list[Line]
    handle: Callable[[int], None]


@dataclass
class Given:
    value: InitVar[int]


class Bad(ProcessContext):
    anything: Any
    bare: list
    table: dict
    tables: dict[str, dict[str, Any]]
    any_keys: dict[Any, str]
    thing: object
    call: Callable[[], int]
    connection: socket.socket
    tree: etree._Element
    file: typing.IO[str]
    log: io.StringIO
    queue: collections.deque[int]
    items: Iterator[int]
    error: Exception
    cls: type[int]
    nested: dict[str, list[Handled]]
    given: Given
    union: str | Decimal
    pair: list[int] | set[int]
    mixed: Mixed
    keys: dict[tuple[int, int], str]
    flags: dict[bool, str]
    unequal: Unequal
    nowhere: Nowhere  # type: ignore[name-defined]  # noqa: F821 - the point of it
    shared: list[int] = []  # noqa: RUF012 - the point of it
    fine: str


UNTYPED = "write the type of what it holds"
APART = "JSON would not tell these types apart; store one of them, or a dataclass with a field for each"
KEY = "a key is text in JSON and cannot be read as this; use str, int or another plain type"
BY_NAME = "Callable is no data; store a name, and look it up by that"
IN_FILE = "is no data; store its path as a `Path`, and open it in the activity"
REASONS = [
    "Bad cannot be stored, as a durable run needs:",
    "seed_data: Any: annotate it with the type of the seed, or with None where there is none",
    f"anything: Any: {UNTYPED}",
    f"bare: list: bare[]: {UNTYPED}",
    f"table: dict: table: {UNTYPED}",
    f"tables: dict[str, dict[str, typing.Any]]: tables[][]: {UNTYPED}",
    f"any_keys: dict[typing.Any, str]: any_keys[key]: {UNTYPED}",
    f"thing: object: {UNTYPED}",
    f"call: collections.abc.Callable[[], int]: {BY_NAME}",
    "connection: socket.socket: socket is no data; store the address, and connect in the activity",
    "tree: lxml.etree._Element: _Element is no data; keep the document as str",
    f"file: IO[str]: IO {IN_FILE}",
    f"log: _io.StringIO: StringIO {IN_FILE}",
    "queue: collections.deque[int]: deque is no data; store a list",
    "items: collections.abc.Iterator[int]: Iterator is no data; store a list",
    "error: Exception: Exception is no data; store its text",
    "cls: type[int]: type is no data; store its name",
    f"nested: dict[str, list[{__name__}.Handled]]: nested[][].handle: {BY_NAME}",
    f"given: {__name__}.Given: dataclasses with `InitVar` fields are not supported",
    f"union: str | decimal.Decimal: {APART}",
    f"pair: list[int] | set[int]: {APART}",
    f"mixed: {__name__}.Mixed: "
    "Enums must contain either all str or all int values - type `<enum 'Mixed'>` is not supported",
    f"keys: dict[tuple[int, int], str]: {KEY}",
    f"flags: dict[bool, str]: {KEY}",
    f"unequal: {__name__}.Unequal: it has no `__eq__`, so nobody can tell whether it came back as it was",
    "nowhere: the annotations of Bad.nowhere cannot be resolved (name 'Nowhere' is not defined); "
    "what they name must be defined at the top of the module",
    "shared: list[int]: its default is one object that all runs would share, and no record has it; "
    "set it in an activity",
]


def test_all_fields_that_cannot_be_stored_are_named() -> None:
    """One error names every such field, with its annotation, the place in it, and what to write instead."""
    with pytest.raises(ContextTypeError) as caught:
        ContextCodec(Bad)
    assert str(caught.value).split("\n  ") == REASONS
    assert isinstance(caught.value, IocflowError)


def test_seeds_need_an_annotation() -> None:
    """A class that says nothing of its seed is refused, also when all else is fine."""

    class Silent(ProcessContext):
        count: int

    with pytest.raises(ContextTypeError, match="seed_data: Any: annotate it with the type of the seed"):
        ContextCodec(Silent)


def test_classes_that_can_be_stored() -> None:
    """The sample's context is taken as it is; class variables and names with an underscore are no fields."""

    class Private(ProcessContext):
        seed_data: None
        shared: ClassVar[dict[str, Any]] = {}
        _client: Any

    for cls in (FareDropContext, Order, Private):
        ContextCodec(cls)


def test_dataclass_contexts_may_have_factories() -> None:
    """A dataclass's factory makes a list for each run; an `InitVar` is no field."""

    @dataclass
    class Gathered(ProcessContext):
        given: InitVar[object]
        seed_data: None = None
        names: list[str] = dataclass_field(default_factory=list)

    ContextCodec(Gathered)
