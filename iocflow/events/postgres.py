"""A table of PostgreSQL as a source: `postgres://host/database?table=inbox`, every row is an event."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iocflow.errors import IocflowError
from iocflow.events.address import Address
from iocflow.events.envelope import UnreadableEventError, read_event
from iocflow.events.postgres_options import PostgresOptions
from iocflow.events.source import DeadLetter, Delivery, Event, Reason
from iocflow.events.waker import Waker
from iocflow.launch.texts import error_text, printable
from iocflow.wiring.extras import extra

if TYPE_CHECKING:
    from iocflow.events.postgres_table import Row, Table

__all__ = ["PostgresSource"]

logger = logging.getLogger("iocflow.events")

PAUSE = 1.0
"""For how many seconds a row that was given back is passed over, so that those behind it have their turn."""


@dataclass(slots=True, eq=False)
class _Held:
    """A row that was received and is not settled; its lock, None when that was lost."""

    id: str
    row: Row | None


class PostgresSource:
    """`postgres://host/database?table=inbox`: every row of the table is an event, the smallest id first.

    A row is locked, in a transaction on a connection of its own, until it is settled: then it is deleted or marked in
    that same transaction. So any number of daemons share a table, and what one had in hand when it died is free as soon
    as the server notices. A notification only says that it is time to look; the table is what counts.

    When the connection of a row is lost, the row is locked anew at once, or, while the database is away, when it is
    back. If another daemon was quicker, it runs the event too, with the same idempotency key, and the row is its.
    """

    def __init__(self, options: PostgresOptions) -> None:
        """Take the address in its parts; nothing is connected yet."""
        self.options = options
        self._waker = Waker()
        self._table: Table | None = None
        self._held: dict[str, _Held] = {}
        self._passed_over: dict[str, float] = {}  # until when, on the monotonic clock, by id
        self._look_at = 0.0
        self._connected = False

    @classmethod
    def at(cls, address: Address) -> PostgresSource:
        """Return the source at an address, as `postgres://user:password@host/database?table=inbox`."""
        return cls(PostgresOptions.of(address))

    @property
    def name(self) -> str:
        """The address without user and password."""
        return self.options.name

    @property
    def identity(self) -> str:
        """The same."""
        return self.options.name

    def reserve(self) -> None:
        """Do nothing: any number of processes may share a table."""

    def open(self) -> None:
        """Connect, look at the table, and lock anew what is in hand."""
        if self._table is None:
            self._table = self._made()
        self._connected = False
        self._table.open()
        self._look_at = 0.0
        for held in self._held.values():
            if held.row is None or held.row.lost():
                self._regain(self._table, held)
        self._connected = True

    def receive(self, limit: int, timeout: float) -> Sequence[Delivery]:
        """Return up to `limit` events; look for them when a notification came, or it is time to."""
        with self._talking() as table:
            return self._receive(table, limit, timeout)

    def tend(self, room: int) -> bool:  # noqa: ARG002  # a connection that was lost is noticed at any time
        """Lock rows anew whose connections were lost."""
        lost = [held for held in self._held.values() if held.row is not None and held.row.lost()]
        if lost and self._connected:
            with self._talking() as table:
                for held in lost:
                    self._regain(table, held)
        return True

    def acknowledge(self, delivery: Delivery) -> None:
        """Delete the row, or mark it."""
        self._settle(delivery, lambda table, row: table.finish(row))

    def give_back(self, delivery: Delivery) -> None:
        """Let go of the row; this source passes it over for a moment."""
        held = _held_of(delivery)
        if held.row is not None:
            self._opened.release(held.row)
        self._passed_over[held.id] = time.monotonic() + PAUSE
        self._forget(held)

    def dead_letter(self, delivery: Delivery, reason: Reason) -> None:
        """Move the row to the table of the dead letters, with the reason."""
        self._settle(delivery, lambda table, row: table.bury(row, reason))

    def wake(self) -> None:
        """Let a `receive` that waits return now."""
        self._waker.wake()

    def close(self) -> None:
        """Let go of all connections."""
        if self._table is not None:
            for held in self._held.values():
                if held.row is not None:
                    self._table.release(held.row)
            self._held.clear()
            self._table.close()
        self._table = None
        self._waker.close()

    def dead_letters(self) -> Iterator[DeadLetter]:
        """Yield what is in the table of the dead letters, the oldest first."""
        return self._made().dead_letters()

    def replay(self, ids: Collection[str]) -> Sequence[str]:
        """Put dead letters back into the table that they came from, as they came."""
        return self._made().replay(ids)

    def _made(self) -> Table:
        table: Table = extra("events.postgres_table").Table(self.options)
        return table

    @property
    def _opened(self) -> Table:
        if self._table is None:
            raise RuntimeError(f"{self.name} is not open")
        return self._table

    def _receive(self, table: Table, limit: int, timeout: float) -> list[Delivery]:
        found: list[Delivery] = []
        if self._look_at <= time.monotonic():
            found = self._look(table, min(limit, self.options.prefetch - len(self._held)))
        if not found and not self._waker.woken:
            due = self._look_at - time.monotonic()
            # While as many rows are in hand as there may be, there is nothing to look for.
            full = len(self._held) >= self.options.prefetch
            self._waker.wait([table.fileno()], timeout if full else min(due, timeout))
            if table.notified():
                self._look_at = 0.0
        return found

    def _look(self, table: Table, limit: int) -> list[Delivery]:
        now = time.monotonic()
        self._passed_over = {id: until for id, until in self._passed_over.items() if until > now}
        found: list[Delivery] = []
        while len(found) < limit:
            try:
                row = table.take([*self._held, *self._passed_over])
            except IocflowError:
                if found:
                    break  # those are in hand; the next look raises it again
                raise
            if row is None:
                self._look_at = min([now + self.options.interval.total_seconds(), *self._passed_over.values()])
                break
            self._held[row.id] = held = _Held(row.id, row)
            found.append(self._delivery(held, row.body))
        return found

    def _delivery(self, held: _Held, body: bytes | None) -> Delivery:
        event: Event | None = None
        refusal = "its data is NULL"
        try:
            if body is not None:
                event = read_event(body, source=self.name, id=held.id)
        except UnreadableEventError as error:
            refusal = str(error)
        except Exception as error:
            # Nobody foresaw it; it must not come again and again, and hold up the rows behind it.
            logger.exception("%s: row %s cannot be read", self.name, printable(held.id))
            refusal = error_text(error)
        return Delivery(printable(held.id), event, "" if event else f"refused: {refusal}", key=held)

    def _settle(self, delivery: Delivery, how: Callable[[Table, Row], None]) -> None:
        held = _held_of(delivery)
        if (held.row is None or held.row.lost()) and not self._connected:
            # It was not opened again, as the daemon stops: nobody waits for a database that may be away for long.
            logger.warning("event %s ended after its connection was lost; it is brought again", printable(held.id))
        else:
            with self._talking() as table:
                if held.row is None or held.row.lost():
                    self._regain(table, held)
                row, held.row = held.row, None
                if row is not None:
                    try:
                        how(table, row)
                    except BaseException:
                        row.connection.close()  # whether it was done is seen when the row is locked anew
                        raise
        self._forget(held)

    @contextmanager
    def _talking(self) -> Iterator[Table]:
        """Lend the table; with the first thing that goes wrong the source has to be opened again."""
        try:
            yield self._opened
        except BaseException:
            self._connected = False
            raise

    def _regain(self, table: Table, held: _Held) -> None:
        if held.row is not None:
            held.row.connection.close()
        held.row = None
        held.row = table.regain(held.id)
        if held.row is None:
            what = "it is gone by now, or another daemon has it"
            logger.warning("event %s: the connection that held its row was lost; %s", printable(held.id), what)

    def _forget(self, held: _Held) -> None:
        if held.row is not None and held.row.lost():
            held.row.connection.close()
        self._held.pop(held.id, None)


def _held_of(delivery: Delivery) -> _Held:
    held = delivery.key
    if not isinstance(held, _Held):
        raise TypeError(f"{delivery.name} is no delivery of a table")
    return held
