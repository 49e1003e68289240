"""What both stores do in the same way, once they lend their tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from iocflow.store.contract import Entry, RunStatus, Signal, State, Violation
from iocflow.store.sql import operations, reading
from iocflow.store.sql.doctor import examine
from iocflow.store.sql.launchers import Lock, SqlLaunchers
from iocflow.store.sql.outbox import RelayLock, SqlOutbox
from iocflow.store.sql.tables import Tables

T = TypeVar("T")


class SqlStore(ABC):
    """The part of a store that is the same text for both dialects. Every method is what the contract says."""

    _lock: Lock | None = None
    """Held by the one daemon that serves launchers, where there may not be many."""

    _relay: RelayLock
    """Held by the one relay that sends outgoing events."""

    @property
    def launchers(self) -> SqlLaunchers:
        """What the store keeps of scheduled launchers."""
        return SqlLaunchers(self._read, self._note, self._lock)

    @property
    def outbox(self) -> SqlOutbox:
        """The outgoing events of its runs."""
        return SqlOutbox(self._read, self._note, self._relay)

    @abstractmethod
    def _read(self) -> AbstractContextManager[Tables]:
        """Lend tables that do not change while they are read."""

    @abstractmethod
    def _write(self, work: Callable[[Tables], T]) -> T:
        """Return what `work` does in one transaction, and tell who waits for work."""

    @abstractmethod
    def _note(self, work: Callable[[Tables], T]) -> T:
        """Return what `work` does in one transaction, which is no news to who waits for work."""

    def signal(self, run: int, name: str, data: bytes) -> bool:
        """Send a signal to a run."""
        return self._write(lambda tables: operations.signal(tables, run, name, data))

    def fenced_out(self, worker: int, runs: Mapping[int, str]) -> None:
        """Journal that what a worker did about runs was dropped."""
        self._write(lambda tables: operations.fenced_out(tables, worker, runs))

    # Reading.

    def plan_of(self, id: int) -> tuple[str, str]:
        """Return the hash and the text of a stored plan."""
        with self._read() as tables:
            return reading.plan_of(tables, id)

    def find(self, submitter: str, number: str) -> int | None:
        """Return the id of the run with that identity."""
        with self._read() as tables:
            return reading.find(tables, submitter, number)

    def status(self, run: int) -> RunStatus | None:
        """Return a run's status."""
        with self._read() as tables:
            return reading.status(tables, run)

    def context(self, run: int) -> bytes | None:
        """Return the last recorded context of the outer thread."""
        with self._read() as tables:
            return reading.context(tables, run)

    def runs(
        self,
        *,
        states: Sequence[State] = (),
        processor: str | None = None,
        submitter: str | None = None,
        group: str | None = None,
        after: int = 0,
        limit: int = 100,
        newest: bool = False,
    ) -> list[RunStatus]:
        """Return runs by id, the newest last."""
        filters = reading.Filters(states, processor, submitter, group)
        with self._read() as tables:
            return reading.runs(tables, filters, after, limit, newest=newest)

    def signals(self, runs: Sequence[int]) -> dict[int, list[Signal]]:
        """Return the signals to these runs that were not consumed yet, in order."""
        with self._read() as tables:
            return reading.signals(tables, runs)

    def history(self, run: int) -> list[Entry]:
        """Return a run's journal."""
        with self._read() as tables:
            return reading.history(tables, run)

    def counts(self) -> dict[str, int]:
        """Return how many runs are in each state."""
        with self._read() as tables:
            return reading.counts(tables)

    # Operating.

    def cancel(self, run: int, *, who: str, why: str) -> bool:
        """Ask for the end of an open run."""
        return self._write(lambda tables: operations.cancel(tables, run, who, why))

    def retry(self, run: int, *, who: str, why: str, done: bool = False) -> bool:
        """Let a failed or suspended run go on from the step that failed."""
        return self._write(lambda tables: operations.retry(tables, run, who, why, done))

    def drop(self, run: int, *, who: str, why: str) -> bool:
        """Give a suspended run up as failed."""
        return self._write(lambda tables: operations.drop(tables, run, who, why))

    def purge(self, before: float, *, limit: int = 1000) -> int:
        """Drop the contexts and bodies of runs that ended before."""
        return self._write(lambda tables: operations.purge(tables, before, limit))

    def doctor(self) -> Iterable[Violation]:
        """Check the invariants of the tables."""
        with self._read() as tables:
            return list(examine(tables))
