"""Contexts, and what they hold, for the tests of their stored form."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime, time
from decimal import Decimal
from pathlib import Path
from typing import ClassVar, Generic, NamedTuple, NewType, NotRequired, TypedDict, TypeVar

from pydantic import BaseModel

from iocflow.context import ProcessContext

T = TypeVar("T")
OrderNumber = NewType("OrderNumber", str)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 9


class Right(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass
class Line:
    article: str
    price: Decimal
    quantity: int = 1
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Seed:
    number: OrderNumber
    lines: tuple[Line, ...] = ()


@dataclass
class Box(Generic[T]):
    value: T
    more: list[T] = field(default_factory=list)


@dataclass
class Tree:
    value: int
    branches: list[Tree] = field(default_factory=list)


class Point(NamedTuple):
    x: float
    y: float


class Address(TypedDict):
    street: str
    zip: NotRequired[int]


class Customer(BaseModel):
    name: str
    limit: Decimal
    since: datetime | None = None


class Order(ProcessContext):
    count: ClassVar[int] = 0

    seed_data: Seed
    lines: list[Line]
    total: Decimal
    share: float | None
    note: str = ""
    prices: dict[str, Decimal]
    address: Address
    point: Point
    customer: Customer
    file: Path
    at: datetime
    when: dict[str, list[datetime | None]]
    opens: time
    tree: Tree
    boxed: Box[int]


def order(**fields: object) -> Order:
    """Return an order with these fields."""
    context = Order()
    for name, value in fields.items():
        setattr(context, name, value)
    return context
