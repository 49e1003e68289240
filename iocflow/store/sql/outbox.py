"""The outgoing events in the tables of a store, for both dialects: rows of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from iocflow.store.outbox import Outgoing
from iocflow.store.sql.tables import Tables

_PENDING = """select s.run, s.n, s.name, s.result, coalesce(s.error, '') from step s
 where s.kind = 'publish' and s.run > :after
 and not exists (select 1 from step p where p.kind = 'publish' and p.run = s.run and p.n < s.n)
 order by s.run, s.n limit :limit"""

_SENT = "update step set kind = 'published', t1 = :now, error = null where run = :run and n = :n and kind = 'publish'"

_REFUSED = "update step set error = :error where run = :run and n = :n and kind = 'publish'"


class RelayLock(Protocol):
    """Keeps other relays out, of all processes."""

    def hold(self) -> bool:
        """Take it, or see that it is still this object's; False when another one has it."""

    def release(self) -> None:
        """Let others have it."""


class SqlOutbox:
    """The rows of kind `publish`. Every method is what the contract says."""

    def __init__(
        self,
        read: Callable[[], AbstractContextManager[Tables]],
        write: Callable[[Callable[[Tables], Any]], Any],
        lock: RelayLock,
    ) -> None:
        """Take what lends tables, and what keeps others out."""
        self._read, self._write, self._lock = read, write, lock

    def hold(self) -> bool:
        """Become the relay of this store, or see that this object still is."""
        return self._lock.hold()

    def release(self) -> None:
        """Let another be the relay."""
        self._lock.release()

    def pending(self, after: int, limit: int) -> list[Outgoing]:
        """Return what is to be sent of runs with an id above `after`, the oldest of each run only."""
        with self._read() as tables:
            return [Outgoing(*row) for row in tables.rows(_PENDING, after=after, limit=limit)]

    def sent(self, events: Sequence[tuple[int, int]]) -> None:
        """Note that events were sent."""
        if not events:
            return

        def work(tables: Tables) -> None:
            for run, n in events:
                tables.write(_SENT, run=run, n=n, now=tables.now)

        self._write(work)

    def refused(self, run: int, n: int, error: str) -> None:
        """Note why an event was refused."""
        self._write(lambda tables: tables.write(_REFUSED, run=run, n=n, error=error))
