"""The stores that the contract suite runs over, and how it opens, moves and looks into each.

To run it over a further store, write a class like `SqliteKit` and add it to `KITS`.
"""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from iocflow.store.contract import Store
from iocflow.store.postgres.connections import Address
from iocflow.store.postgres.store import PostgresStore
from iocflow.store.sqlite.store import SqliteStore


class Kit(ABC):
    """One empty database of a kind of store, for one test; its clock runs, and can be moved on.

    Attributes:
        url: What `open_store` opens the same database by, in another process, with the clock not moved.
        healthy: Whether the doctor has to find nothing when the test has ended.
    """

    url: str
    healthy = True

    def __init__(self) -> None:
        """Start with nothing open."""
        self._open: list[Store] = []

    @abstractmethod
    def make(self) -> Store:
        """Open the database once more."""

    @abstractmethod
    def advance(self, seconds: float) -> None:
        """Move the clock of all that were opened here."""

    @abstractmethod
    def sql(self, text: str) -> list[Sequence[Any]]:
        """Do with the tables what no store would; return the rows of a query."""

    def open(self) -> Store:
        """Open the database once more; it is closed when the test has ended."""
        store = self.make()
        self._open.append(store)
        return store

    def close(self) -> None:
        """Let the doctor look, and close all that was opened."""
        found = list(self._open[0].doctor()) if self._open and self.healthy else []
        for store in self._open:
            store.close()
        assert found == []


class SqliteKit(Kit):
    """A SQLite file."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        """Take a file in the test's own folder."""
        super().__init__()
        folder: Path = request.getfixturevalue("tmp_path")
        self.path = folder / "store.db"
        self.url = f"sqlite:///{self.path}"
        self._moved = 0.0

    def make(self) -> Store:
        """Open the file."""
        return SqliteStore(self.path, clock=lambda: time.time() + self._moved)

    def advance(self, seconds: float) -> None:
        """Move the clock that the stores were given."""
        self._moved += seconds

    def sql(self, text: str) -> list[Sequence[Any]]:
        """Use a connection of its own."""
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            return connection.execute(text).fetchall()
        finally:
            connection.close()


class PostgresKit(Kit):
    """A schema of its own in the PostgreSQL of the test session."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        """Take the test's own schema."""
        super().__init__()
        self.url = request.getfixturevalue("postgres_url")
        self._moved = 0.0

    def make(self) -> Store:
        """Open the schema."""
        return PostgresStore(self.url, offset=lambda: self._moved)

    def advance(self, seconds: float) -> None:
        """Move the clock that the stores were given."""
        self._moved += seconds

    def sql(self, text: str) -> list[Sequence[Any]]:
        """Use a connection of its own, on whose search path are the user's schema and the store's."""
        address = Address.parse(self.url)
        with psycopg.connect(address.conninfo, autocommit=True) as connection:
            connection.execute(f"select set_config('search_path', current_schema || ',{address.schema}', false)")
            cursor = connection.execute(text)
            return [*cursor] if cursor.description else []


KITS: dict[str, Callable[[pytest.FixtureRequest], Kit]] = {"sqlite": SqliteKit, "postgres": PostgresKit}
"""The kit of each store; those that need a service are marked in `conftest.py`."""
