"""The transaction of a caller, in which runs are submitted together with what the caller writes itself."""

from __future__ import annotations

import inspect
from typing import Any
from weakref import WeakSet

import psycopg
from psycopg import pq
from psycopg.rows import tuple_row

from iocflow.store.errors import TransactionError
from iocflow.store.postgres.connections import Connections
from iocflow.store.postgres.sql import in_schema

_HERE = "select to_regclass(%s) is not null"
_WHICH = "select identity::text, pg_postmaster_start_time()::text from meta"
"""Which store a connection leads to: a copy of the database has the same identity, but another server."""


class Callers:
    """Knows which connections of callers lead to the store's own tables."""

    def __init__(self, connections: Connections, schema: str) -> None:
        """Know none yet."""
        self._connections = connections
        self._meta = f"{schema}.meta"
        self._which = in_schema(_WHICH, schema)
        self._own: WeakSet[psycopg.Connection[Any]] = WeakSet()

    def connection(self, transaction: Any) -> psycopg.Connection[Any]:
        """Return the driver's connection of a caller, on which a transaction is open or opens with the first statement.

        Raises:
            TransactionError: It leads to another database, would commit each statement, or has failed already.
        """
        connection = _connection_of(transaction)
        status = connection.info.transaction_status
        if connection.closed or status == pq.TransactionStatus.INERROR:
            raise TransactionError("the connection is closed, or its transaction has failed already")
        if connection.autocommit and status == pq.TransactionStatus.IDLE:
            raise TransactionError("the connection commits each statement by itself: begin a transaction first")
        if connection not in self._own:
            if not self._leads_here(connection):
                raise TransactionError("the connection is not to the store's own database")
            self._own.add(connection)
        return connection

    def _leads_here(self, connection: psycopg.Connection[Any]) -> bool:
        with connection.transaction(), psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
            if cursor.execute(_HERE, [self._meta]).fetchone() != (True,):
                return False
            which = cursor.execute(self._which).fetchone()
        with self._connections.use() as own:
            return own.execute(self._which).fetchone() == which


def _connection_of(transaction: Any) -> psycopg.Connection[Any]:
    """Return the driver's connection: itself, or what a connection or session of SQLAlchemy or Django has under it."""
    for _ in range(3):
        if isinstance(transaction, psycopg.Connection):
            break
        if inspect.ismethod(begun := getattr(transaction, "in_transaction", None)) and not begun():
            transaction.begin()  # else its own commit would do nothing
        inner = getattr(transaction, "driver_connection", None) or getattr(transaction, "connection", None)
        transaction = inner() if inspect.ismethod(inner) else inner
    if isinstance(transaction, psycopg.Connection):
        return transaction
    raise TransactionError("no connection of psycopg 3, by itself or of SQLAlchemy")
