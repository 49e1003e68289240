"""The databases that the programs under test work on, and how they are opened at a time that a test chooses."""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from iocflow.store.contract import Store
from iocflow.store.postgres.connections import Address
from iocflow.store.postgres.store import PostgresStore
from iocflow.store.sqlite.store import SqliteStore

if TYPE_CHECKING:  # the children do without it
    import pytest

now = time.time
"""The machine's clock, whatever a program that shifts its own does to `time.time` later."""


class Bench(ABC):
    """One database for one test, with a table of the domain beside those of the store.

    Attributes:
        url: What a store on it is opened by.
        insert: The statement that writes a row of the domain, with the order and the step as parameters.
    """

    url: str
    insert: str

    @abstractmethod
    def rows(self, text: str) -> list[Any]:
        """Execute a statement on a connection of its own, and return what it gives."""

    def domain(self, number: str) -> list[str]:
        """Return the steps that an order has a row for."""
        return [step for (step,) in self.rows(f"select step from {self.table} where number = '{number}'")]

    @property
    @abstractmethod
    def table(self) -> str:
        """The name of the domain's table."""


class SqliteBench(Bench):
    """A file."""

    table = "domain"
    insert = "insert into domain(number, step) values (?, ?)"

    def __init__(self, request: pytest.FixtureRequest) -> None:
        """Make the file's domain in the test's own folder."""
        folder: Path = request.getfixturevalue("tmp_path")
        self.path = folder / "store.db"
        self.url = f"sqlite:///{self.path}"
        self.rows("create table domain(number text, step text)")

    def rows(self, text: str) -> list[Any]:
        """Use a connection of its own."""
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=30)
        try:
            return connection.execute(text).fetchall()
        finally:
            connection.close()


class PostgresBench(Bench):
    """A schema, with the store's tables and the domain's one."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        """Make the domain in the test's own schema."""
        self.url = request.getfixturevalue("postgres_url")
        self._address = Address.parse(self.url)
        self.insert = f"insert into {self.table}(number, step) values (%s, %s)"
        self.rows(f"create schema if not exists {self._address.schema}")
        self.rows(f"create table {self.table}(number text, step text)")

    @property
    def table(self) -> str:
        """The domain's table."""
        return f"{self._address.schema}.domain"

    def rows(self, text: str) -> list[Any]:
        """Use a connection of its own."""
        with psycopg.connect(self._address.conninfo, autocommit=True) as connection:
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else []


BENCHES = {"sqlite": SqliteBench, "postgres": PostgresBench}


def opened(url: str, shift: Callable[[], float] = float) -> Store:
    """Open a store whose clock is shifted by so many seconds."""
    if url.startswith("sqlite:///"):
        return SqliteStore(url.removeprefix("sqlite:///"), clock=lambda: now() + shift())
    return PostgresStore(url, offset=shift)
