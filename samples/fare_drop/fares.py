"""The notifier's database, made and filled at first use, and the poll that finds fares which fell."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from iocflow.activities import Connection, Database, PollQuery
from samples.fare_drop.people import subscribers

__all__ = ["FaresDatabase", "PollFares"]

_VERSION = 1

_TABLES = (
    "CREATE TABLE subscribers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, address TEXT NOT NULL UNIQUE)",
    "CREATE TABLE interests (subscriber_id INTEGER NOT NULL REFERENCES subscribers (id), origin TEXT NOT NULL,"
    " destination TEXT NOT NULL, PRIMARY KEY (origin, destination, subscriber_id))",
    "CREATE TABLE fares (id INTEGER PRIMARY KEY, airline_id INTEGER NOT NULL, airline_name TEXT NOT NULL,"
    " route_id INTEGER NOT NULL, origin TEXT NOT NULL, destination TEXT NOT NULL, cents INTEGER NOT NULL)",
)

# Each line is a fare that an airline published, the latest one last: X-Jet's of BWI to LGA fell by 30.28.
_FARES = (
    (12, "X-Jet", 117, "BWI", "LGA", 149_99),
    (12, "X-Jet", 118, "LGA", "BWI", 151_49),
    (7, "Nordwind & Söhne", 204, "HAM", "OSL", 89_00),
    (7, "Nordwind & Söhne", 205, "OSL", "HAM", 92_50),
    (31, "Aer Inis", 330, "DUB", "BOS", 412_00),
    (31, "Aer Inis", 331, "BOS", "DUB", 398_75),
    (31, "Aer Inis", 331, "BOS", "DUB", 404_75),
    (12, "X-Jet", 117, "BWI", "LGA", 119_71),
)

_FELL = """
    SELECT id, airline_id, airline_name, route_id, origin, destination,
           printf('%d.%02d', (before - cents) / 100, (before - cents) % 100) AS rate_drop
    FROM (SELECT *, lag(cents) OVER (PARTITION BY airline_id, route_id ORDER BY id) AS before FROM fares)
    WHERE cents < before ORDER BY id
"""


class FaresDatabase(Database):
    """A SQLite file with subscribers, what they asked to hear of, fares and the audit trail."""

    def __init__(self, path: str | Path) -> None:
        """Take the path; the file is made, with its folder, at first use."""
        super().__init__(path, create=True)

    @contextlib.contextmanager
    def connect(self, remaining: float | None = None) -> Iterator[Connection]:
        """Open a connection to the database, which is filled when it is new."""
        with super().connect(remaining) as connection:
            _fill_if_new(connection)
            yield connection


class PollFares(PollQuery):
    """Finds the fares that fell since it last looked, the oldest first."""

    def __init__(self, database: str) -> None:
        """Take the path of the database with the fares."""
        super().__init__(FaresDatabase(database), _FELL, key="id", key_in_seed=False)


def _fill_if_new(connection: Connection) -> None:
    """Make the tables and fill them, in one transaction that others wait for."""
    if _version(connection) == _VERSION:
        return
    cursor = connection.cursor()
    cursor.execute("BEGIN IMMEDIATE")
    if _version(connection) != _VERSION:
        for table in _TABLES:
            cursor.execute(table)
        people = list(subscribers())
        cursor.executemany("INSERT INTO subscribers VALUES (?, ?, ?)", [(p.id, p.name, p.address) for p in people])
        cursor.executemany(
            "INSERT INTO interests VALUES (?, ?, ?)", [(p.id, *route) for p in people for route in p.routes]
        )
        cursor.executemany(
            "INSERT INTO fares (airline_id, airline_name, route_id, origin, destination, cents)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            _FARES,
        )
        cursor.execute(f"PRAGMA user_version = {_VERSION}")
    connection.commit()


def _version(connection: Connection) -> int:
    return int(connection.cursor().execute("PRAGMA user_version").fetchone()[0])
