"""Contexts of durable runs, and one that cannot be stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar

from iocflow.activity import Activity
from iocflow.context import ProcessContext
from tests.unit.container.parts import BUILT


@dataclass
class Customer:
    """Somebody who buys."""

    name: str
    country: str | None = None


@dataclass
class Purchase:
    """A seed."""

    po: str
    customer: Customer
    lines: list[str] = field(default_factory=list)
    reach: str = "1h"
    tags: dict[str, str] = field(default_factory=dict)


class Buying(ProcessContext):
    """A context that can be stored."""

    seed_data: Purchase
    total: int


class Basket(ProcessContext):
    """A context whose fields are not fresh in each run, but for the first ones."""

    KINDS: ClassVar[list[str]] = ["fruit"]
    constant = ["not annotated"]  # noqa: RUF012 - no field
    seed_data: None
    owner: str = "ann"
    items: list[str] = field(default_factory=list)
    prices: dict[str, float] = {}  # noqa: RUF012 - the mistake


class Unstorable(ProcessContext):
    """A context with fields that cannot be stored."""

    call: Callable[[], None]
    things: list[Any]


class Loose(ProcessContext):
    """A context whose seed may have any field."""

    seed_data: dict[str, str]


@dataclass
class Bags:
    """Data whose fields hold what nobody knows."""

    one: dict  # type: ignore[type-arg]
    two: Any


class Bare(ProcessContext):
    """A context with dicts of which nothing is known."""

    seed_data: None
    table: dict  # type: ignore[type-arg]
    tables: dict[str, dict]  # type: ignore[type-arg]
    values: dict[str, Any]
    bags: Bags


class Untyped(ProcessContext):
    """A context that does not say what its seed is."""

    total: int


@dataclass
class Timed:
    """A seed that says how long it may take, and has defaults."""

    seconds: float | None = None
    length: timedelta | None = None
    at: datetime | None = None
    text: str | None = None
    shop: str = "main"
    customer: Customer | None = None


class Timing(ProcessContext):
    """A context with such a seed."""

    seed_data: Timed


def wait(context: Timing) -> None:
    """Does nothing."""


def pay(context: Buying) -> None:
    """Pays."""


async def reserve(context: Buying) -> None:
    """Reserves."""


class Bank:
    """Takes money, and tells from whom."""

    def __init__(self) -> None:
        BUILT.append("Bank()")
        self.paid: list[str] = []


class Charge(Activity[Buying]):
    """Charges a customer."""

    def __init__(self, bank: Bank) -> None:
        self.bank = bank

    def execute(self, context: Buying) -> None:
        if context.seed_data.customer.name == "Poor":
            raise ValueError("no money")
        self.bank.paid.append(context.seed_data.po)
        context.total = len(self.bank.paid)
