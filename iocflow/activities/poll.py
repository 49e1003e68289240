"""Polling a database: rows of a query become seeds, each of them once."""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from iocflow.activities.arguments import Rule, complaints, demanded, keep
from iocflow.activities.database import Connection, DatabaseSource, as_database, check_name, quoted, rows_of
from iocflow.activities.errors import DatabaseError
from iocflow.activity import Activity
from iocflow.errors import SeedError

__all__ = ["PollQuery"]

logger = logging.getLogger("iocflow.poll")

_CURSOR_KEPT = "key"
_READS = re.compile(r"(\s|\(|--[^\n]*\n|/\*.*?\*/)*(SELECT|WITH|VALUES)\b", re.IGNORECASE | re.DOTALL)


class PollQuery(Activity[Any]):
    """Makes a seed of every row that a query returns and that was not handed over before.

    The keys of the rows that were handed over are kept in a table of the same database, so that a row which is
    committed late, behind rows with higher numbers, is found all the same. The database must know `ON CONFLICT`, as
    SQLite and PostgreSQL do. The query itself can change nothing.

    It serves in two places. As the *first activity* of a processor it loads one row into the context, or says that
    there is nothing to do; the row counts as handed over when its run begins, and two daemons never get the same one.
    As the *polling bean* of a launcher, `poll` yields a seed a row; the row counts as handed over once its run has
    ended, so that a crash repeats the row rather than loses it.

    To have a row handed over again, delete its line from the table of the keys, by its columns `poll` and `row_key`.
    """

    def __init__(
        self,
        database: DatabaseSource,
        query: str,
        key: str,
        *,
        params: Sequence[Any] | Mapping[str, Any] = (),
        cursor: str = "",
        table: str = "iocflow_polled",
        batch: int = 100,
        key_in_seed: bool = True,
    ) -> None:
        """Take the query; nothing is opened yet.

        Args:
            database: A SQLite path or URL, a function that returns a new DB-API connection, or a `Database`.
            query: A SELECT with the oldest row first. All rows are read at each poll: keep it to the recent ones by a
                condition, not by a LIMIT, which rows that were handed over would fill.
            key: The column that identifies a row, and is never NULL.
            params: The query's parameters, as the driver takes them.
            cursor: The name under which the keys are kept; the activity's name unless given.
            table: The table they are kept in, created at first use.
            batch: At most so many rows in one `poll`; those that make no seed are not counted.
            key_in_seed: Whether the seed is made of all columns, or of all but the key.

        Raises:
            ValueError: A name cannot stand in SQL, the query is none that only reads, or `batch` is less than 1.
        """
        keep(_rules({"query": query, "key": key, "table": table, "batch": batch}))
        self.database = as_database(database)
        self.query = query
        self.key = key
        self.params = params
        self.cursor = cursor
        self.table = table
        self._table = quoted(table)
        self.batch = batch
        self.key_in_seed = key_in_seed

    @classmethod
    def check_arguments(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Yield what the constructor would refuse."""
        return complaints(_rules(arguments)) if cls.__init__ is PollQuery.__init__ else ()

    def execute(self, context: Any) -> None:
        """Load the oldest new row into the context, or say that there is nothing to do.

        The row counts as handed over from here on; another attempt of the step loads the same one again. A row that
        makes no seed is passed over, told of in an error line of the log, and looked at again by every later poll.

        Raises:
            SeedError: There are rows, but none of them makes a seed.
            DatabaseError: The query failed, writes, or does not select the key.
        """
        memo, remaining = context.step.memo, context.step.remaining()
        again, refused = memo.get(_CURSOR_KEPT), dict[str, SeedError]()
        for key, row in self._until(refused, remaining, again):
            try:
                context.set_seed_data(self.seed_of(row))
            except SeedError as error:
                refused[key] = self._refused(key, error)
                continue
            if key == again or self._hand_over(key, remaining):
                memo[_CURSOR_KEPT] = key
                self._log([*refused.values()])
                return
        if refused:
            first, *others = refused.values()
            self._log(others)
            raise first
        context.nothing_to_do()

    def poll(self) -> Iterator[object]:
        """Yield a seed for each new row, oldest first; each counts as handed over when the next one is asked for.

        Called by a launcher at every tick. One that ends before it asks for the next seed gets the same seed again, and
        so does one that throws in the `SeedError` of a run that could not begin: why is in the log then, and the row is
        told beside it.
        """
        left, passed, refused = self.batch, dict[str, SeedError](), list[SeedError]()
        for key, row in self._until(passed):
            try:
                seed = self.seed_of(row)
            except SeedError as error:
                passed[key] = error
                refused.append(self._refused(key, error))
                continue
            self._log(refused)
            refused = []
            try:
                yield seed
            except SeedError as error:
                passed[key] = error
                logger.warning("%s is left for later polls, no run could begin with it%s", *self._row(key, error))
            else:
                self._hand_over(key, None)
                left -= 1
                if not left:
                    return
        self._log(refused)

    def seed_of(self, row: Mapping[str, Any]) -> object:
        """Return the seed that `row` makes: its columns by name. Override it for another shape."""
        return {name: value for name, value in row.items() if self.key_in_seed or name != self.key}

    def _refused(self, key: str, error: SeedError) -> SeedError:
        """Return the error that tells which row makes no seed."""
        row, hint = self._row(key, error)
        return SeedError(f"{row} makes no seed and is left for later polls: {error}{hint}")

    def _row(self, key: str, error: SeedError) -> tuple[str, str]:
        """Return how messages call a row, and what may help against the error that it caused."""
        hint = ""
        if f"seed.{self.key} is " in str(error):
            hint = "; key_in_seed: false takes it out" if self.key_in_seed else "; key_in_seed: true puts it in"
        return f"{self.name}: the row with {self.key} {key!a:.200}", hint

    def _log(self, refused: Sequence[SeedError]) -> None:
        """Tell of the rows that make no seed, of very many only the number."""
        for error in refused[: self.batch]:
            logger.error("%s", error)
        if refused[self.batch :]:
            logger.error("%s: %d more rows make no seed and are left", self.name, len(refused) - self.batch)

    def _until(
        self, passed: Mapping[str, object], remaining: float | None = None, again: str | None = None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the new rows, a batch of them or the next ones behind each batch of which some were `passed` over.

        Otherwise rows that make no seed would fill every batch, and those behind them would never have their turn.
        """
        before = -1
        while len(passed) > before:
            before = len(passed)
            rows = self._new_rows(remaining, again, passed)
            yield from rows
            if len(rows) < self.batch:
                return

    def _new_rows(
        self, remaining: float | None, again: str | None, passed: Mapping[str, object]
    ) -> list[tuple[str, dict[str, Any]]]:
        """Return the first rows that were not handed over or `passed` over, or whose key is `again`; no connection
        stays open.
        """
        with self.database.connect(remaining) as connection:
            self._create_table(connection)
        with self.database.connect(remaining) as connection, self._reading(connection):
            cursor = connection.cursor()
            cursor.execute(self.query, self.params)
            if cursor.description is None:
                raise DatabaseError(f"{self.name}: the query returns no rows, not even none; write a SELECT")
            new = ((key, row) for row in rows_of(cursor) if (key := self._key_of(row)) not in passed)
            return list(dict(self._unseen(connection, new, again)).items())

    @contextlib.contextmanager
    def _reading(self, connection: Connection) -> Iterator[None]:
        """Let the block change nothing: SQLite refuses it, and any other database undoes it."""
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA query_only = ON")
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY:
                raise
            raise DatabaseError(f"{self.name}: the query writes, and a poll only reads; write a SELECT") from error
        finally:
            connection.rollback()

    def _unseen(
        self, connection: Connection, rows: Iterator[tuple[str, dict[str, Any]]], again: str | None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield at most `batch` of the rows whose keys are not in the table, asking it for many keys at once."""
        left = self.batch
        while left and (some := dict(itertools.islice(rows, 100))):
            marks = ", ".join("?" * len(some))
            seen = connection.cursor()
            seen.execute(
                self.database.marked(f"SELECT row_key FROM {self._table} WHERE poll = ? AND row_key IN ({marks})"),
                (self.cursor or self.name, *some),
            )
            known = {key for (key,) in seen.fetchall()} - {again}
            fresh = [(key, row) for key, row in some.items() if key not in known][:left]
            left -= len(fresh)
            yield from fresh

    def _key_of(self, row: Mapping[str, Any]) -> str:
        value = row.get(self.key)
        if value is None:
            why = "is NULL" if self.key in row else f"is none of {', '.join(row)}"
            raise DatabaseError(f"{self.name}: the key column {self.key} {why}; name a column that is always set")
        return str(value)

    def _hand_over(self, key: str, remaining: float | None) -> bool:
        """Note that the row was handed over; tell whether nobody else did so before."""
        with self.database.connect(remaining) as connection:
            cursor = connection.cursor()
            cursor.execute(
                self.database.marked(
                    f"INSERT INTO {self._table} (poll, row_key, polled_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
                ),
                (self.cursor or self.name, key, datetime.now(UTC).isoformat()),
            )
            return bool(cursor.rowcount == 1)

    def _create_table(self, connection: Connection) -> None:
        connection.cursor().execute(
            f"CREATE TABLE IF NOT EXISTS {self._table} (poll VARCHAR(200) NOT NULL, row_key VARCHAR(200) NOT NULL,"
            " polled_at VARCHAR(40) NOT NULL, PRIMARY KEY (poll, row_key))"
        )


def _rules(given: Mapping[str, Any]) -> Iterator[Rule]:
    """Yield the rules about the arguments that are `given`."""
    if "database" in given:
        yield "database", partial(as_database, given["database"])
    for name in ("key", "table"):
        if name in given:
            yield name, partial(check_name, given[name], name)
    if "query" in given:
        why = "a poll only reads, and this begins with none of SELECT, WITH and VALUES; write a SELECT"
        yield demanded("query", _READS.match(given["query"]), why)
    if "batch" in given:
        yield demanded("batch", given["batch"] >= 1, f"it must be at least 1, not {given['batch']}")
