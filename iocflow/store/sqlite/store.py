"""A store in one SQLite file, for the threads and processes of one machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from iocflow.store.contract import (
    Accepted,
    Batch,
    Entry,
    Receipt,
    RunStatus,
    Signal,
    State,
    StepTransaction,
    Submission,
    Swept,
    Violation,
)
from iocflow.store.errors import StoreUrlError
from iocflow.store.sql import operations, reading, upkeep
from iocflow.store.sql.doctor import examine
from iocflow.store.sqlite.caller import within
from iocflow.store.sqlite.commit import commit, fence, revoked
from iocflow.store.sqlite.connections import Connections
from iocflow.store.sqlite.schema import open_file
from iocflow.store.sqlite.step import begin
from iocflow.store.sqlite.submit import submit
from iocflow.wiring import did_you_mean

SYNCHRONOUS = ("full", "normal")
_NO_PATH = "the URL of the SQLite store has no path; write sqlite:///var/app.db, or sqlite:////srv/app.db"


def open_url(url: str, *, create: bool = True) -> SqliteStore:
    """Open `sqlite:///path`, with `?synchronous=normal` where the last commits may be lost when the power fails.

    Raises:
        StoreUrlError: The URL names no file, or none that is there, or has an option that there is not.
    """
    path, synchronous = parsed(url)
    if not create and not Path(path).is_file():
        raise StoreUrlError(f"there is no store {path}: nothing was submitted yet, or it lies elsewhere")
    return SqliteStore(path, synchronous=synchronous, url=url)


def check_url(url: str) -> None:
    """Refuse a URL that names no file; nothing is opened.

    Raises:
        StoreUrlError: With what to write instead.
    """
    parsed(url)


def parsed(url: str) -> tuple[str, str]:
    """Return the path and the option `synchronous` of `sqlite:///path`.

    Raises:
        StoreUrlError: It names no file, or has an option that there is not.
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # a host that is none
        raise StoreUrlError(_NO_PATH) from None
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    synchronous = options.pop("synchronous", "full")
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc or not path or path.endswith("/"):
        raise StoreUrlError(_NO_PATH)
    if path == ":memory:":
        raise StoreUrlError("a store in memory would be gone with the process; write sqlite:///var/app.db")
    if parts.fragment or "\0" in path:
        raise StoreUrlError("the path of the SQLite store has a `#` or a NUL; write %23 for a `#`")
    for name in options:
        raise StoreUrlError(f"a SQLite store has no option `{name}`; {did_you_mean(name, ['synchronous'])}")
    if synchronous not in SYNCHRONOUS:
        raise StoreUrlError(f"the option `synchronous` of the SQLite store is `{synchronous}`; write full or normal")
    return path, synchronous


