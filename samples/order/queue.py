"""A queue of orders from two submitters, who number them each in their own way."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

__all__ = ["ORDERS", "Line", "Order", "Shipped"]


@dataclass(frozen=True)
class Line:
    """So many pieces of one article."""

    article: str
    pieces: int
    price: Decimal


@dataclass(frozen=True)
class Order:
    """The seed. `customer` and `number` together name the order, for ever: `durable` in the file says so."""

    customer: str
    number: str
    lines: list[Line]

    @property
    def amount(self) -> Decimal:
        """What it costs."""
        return sum((line.pieces * line.price for line in self.lines), Decimal(0))


@dataclass(frozen=True)
class Shipped:
    """What an event tells of an order that was shipped."""

    customer: str
    order: str
    parcel: str


_ARTICLES = (("lamp", Decimal("39.90")), ("desk", Decimal("249.00")), ("chair", Decimal("89.50")))

ORDERS = [
    Order(customer, f"{prefix}{i}", [Line(_ARTICLES[i % 3][0], 1 + i % 4, _ARTICLES[i % 3][1])])
    for i in range(1, 11)
    for customer, prefix in (("ACME", "PO-"), ("BETA", "2026/"))
]
"""ACME's PO-1 … PO-10, BETA's 2026/1 … 2026/10."""
