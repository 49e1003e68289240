"""The transaction of one step in mode `transactional`, on a connection that user code works with."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from iocflow.store.contract import Batch, Receipt
from iocflow.store.errors import StoreError, TransactionError
from iocflow.store.sql.operations import fenced_out
from iocflow.store.sqlite.commit import commit_step, fence, lost
from iocflow.store.sqlite.connections import Connections, Process, rollback
from iocflow.store.sqlite.errors import translated
from iocflow.store.sqlite.tables import SqliteTables
from iocflow.store.sqlite.waiting import PATIENCE, SLICE, Turn

ENDED = "the activity ended the transaction of its step; iocflow does that, together with the step's record"


class StepConnection(sqlite3.Connection):
    """A connection whose transaction is not its user's to end."""

    def commit(self) -> NoReturn:
        """Refuse it."""
        raise TransactionError(ENDED)

    rollback = commit
    __enter__ = commit

    def executescript(self, sql_script: str, /) -> NoReturn:  # noqa: ARG002 - it is the base's parameter
        """Refuse it: it commits first."""
        raise TransactionError(f"executescript: {ENDED}")


class SqliteStep:
    """One transaction of one step."""

    def __init__(
        self, tables: SqliteTables, connection: sqlite3.Connection, path: Path, worker: int, lease: float
    ) -> None:
        """Take the connection, on which a transaction and its savepoint were begun, and the file that it is to."""
        self.connection = connection
        self._path = path
        self._tables = tables
        self._worker = worker
        self._lease = lease

    def undo(self) -> None:
        """Roll back what the activity did."""
        self._execute("rollback to iocflow_step")

    def commit(self, batch: Batch) -> Receipt:
        """Write the batch and commit; a run that was taken away meanwhile is given up, and is in `dropped`."""
        self._execute("release iocflow_step")
        with translated(self._path):
            receipt = commit_step(self._tables, self._worker, batch, self._lease)
            if refused := lost(batch, receipt.dropped):
                self.rollback()
                Turn(self._path).at_file(lambda: self.connection.execute("begin immediate"))
                fenced_out(self._tables, self._worker, refused)
            self.connection.execute("commit")
        return receipt

    def rollback(self) -> None:
        """Give all of it up."""
        rollback(self.connection)

    def _execute(self, sql: str) -> None:
        """Execute what fails when the savepoint is gone, and with it the transaction."""
        try:
            self._tables.sql(sql)
        except sqlite3.Error as error:
            self.rollback()
            raise TransactionError(ENDED) from error


@contextmanager
def begin(connections: Connections, worker: int, lease: float) -> Iterator[SqliteStep]:
    """Begin the transaction of one step; nobody else writes until it is left."""
    with connections.turn() as (process, turn):
        with translated(connections.path):
            connection = turn.at_file(lambda: _begun(connections, process))
        try:
            with translated(connections.path):
                tables = SqliteTables(connection, connections.clock())
                fence(tables, worker, lease)
                connection.execute("savepoint iocflow_step")
            yield SqliteStep(tables, connection, connections.path, worker, lease)
        except StoreError:
            # What the activity left behind on the connection is not known: the next step gets a new one.
            process.stepper = None
            rollback(connection)
            connection.close()
            raise
        finally:
            rollback(connection)


def _begun(connections: Connections, process: Process) -> sqlite3.Connection:
    """Return the connection for steps, as it was when it was new, with a transaction begun."""
    if process.stepper is None:
        process.stepper = connections.connect_writer(StepConnection)
    process.stepper.row_factory = None
    process.stepper.text_factory = str
    process.stepper.execute(f"pragma busy_timeout = {round(1000 * SLICE)}")
    process.stepper.execute("begin immediate")
    process.stepper.execute(f"pragma busy_timeout = {round(1000 * PATIENCE)}")  # for what the activity attaches
    return process.stepper
