"""A SQLite file becomes a store, or one of this version."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from iocflow.store.errors import StoreVersionError
from iocflow.store.sql.schema import MIGRATIONS, VIEWS
from iocflow.store.sqlite.connections import Connections
from iocflow.store.sqlite.errors import translated
from iocflow.store.sqlite.tables import SqliteTables

WORDS = {
    "id": "integer primary key autoincrement",
    "run": "integer primary key",
    "key": "integer primary key",
    "data": "blob",
}
"""What the words of the schema are in SQLite; a run is given the next number, for no row of one is ever deleted."""

OLDEST = (3, 33)
"""The first SQLite that can update from a query."""

_OTHER = "name another file"


def open_file(connections: Connections, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Make a file a store of this version; one that is, is only read.

    Raises:
        StoreError: Its folder cannot be made.
        StoreVersionError: It is newer, or SQLite too old, or it has a table of its own by a name of the store's.
    """
    if sqlite3.sqlite_version_info < OLDEST:
        raise StoreVersionError(f"SQLite {sqlite3.sqlite_version} is too old: a store needs 3.33")
    path = connections.path
    with translated(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        with connections.read() as tables:
            found = version_of(tables, path)
            check(found, len(migrations), path)
        if found == len(migrations):
            return
    with connections.write() as tables:
        migrate(tables, path, migrations)


def version_of(tables: SqliteTables, path: Path) -> int:
    """Return the version of the store in a file; 0 when there is none yet.

    Raises:
        StoreVersionError: The file has a table `meta` that is none of a store's.
    """
    if tables.sql("select 1 from sqlite_master where name = 'meta'").fetchone() is None:
        return 0
    try:
        row = tables.sql("select version from meta").fetchone()
    except sqlite3.OperationalError as error:
        raise StoreVersionError(f"{path} has a table of its own named meta ({error}); {_OTHER}") from error
    if row is None or not isinstance(row[0], int):
        raise StoreVersionError(f"{path} has a table of its own named meta; {_OTHER}")
    return row[0]


def check(found: int, known: int, path: Path) -> None:
    """Refuse a store that is newer than this program."""
    if found > known:
        raise StoreVersionError(
            f"the store {path} has version {found}, this program knows {known} at most; update iocflow"
        )


def migrate(tables: SqliteTables, path: Path, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Bring the file up to the version that `migrations` lead to, within the transaction that is open."""
    found = version_of(tables, path)
    check(found, len(migrations), path)
    if found == len(migrations):
        return
    for view in VIEWS:
        tables.sql(f"drop view if exists {view}")
    try:
        for statement in (statement for statements in migrations[found:] for statement in statements):
            tables.sql(statement.format_map(WORDS))
    except sqlite3.OperationalError as error:
        if found == 0 and "already exists" in str(error):
            raise StoreVersionError(f"{path} is no store, and has a name of a store's ({error}); {_OTHER}") from error
        raise
    for view, text in VIEWS.items():
        tables.sql(f"create view {view} as {text}")
    tables.sql("delete from meta")
    tables.sql("insert into meta(version) values (?)", (len(migrations),))
