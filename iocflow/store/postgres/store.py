"""A store in a PostgreSQL database, for the processes of many machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from iocflow.store.contract import (
    Accepted,
    Batch,
    Receipt,
    StepTransaction,
    Submission,
    Swept,
)
from iocflow.store.postgres.attach import attach
from iocflow.store.postgres.caller import Callers
from iocflow.store.postgres.commit import Committer, fenced
from iocflow.store.postgres.connections import TUNED, Address, Connection, Connections
from iocflow.store.postgres.errors import told
from iocflow.store.postgres.listen import Bell
from iocflow.store.postgres.pipeline import Pipelines
from iocflow.store.postgres.relay import RelayLock
from iocflow.store.postgres.schema import prepare
from iocflow.store.postgres.sql import for_driver
from iocflow.store.postgres.step import PostgresStep, StepConnection, stepping
from iocflow.store.postgres.submit import NOTIFY, Submitter
from iocflow.store.postgres.tables import PostgresTables
from iocflow.store.sql import upkeep
from iocflow.store.sql.store import SqlStore

T = TypeVar("T")

_SILENT = "delete from idle where pid not in (select a.pid from pg_stat_activity a)"
"""Who was killed while it waited for work is not waiting any more."""

PATIENCE = 5.0
"""Seconds for which a server that does not answer is tried again, before a call gives up."""


def open_url(url: str, *, create: bool = True) -> PostgresStore:
    """Open `postgresql://user@host/database`; `?schema=name` is where the tables are, `iocflow` when it is not given.

    Raises:
        StoreUrlError: It is no such URL, or there is no store and none is to be made.
    """
    return PostgresStore(url, create=create)


def check_url(url: str) -> None:
    """Refuse a URL that PostgreSQL does not understand; nobody is asked whether there is such a database.

    Raises:
        StoreUrlError: With what to write instead.
    """
    Address.parse(url)


def without_password(url: str) -> str:
    """Return a URL as it may be told."""
    parts = urlsplit(url)
    who, at, where = parts.netloc.rpartition("@")
    options = urlencode([one for one in parse_qsl(parts.query) if one[0] != "password"], quote_via=quote)
    return f"{parts.scheme}://{who.partition(':')[0]}{at}{where}{parts.path}{options and '?'}{options}"


class PostgresStore(SqlStore):
    """The tables in one schema of a database. Every method is what the contract says.

    It needs a session of its own with the server: not through a pooler that lends one for a transaction only.
    """

    def __init__(
        self,
        url: str,
        *,
        offset: Callable[[], float] = float,
        patience: float = PATIENCE,
        create: bool = True,
    ) -> None:
        """Open the store; with `create`, make its tables when there are none.

        Args:
            url: See `open_url`.
            offset: Seconds to add to the server's clock, for tests.
            patience: Seconds for which a server that does not answer is tried again, before a call gives up.
            create: Whether to make the schema and the tables.

        Raises:
            StoreError: It cannot be opened, is no store, or a newer one.
        """
        address = Address.parse(url)
        self.url = without_password(url)
        self._offset = offset
        self._schema = address.schema
        channel = f"iocflow {address.schema}".replace('"', "")
        self._connections = Connections(address.conninfo, patience=patience)
        self._wires = Connections(address.conninfo, patience=patience, prepares=False, settings=TUNED)
        self._steps = Connections(address.conninfo, patience=patience, prepares=False, kind=StepConnection)
        self._listeners = Connections(address.conninfo, patience=patience)
        self._callers = Callers(self._connections, address.schema)
        self._pipelines = Pipelines()
        self._submitter = Submitter(address.schema, channel, self._pipelines)
        self._committer = Committer(self._wires, self._pipelines, address.schema, channel, self._upkeep)
        self._bell = Bell(self._listeners, address.schema, channel)
        self._relay = RelayLock(self._listeners, address.schema)
        self._notify = for_driver(NOTIFY, address.schema), {"channel": channel}
        try:
            with self._connections.use() as connection:
                prepare(connection, address.schema, create=create)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close what is open."""
        self._bell.ring()
        self._relay.release()
        for connections in (self._connections, self._wires, self._steps, self._listeners):
            connections.close()

    def now(self) -> float:
        """Return the store's time: that of the server."""
        with self._connections.use() as connection:
            return self._tables(connection).now

    # Submitting.

    def submit(self, runs: Sequence[Submission], *, transaction: Any = None) -> list[Accepted]:
        """Add runs, all or none."""
        if not runs:
            return []
        shift = self._offset()
        if transaction is not None:
            with told():
                return self._submitter.submit_within(self._callers.connection(transaction), runs, shift)
        return self._wires.transact(lambda connection: self._submitter.submit(connection, runs, shift))

    # Working.

    def plan(self, hash: str, processor: str, plan: str) -> int:
        """Return the id of a plan, storing it when it is new."""

        def work(tables: PostgresTables) -> int:
            tables.write(
                "insert into plan(hash, processor, plan) values (:hash, :processor, :plan) on conflict do nothing",
                hash=hash,
                processor=processor,
                plan=plan,
            )
            row = tables.row("select id from plan where hash = :hash", hash=hash)
            assert row is not None
            return int(row[0])

        return self._write(work)

    def register(self, lease: float, host: str, pid: int) -> int:
        """Return the id of a new worker."""

        def work(tables: PostgresTables) -> int:
            row = tables.row(
                "insert into worker(lease, host, pid, began) values (:lease, :host, :pid, :now) returning id",
                lease=tables.now + lease,
                host=host,
                pid=pid,
                now=tables.now,
            )
            assert row is not None
            return int(row[0])

        return self._write(work)

    def commit(self, worker: int, batch: Batch, *, lease: float) -> Receipt:
        """Do all of the batch, and extend the lease when a third of it has passed."""
        rung = self._bell.rung
        receipt = self._committer.commit(worker, batch, lease=lease, shift=self._offset())
        if batch.claim and not receipt.more:
            self._bell.note(rung)
        return receipt

    @contextmanager
    def begin(self, worker: int, *, lease: float) -> Iterator[StepTransaction]:
        """Begin the transaction of one step."""

        def commit(connection: Connection, batch: Batch) -> Receipt:
            return self._committer.commit_step(connection, worker, batch, lease=lease, shift=self._offset())

        with stepping(self._steps) as connection:
            with told():
                self._committer.begin_step(connection, worker)
            yield PostgresStep(connection, self._committer.undo_step, commit)

    def beat(self, worker: int, *, lease: float) -> frozenset[int]:
        """Extend the lease; return the runs that were taken from this worker since."""

        def work(tables: PostgresTables) -> frozenset[int]:
            lived = tables.write(
                "update worker set lease = :lease where id = :worker", lease=tables.now + lease, worker=worker
            )
            if not lived:
                raise fenced(worker)
            return frozenset(
                run for (run,) in tables.rows("select run from revoked where worker = :worker", worker=worker)
            )

        return self._write(work)

    def retire(self, worker: int) -> None:
        """End a worker; what it still holds is given back."""

        def work(tables: PostgresTables) -> None:
            tables.row("select id from worker where id = :worker for update", worker=worker)
            upkeep.retire(tables, worker)

        self._write(work)
        self._committer.forget(worker)

    def sweep(self, *, deliveries: int, by: int = 0) -> Swept:
        """Take over from the dead, wake the sleeping, time out the late."""
        timeouts = self._upkeep()
        blamed: list[list[bool]] = []
        while (found := self._write(lambda tables: self._take_over(tables, deliveries, by))) is not None:
            blamed.append(found)
        self._write(lambda tables: tables.write(_SILENT))
        return Swept(len(blamed), sum(map(len, blamed)), sum(map(sum, blamed)), timeouts)

    def listen(self, timeout: float) -> None:
        """Return when there may be something to claim."""
        self._bell.listen(timeout, self._offset())

    def rouse(self) -> None:
        """Let every `listen` of this object return."""
        self._bell.ring()

    # Transactions.

    def _write(self, work: Callable[[PostgresTables], T]) -> T:
        """Return what `work` does in one transaction; it is done again when it was in the way of another one."""

        def telling(connection: Connection) -> T:
            with connection.transaction():
                result = work(self._tables(connection))
                connection.execute(*self._notify)
                return result

        return self._connections.transact(telling)

    def _note(self, work: Callable[[PostgresTables], T]) -> T:
        """Return what `work` does in one transaction, which is no news to who waits for work."""

        def silent(connection: Connection) -> T:
            with connection.transaction():
                return work(self._tables(connection))

        return self._connections.transact(silent)

    def _tables(self, connection: Connection) -> PostgresTables:
        return PostgresTables(connection, self._schema, self._offset())

    @contextmanager
    def _read(self) -> Iterator[PostgresTables]:
        """Lend tables that do not change while they are read."""
        with self._connections.use() as connection, connection.transaction():
            connection.execute("set transaction isolation level repeatable read read only")
            yield self._tables(connection)

    def _upkeep(self) -> int:
        """Do what has to be done before anything is claimed; return how many runs were timed out.

        Each is a transaction of its own, so that none has to lock a worker when it has locked a group.
        """
        self._write(attach)
        self._write(upkeep.wake)
        late = self._write(upkeep.late)
        return sum([self._write(partial(upkeep.time_out, run=run)) for run in late])

    @staticmethod
    def _take_over(tables: PostgresTables, deliveries: int, by: int) -> list[bool] | None:
        """Take over from one dead worker; None when there is none."""
        dead = [worker for worker in tables.dead() if worker != by]
        return upkeep.take_over(tables, dead[0], deliveries) if dead else None
