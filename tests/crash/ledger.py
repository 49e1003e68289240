"""A fake foreign system: it notes every call with its idempotency key, and does what a key asks for once."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PATIENCE = 60.0
"""Seconds to wait for another caller; one that is stopped in the middle of a call keeps all others waiting."""


class Call(NamedTuple):
    """One call as the foreign system saw it."""

    key: str
    customer: str
    what: str
    pid: int


class Ledger:
    """A file of its own, beside and unknown to the store."""

    def __init__(self, path: Path, takes: float = 0.0) -> None:
        """Take the file, which is made when it is not there, and how many seconds a call takes at most."""
        self.path, self._takes = path, takes
        with self._open() as connection:
            connection.execute("pragma journal_mode = wal")
            connection.execute("create table if not exists call(key, customer, what, pid, at)")
            connection.execute("create table if not exists effect(key unique, customer, what, number)")
            connection.execute("create index if not exists of_customer on effect(customer)")

    def call(self, key: str, customer: str, what: str) -> int:
        """Note the call, do what it asks for if the key is new, and return the effect's number with this customer."""
        self._pause()
        with self._open() as connection:
            connection.execute("begin immediate")
            values = (key, customer, what, os.getpid(), time.time())
            connection.execute("insert into call values (?, ?, ?, ?, ?)", values)
            connection.execute(
                "insert into effect select ?1, ?2, ?3, count(*) + 1 from effect where customer = ?2"
                " on conflict do nothing",
                (key, customer, what),
            )
            (number,) = connection.execute("select number from effect where key = ?", (key,)).fetchone()
            connection.execute("commit")
        self._pause()
        return int(number)

    def _pause(self) -> None:
        """Take a part of the time, some before the effect and some after it."""
        if self._takes:
            time.sleep(random.uniform(0, self._takes / 2))

    def calls(self, customer: str) -> list[Call]:
        """Return the calls for one customer, in order."""
        with self._open() as connection:
            rows = connection.execute(
                "select key, customer, what, pid from call where customer = ? order by rowid", (customer,)
            )
            return [Call(*row) for row in rows]

    def effects(self, customer: str) -> list[str]:
        """Return what took effect for one customer, in order."""
        with self._open() as connection:
            rows = connection.execute("select what from effect where customer = ? order by number", (customer,))
            return [what for (what,) in rows]

    def all_calls(self) -> int:
        """Return how many calls there were."""
        with self._open() as connection:
            (calls,) = connection.execute("select count(*) from call").fetchone()
            return int(calls)

    def all_effects(self) -> list[tuple[str, str]]:
        """Return for whom what took effect, in order."""
        with self._open() as connection:
            return connection.execute("select customer, what from effect order by rowid").fetchall()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=PATIENCE)
        try:
            connection.execute("pragma synchronous = off")
            yield connection
        finally:
            connection.close()
