"""The transaction of a caller, in which runs are submitted together with what the caller writes itself."""

from __future__ import annotations

import inspect
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from iocflow.store.errors import TransactionError
from iocflow.store.sqlite.connections import rollback
from iocflow.store.sqlite.errors import translated
from iocflow.store.sqlite.tables import SqliteTables


@contextmanager
def within(transaction: Any, path: Path, now: float) -> Iterator[SqliteTables]:
    """Work in the caller's transaction, all or nothing of it; nothing is committed.

    Where the connection would open a transaction by itself at the first write, it is opened now.

    Raises:
        TransactionError: It is no connection to the store's file, or would commit each statement.
    """
    connection = _connection_of(transaction)
    with translated(path):
        _check(connection, path)
        began = not connection.in_transaction
        if began:
            if connection.isolation_level is None:
                raise TransactionError("the connection commits each statement by itself: begin a transaction first")
            connection.execute("begin immediate")
        try:
            connection.execute("savepoint iocflow_submit")
            yield SqliteTables(connection, now)
            connection.execute("release iocflow_submit")
        except BaseException:
            if began:
                rollback(connection)
            elif connection.in_transaction:
                connection.execute("rollback to iocflow_submit")
                connection.execute("release iocflow_submit")
            raise


def _connection_of(transaction: Any) -> sqlite3.Connection:
    """Return the driver's connection: itself, or what a connection or session of SQLAlchemy has under it."""
    while not isinstance(transaction, sqlite3.Connection):
        if inspect.ismethod(begun := getattr(transaction, "in_transaction", None)) and not begun():
            transaction.begin()  # else its own commit would do nothing
        inner = getattr(transaction, "driver_connection", None) or getattr(transaction, "connection", None)
        if inner is None:
            raise TransactionError("no connection to SQLite, by itself or of SQLAlchemy")
        transaction = inner() if inspect.ismethod(inner) else inner
    return transaction


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a connection whose main database is another file."""
    cursor = connection.cursor()
    cursor.row_factory = None
    (file,) = cursor.execute("select file from pragma_database_list where name = 'main'").fetchone()
    if file and Path(os.fsdecode(file)).samefile(path):
        return
    raise TransactionError(f"the connection is not to the store's own file {path}")
