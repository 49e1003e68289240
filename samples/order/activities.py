"""The activities of an order; each effect happens once, whatever dies in between."""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import closing
from decimal import Decimal
from pathlib import Path

from iocflow import Activity, ProcessContext
from samples.order.queue import Order, Shipped

__all__ = ["Bank", "BookingContext", "CheckCredit", "OrderContext", "ReserveStock", "Ship", "bill", "book"]

_LOGGER = logging.getLogger("samples.order")


class OrderContext(ProcessContext):
    """The state of one order: it is stored after each step, as JSON by these annotations."""

    seed_data: Order
    receipt: str
    parcel: str


class CheckCredit(Activity[OrderContext]):
    """Stops an order that is too large for its customer's credit."""

    def __init__(self, limit: Decimal, takes: float = 0.0) -> None:
        """Take the limit, and how many seconds the check takes."""
        self.limit, self.takes = limit, takes

    def execute(self, context: OrderContext) -> None:
        """Compare the order's amount with the limit."""
        time.sleep(self.takes)
        if context.seed_data.amount > self.limit:
            context.stop_process(f"{context.seed_data.amount} is above the credit of {self.limit}")


class ReserveStock(Activity[OrderContext]):
    """Takes the pieces out of stock, in the same transaction as the record of the step: both happen, or neither."""

    def __init__(self, pieces: int) -> None:
        """Take how many pieces of each article there are at first."""
        self.pieces = pieces

    def execute(self, context: OrderContext) -> None:
        """Lower the stock of each line's article."""
        connection: sqlite3.Connection = context.step.transaction
        connection.execute("create table if not exists stock(article text primary key, pieces int not null)")
        for line in context.seed_data.lines:
            connection.execute("insert or ignore into stock values (?, ?)", (line.article, self.pieces))
            connection.execute("update stock set pieces = pieces - ? where article = ?", (line.pieces, line.article))


class Bank:
    """A foreign system that keeps its own books, and knows a charge again by the key that comes with it."""

    def __init__(self, path: str, takes: float = 0.0) -> None:
        """Take where the books are, and how many seconds a charge takes."""
        self.path, self.takes = Path(path), takes
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(self._books()) as books:
            books.execute("create table if not exists charge(key text primary key, customer text, amount text)")

    def charge(self, key: str, customer: str, amount: Decimal) -> str:
        """Charge once for each key; return the receipt's number."""
        time.sleep(self.takes)
        with closing(self._books()) as books:
            books.execute("insert or ignore into charge values (?, ?, ?)", (key, customer, str(amount)))
            (row,) = books.execute("select rowid from charge where key = ?", (key,)).fetchone()
        return f"R-{row}"

    def charges(self) -> int:
        """Return how many charges there are."""
        with closing(self._books()) as books:
            return int(books.execute("select count(*) from charge").fetchone()[0])

    def _books(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None, timeout=30)


class BookingContext(ProcessContext):
    """The state of a booking."""

    seed_data: Shipped


def book(context: BookingContext) -> None:
    """Book what was shipped; here, into the log."""
    shipped = context.seed_data
    _LOGGER.info("parcel %s of order %s %s is booked", shipped.parcel, shipped.customer, shipped.order)


def bill(context: OrderContext, bank: Bank) -> None:
    """Charge the customer; when a worker dies between the charge and its record, the key makes the repeat harmless."""
    order = context.seed_data
    context.receipt = bank.charge(context.step.idempotency_key, order.customer, order.amount)


class Ship(Activity[OrderContext]):
    """Hands the parcel over."""

    def __init__(self, takes: float = 0.0) -> None:
        """Take how many seconds it takes."""
        self.takes = takes

    def execute(self, context: OrderContext) -> None:
        """Give the parcel a number."""
        time.sleep(self.takes)
        context.parcel = f"{context.seed_data.customer}-{context.seed_data.number}"
