"""Polling a database: rows of a query become seeds, each of them once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from iocflow.activities.database import Connection, DatabaseSource, as_database, check_name, rows_of
from iocflow.activities.errors import DatabaseError
from iocflow.activity import Activity

__all__ = ["PollQuery"]

_CURSOR_KEPT = "key"


class PollQuery(Activity[Any]):
    """Makes a seed of every row that a query returns and that was not handed over before.

    The keys of the rows that were handed over are kept in a table of the same database, so that a row which is
    committed late, behind rows with higher numbers, is found all the same. The database must know `ON CONFLICT`, as
    SQLite and PostgreSQL do.

    It serves in two places. As the *first activity* of a processor it loads one row into the context, or says that
    there is nothing to do; the row counts as handed over when its run begins, and two daemons never get the same one.
    As the *polling bean* of a launcher, `poll` yields a seed a row; the row counts as handed over once its run has
    ended, so that a crash repeats the row rather than loses it.
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
    ) -> None:
        """Take the query; nothing is opened yet.

        Args:
            database: A SQLite path or URL, a function that returns a new DB-API connection, or a `Database`.
            query: A SELECT with the oldest row first. All rows are read at each poll: keep it to the recent ones by a
                condition, not by a LIMIT, which rows that were handed over would fill.
            key: The column that identifies a row. The seed is made of all other columns; select the key twice, under
                another name, when the seed needs it.
            params: The query's parameters, as the driver takes them.
            cursor: The name under which the keys are kept; the activity's name unless given.
            table: The table they are kept in, created at first use.
            batch: At most so many rows in one `poll`.

        Raises:
            ValueError: A name cannot stand in SQL, or `batch` is less than 1.
        """
        if batch < 1:
            raise ValueError(f"batch must be at least 1, not {batch}")
        self.database = as_database(database)
        self.query = query
        self.key = check_name(key, "key")
        self.params = params
        self.cursor = cursor
        self.table = check_name(table, "table")
        self.batch = batch

    def execute(self, context: Any) -> None:
        """Load the oldest new row into the context, or say that there is nothing to do.

        The row counts as handed over from here on, also when it makes no seed: its run then fails with a `SeedError`,
        and the next poll goes on to the next row. Another attempt of the step loads the same row again.
        """
        memo, remaining = context.step.memo, context.step.remaining()
        for key, row in self._new_rows(remaining, again=memo.get(_CURSOR_KEPT)):
            if key == memo.get(_CURSOR_KEPT) or self._hand_over(key, remaining):
                memo[_CURSOR_KEPT] = key
                context.set_seed_data(self.seed_of(row))
                return
        context.nothing_to_do()

    def poll(self) -> Iterator[object]:
        """Yield a seed for each new row, oldest first; each counts as handed over when the next one is asked for.

        Called by a launcher at every tick. One that ends before it asks for the next seed gets the same seed again.
        """
        for key, row in self._new_rows(None):
            yield self.seed_of(row)
            self._hand_over(key, None)

    def seed_of(self, row: Mapping[str, Any]) -> object:
        """Return the seed that `row` makes: its columns but the key. Override it for another shape."""
        return {name: value for name, value in row.items() if name != self.key}

    def _new_rows(self, remaining: float | None, again: str | None = None) -> list[tuple[str, dict[str, Any]]]:
        """Return the first rows that were not handed over, or whose key is `again`; no connection stays open."""
        with self.database.connect(remaining) as connection:
            self._create_table(connection)
            cursor = connection.cursor()
            cursor.execute(self.query, self.params)
            return list(dict(self._unseen(connection, rows_of(cursor), again)).items())

    def _unseen(
        self, connection: Connection, rows: Iterator[dict[str, Any]], again: str | None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield at most `batch` of the rows whose keys are not in the table, asking it for many keys at once."""
        left = self.batch
        while left and (some := {self._key_of(row): row for row in itertools.islice(rows, 100)}):
            marks = ", ".join("?" * len(some))
            seen = connection.cursor()
            seen.execute(
                self.database.marked(f"SELECT row_key FROM {self.table} WHERE poll = ? AND row_key IN ({marks})"),
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
                    f"INSERT INTO {self.table} (poll, row_key, polled_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
                ),
                (self.cursor or self.name, key, datetime.now(UTC).isoformat()),
            )
            return bool(cursor.rowcount == 1)

    def _create_table(self, connection: Connection) -> None:
        connection.cursor().execute(
            f"CREATE TABLE IF NOT EXISTS {self.table} (poll VARCHAR(200) NOT NULL, row_key VARCHAR(200) NOT NULL,"
            " polled_at VARCHAR(40) NOT NULL, PRIMARY KEY (poll, row_key))"
        )
