"""Many rows in few statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from typing import Any

from iocflow.store.sqlite.tables import SqliteTables

CHUNK = 1024
"""How many rows one statement inserts at most: SQLite takes 32,766 parameters."""


@cache
def _text(into: str, rows: int) -> str:
    row = f"({','.join('?' * (into.count(',') + 1))})"
    return f"insert into {into} values {','.join([row] * rows)}"


def insert(tables: SqliteTables, into: str, rows: Sequence[Iterable[Any]]) -> None:
    """Insert rows into `table(columns)`, in chunks of powers of two, so that there are few texts to compile."""
    at, count = 0, len(rows)
    while at < count:
        size = min(CHUNK, 1 << (count - at).bit_length() - 1)
        tables.sql(_text(into, size), list(chain.from_iterable(rows[at : at + size])))
        at += size
