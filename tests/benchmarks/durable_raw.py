"""The raw limit of a database: commits a second of one row each, by one connection."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

_TABLE = "create table raw_limit(run text, step int, out {data}, primary key(run, step))"
_ROW = b"x" * 200


def raw_commits(url: str, seconds: float) -> float:
    """Return the commits a second that the database of a store makes, with its durability, in a table of its own."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        connection = sqlite3.connect(parts.path[1:] + ".raw", isolation_level=None)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute(_TABLE.format(data="blob"))
        return _rate(connection.execute, "insert into raw_limit values (?, ?, ?)", seconds, connection)
    import psycopg

    connection = psycopg.connect(urlunsplit(parts._replace(query="")), autocommit=True)
    connection.execute("drop table if exists raw_limit")
    connection.execute(_TABLE.format(data="bytea"))
    return _rate(connection.execute, "insert into raw_limit values (%s, %s, %s)", seconds, connection)


def _rate(execute: Callable[..., Any], insert: str, seconds: float, connection: Any) -> float:
    with contextlib.closing(connection):
        commits, began = 0, time.perf_counter()
        while (spent := time.perf_counter() - began) < seconds or not commits:
            execute(insert, (f"r{commits // 5}", commits % 5, _ROW))
            commits += 1
        execute("drop table raw_limit")
        return commits / spent
