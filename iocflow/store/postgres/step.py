"""The transaction of one step in mode `transactional`, on a connection that user code works with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import psycopg
from psycopg import errors, pq
from psycopg.rows import tuple_row

from iocflow.store.contract import Batch, Receipt
from iocflow.store.errors import StoreError, TransactionError
from iocflow.store.postgres.connections import Connection, Connections
from iocflow.store.postgres.errors import told

ENDED = "the activity ended the transaction of its step; iocflow does that, together with the step's record"
FAILED = "the activity went on after an error of the database, which had given up the transaction of the step"


class StepConnection(Connection):
    """A connection whose transaction is not its user's to end."""

    def commit(self) -> NoReturn:
        """Refuse it."""
        raise TransactionError(ENDED)

    rollback = commit
    __enter__ = commit


def roll_back(connection: Connection) -> None:
    """Roll back on whatever kind of connection."""
    Connection.rollback(connection)


class PostgresStep:
    """One transaction of one step.

    Attributes:
        connection: Where user code works; what it sets there beyond the transaction stays for later steps.
    """

    def __init__(
        self,
        connection: Connection,
        undo: Callable[[Connection], object],
        commit: Callable[[Connection, Batch], Receipt],
    ) -> None:
        """Take the connection, on which a transaction and its savepoint were begun, and what ends it."""
        self.connection = connection
        self._undo = undo
        self._commit = commit

    def undo(self) -> None:
        """Roll back what the activity did."""
        with _noticed():
            self._undo(self.connection)

    def commit(self, batch: Batch) -> Receipt:
        """Write the batch and commit; a run that was taken away meanwhile is given up, and is in `dropped`."""
        with _noticed():
            return self._commit(self.connection, batch)

    def rollback(self) -> None:
        """Give all of it up."""
        with told():
            roll_back(self.connection)


@contextmanager
def stepping(connections: Connections) -> Iterator[Connection]:
    """Lend a connection for one step, as it was when it was new; after an error of the store it is not used again."""
    with told():
        connection = connections.take()
    connection.row_factory = tuple_row
    connection.cursor_factory = psycopg.Cursor
    try:
        yield connection
    except StoreError:
        connection.close()
        raise
    finally:
        if connection.info.transaction_status not in (pq.TransactionStatus.IDLE, pq.TransactionStatus.UNKNOWN):
            with told():
                roll_back(connection)
        connections.give_back(connection)


@contextmanager
def _noticed() -> Iterator[None]:
    """Tell what the activity did to its transaction."""
    try:
        with told():
            yield
    except StoreError as error:
        if isinstance(error.__cause__, errors.InFailedSqlTransaction):
            raise TransactionError(FAILED) from error
        if isinstance(error.__cause__, (errors.InvalidSavepointSpecification, errors.NoActiveSqlTransaction)):
            raise TransactionError(ENDED) from error
        raise
