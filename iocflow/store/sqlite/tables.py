"""One open transaction of SQLite, for the operations that both dialects share."""

from __future__ import annotations

import functools
import json
import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from iocflow.store.sql.tables import HELD, Held


@functools.cache
def dialect(sql: str) -> str:
    """Return a shared text as SQLite has it: a list of numbers is JSON, and no rows are locked."""
    sql = re.sub(r"in \[(\w+)\]", r"in (select value from json_each(:\1))", sql)
    return sql.replace("{lock}", "").replace("{skip}", "")


class SqliteTables:
    """One open transaction; the whole file is locked while it writes."""

    def __init__(self, connection: sqlite3.Connection, now: float) -> None:
        """Take the connection, on which a transaction was begun."""
        cursor = connection.cursor()
        cursor.row_factory = None  # a caller's connection may have one
        self.sql = cursor.execute
        self.now = now

    def execute(self, sql: str, values: dict[str, Any]) -> sqlite3.Cursor:
        """Execute a shared text."""
        for name, value in values.items():
            if isinstance(value, list):
                values[name] = json.dumps(value)
        return self.sql(dialect(sql), values)

    def row(self, sql: str, **values: Any) -> Sequence[Any] | None:
        """Return the first row of a query."""
        row: Sequence[Any] | None = self.execute(sql, values).fetchone()
        return row

    def rows(self, sql: str, **values: Any) -> list[Sequence[Any]]:
        """Return all rows of a query."""
        return self.execute(sql, values).fetchall()

    def write(self, sql: str, **values: Any) -> int:
        """Execute a change; return how many rows it changed."""
        return self.execute(sql, values).rowcount

    def hold(self, run: int, *, revoke: bool) -> Held | None:  # noqa: ARG002 - no row has to be locked here
        """Read a run with its group."""
        row = self.row(HELD, run=run)
        return None if row is None else Held(*row)

    def lock_groups(self, groups: list[int]) -> None:
        """Do nothing: nobody else writes."""

    def dead(self) -> list[int]:
        """Return the workers whose lease ran out."""
        return [worker for (worker,) in self.rows("select id from worker where lease < :now order by id", now=self.now)]

    def version(self) -> int:
        """Return a number that changes when another connection has written to the file."""
        (version,) = self.sql("pragma data_version").fetchone()
        return int(version)