class SqliteStore:
    """The tables in one file. Every method is what the contract says."""

    def __init__(
        self, path: str | Path, *, synchronous: str = "full", clock: Callable[[], float] = time.time, url: str = ""
    ) -> None:
        """Open the store in a file, which is made when it is not there.

        Args:
            path: The file; its folder is made when it is not there.
            synchronous: `full`, or `normal`: faster, but when the power fails, the last commits are lost.
            clock: The store's time, for tests.
            url: What the store was asked for by.

        Raises:
            StoreError: The file cannot be opened, is none of a store, or that of a newer one.
        """
        self.url = url or f"sqlite:///{path}"
        self._connections = Connections(Path(path).absolute(), synchronous=synchronous, clock=clock)
        open_file(self._connections)

    def close(self) -> None:
        """Close what is open."""
        self._connections.close()

    def now(self) -> float:
        """Return the store's time: that of this machine."""
        return self._connections.clock()

    # Submitting.

    def submit(self, runs: Sequence[Submission], *, transaction: Any = None) -> list[Accepted]:
        """Add runs, all or none."""
        if transaction is not None:
            with within(transaction, self._connections.path, self.now()) as tables:
                return submit(tables, runs)
        with self._connections.news() as tables:
            return submit(tables, runs)

    def signal(self, run: int, name: str, data: bytes) -> bool:
        """Send a signal to a run."""
        with self._connections.news() as tables:
            return operations.signal(tables, run, name, data)

    # Working.

    def plan(self, hash: str, processor: str, plan: str) -> int:
        """Return the id of a plan, storing it when it is new."""
        with self._connections.write() as tables:
            tables.sql(
                "insert into plan(hash, processor, plan) values (?, ?, ?) on conflict do nothing",
                (hash, processor, plan),
            )
            (id,) = tables.sql("select id from plan where hash = ?", (hash,)).fetchone()
            return int(id)

    def plan_of(self, id: int) -> tuple[str, str]:
        """Return the hash and the text of a stored plan."""
        with self._connections.read() as tables:
            return reading.plan_of(tables, id)

    def register(self, lease: float, host: str, pid: int) -> int:
        """Return the id of a new worker."""
        with self._connections.write() as tables:
            values = (tables.now + lease, host, pid, tables.now)
            tables.sql("insert into worker(lease, host, pid, began) values (?, ?, ?, ?)", values)
            (id,) = tables.sql("select last_insert_rowid()").fetchone()
            return int(id)

    def commit(self, worker: int, batch: Batch, *, lease: float) -> Receipt:
        """Do all of the batch, and extend the lease when a third of it has passed."""
        bell = self._connections.here.bell
        with self._connections.write() as tables:
            receipt = commit(tables, worker, batch, lease)
            if batch.released:
                bell.ring()
            if batch.claim and not receipt.more:
                bell.note(tables.version())
            return receipt

    def begin(self, worker: int, *, lease: float) -> AbstractContextManager[StepTransaction]:
        """Begin the transaction of one step."""
        return begin(self._connections, worker, lease)

    def beat(self, worker: int, *, lease: float) -> frozenset[int]:
        """Extend the lease; return the runs that were taken from this worker since."""
        with self._connections.write() as tables:
            found = fence(tables, worker, lease)
            return revoked(tables, worker) if found.revoked else frozenset()

    def fenced_out(self, worker: int, runs: Sequence[int]) -> None:
        """Journal that what a worker did about runs was dropped."""
        with self._connections.write() as tables:
            operations.fenced_out(tables, worker, runs)

    def retire(self, worker: int) -> None:
        """End a worker; what it still holds is given back."""
        with self._connections.news() as tables:
            upkeep.retire(tables, worker)

    def sweep(self, *, deliveries: int) -> Swept:
        """Take over from the dead, wake the sleeping, time out the late."""
        with self._connections.news() as tables:
            return upkeep.sweep(tables, deliveries)

    def listen(self, timeout: float) -> None:
        """Return when there may be something to claim."""
        self._connections.here.bell.listen(timeout, self._connections.version)

    def rouse(self) -> None:
        """Let every `listen` of this object return."""
        self._connections.here.bell.ring()

    # Reading.

    def find(self, submitter: str, number: str) -> int | None:
        """Return the id of the run with that identity."""
        with self._connections.read() as tables:
            return reading.find(tables, submitter, number)

    def status(self, run: int) -> RunStatus | None:
        """Return a run's status."""
        with self._connections.read() as tables:
            return reading.status(tables, run)

    def context(self, run: int) -> bytes | None:
        """Return the last recorded context of the outer thread."""
        with self._connections.read() as tables:
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
        with self._connections.read() as tables:
            return reading.runs(tables, filters, after, limit, newest=newest)

    def signals(self, runs: Sequence[int]) -> dict[int, list[Signal]]:
        """Return the signals to these runs that were not consumed yet, in order."""
        with self._connections.read() as tables:
            return reading.signals(tables, runs)

    def history(self, run: int) -> list[Entry]:
        """Return a run's journal."""
        with self._connections.read() as tables:
            return reading.history(tables, run)

    def counts(self) -> dict[str, int]:
        """Return how many runs are in each state."""
        with self._connections.read() as tables:
            return reading.counts(tables)

    # Operating.

    def cancel(self, run: int, *, who: str, why: str) -> bool:
        """Ask for the end of an open run."""
        with self._connections.news() as tables:
            return operations.cancel(tables, run, who, why)

    def retry(self, run: int, *, who: str, why: str, done: bool = False) -> bool:
        """Let a failed or suspended run go on from the step that failed."""
        with self._connections.news() as tables:
            return operations.retry(tables, run, who, why, done)

    def drop(self, run: int, *, who: str, why: str) -> bool:
        """Give a suspended run up as failed."""
        with self._connections.news() as tables:
            return operations.drop(tables, run, who, why)

    def purge(self, before: float, *, limit: int = 1000) -> int:
        """Drop the contexts and bodies of runs that ended before."""
        with self._connections.write() as tables:
            return operations.purge(tables, before, limit)

    def doctor(self) -> Iterable[Violation]:
        """Check the invariants of the tables."""
        with self._connections.read() as tables:
            return list(examine(tables))
