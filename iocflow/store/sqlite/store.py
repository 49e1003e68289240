"""A store in one SQLite file, for the threads and processes of one machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from iocflow.store.contract import (
    Accepted,
    Batch,
    Receipt,
    StepTransaction,
    Submission,
    Swept,
)
from iocflow.store.errors import StoreUrlError
from iocflow.store.sql import upkeep
from iocflow.store.sql.store import SqlStore
from iocflow.store.sqlite.caller import within
from iocflow.store.sqlite.commit import commit, fence, revoked
from iocflow.store.sqlite.connections import Connections
from iocflow.store.sqlite.daemon import DaemonLock, FileLock
from iocflow.store.sqlite.schema import open_file
from iocflow.store.sqlite.step import begin
from iocflow.store.sqlite.submit import submit
from iocflow.store.sqlite.tables import SqliteTables
from iocflow.wiring import did_you_mean

T = TypeVar("T")

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


class SqliteStore(SqlStore):
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
        file = self._connections.path
        self._lock: DaemonLock = DaemonLock(file)
        self._relay = FileLock(file.with_name(file.name + "-relay"))

    def close(self) -> None:
        """Close what is open."""
        self._lock.release()
        self._relay.release()
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
        return self._connections.here.intake.submit(runs, self._add)

    def _add(self, runs: Sequence[Submission]) -> list[Accepted]:
        with self._connections.news() as tables:
            return submit(tables, runs)

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

    def retire(self, worker: int) -> None:
        """End a worker; what it still holds is given back."""
        with self._connections.news() as tables:
            upkeep.retire(tables, worker)

    def sweep(self, *, deliveries: int, by: int = 0) -> Swept:
        """Take over from the dead, wake the sleeping, time out the late."""
        with self._connections.news() as tables:
            return upkeep.sweep(tables, deliveries, by)

    def listen(self, timeout: float) -> None:
        """Return when there may be something to claim."""
        self._connections.here.bell.listen(timeout, self._connections.version)

    def rouse(self) -> None:
        """Let every `listen` of this object return."""
        self._connections.here.bell.ring()

    # Transactions.

    def _read(self) -> AbstractContextManager[SqliteTables]:
        """Lend tables that do not change while they are read."""
        return self._connections.read()

    def _write(self, work: Callable[[SqliteTables], T]) -> T:
        """Return what `work` does in one transaction, and tell who waits for work."""
        with self._connections.news() as tables:
            return work(tables)

    def _note(self, work: Callable[[SqliteTables], T]) -> T:
        """Return what `work` does in one transaction, which is no news to who waits for work."""
        with self._connections.write() as tables:
            return work(tables)
