"""A table of PostgreSQL that rows are taken from, one at a time, each in a transaction of its own."""

from __future__ import annotations

import json
import select
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors, pq, sql

from iocflow.errors import IocflowError
from iocflow.events.postgres_options import WHOLE_ROW, PostgresOptions
from iocflow.events.source import DeadLetter, Reason
from iocflow.launch.errors import ImpossibleSourceError
from iocflow.launch.texts import printable
from iocflow.store.postgres.connections import Connection, Connections

__all__ = ["PostgresLostError", "Row", "Table", "pq"]

_SETTINGS = "set idle_in_transaction_session_timeout = 0; set lock_timeout = 0"
"""A row stays locked for as long as its run takes."""

_COLUMNS = """select a.attname, format_type(a.atttypid, a.atttypmod), a.attgenerated = '', a.attnotnull and exists(
  select 1 from pg_index i where i.indrelid = a.attrelid and i.indisunique and i.indisvalid and i.indpred is null
  and i.indnkeyatts = 1 and i.indkey[0] = a.attnum)
from pg_attribute a where a.attrelid = to_regclass(%s) and a.attnum > 0 and not a.attisdropped order by a.attnum"""

_DEAD = """create table {dead} (number bigint generated always as identity primary key, id text not null,
 failed_at timestamptz not null default now(), body bytea, "row" json not null, reason json not null)"""

_DEAD_COLUMNS = frozenset(("number", "id", "failed_at", "body", "row", "reason"))

_BYTES = """convert_to({column}::text, case getdatabaseencoding() when 'SQL_ASCII' then 'SQL_ASCII' else 'UTF8' end)"""
"""A text as bytes; one that is in no known encoding as it lies there, so that it cannot fail and hold up all others."""

_TEXT = """convert_from(%(body)s, case getdatabaseencoding() when 'SQL_ASCII' then 'SQL_ASCII' else 'UTF8' end)"""
"""The way back. An event is kept once, as bytes: a row as JSON would not take all that a column of JSON does."""

_TRUTH = "boolean"
_TIMES = ("timestamp with time zone", "timestamp without time zone")


class PostgresLostError(IocflowError):
    """The database cannot be reached, or does not do what it is told; the launcher tries again."""


@dataclass(slots=True, eq=False)
class Row:
    """A row that was taken: locked by a transaction on a connection of its own.

    Attributes:
        id: As text.
        body: What the row has as its event, byte for byte; None for NULL.
    """

    connection: Connection
    id: str
    body: bytes | None

    def lost(self) -> bool:
        """Return whether the connection is gone, and the lock with it."""
        poll = select.poll()
        try:
            poll.register(self.connection.fileno(), select.POLLIN)
            if poll.poll(0):
                self.connection.pgconn.consume_input()
        except psycopg.Error:
            return True
        return self.connection.broken or self.connection.closed


@dataclass(frozen=True, slots=True)
class _Statements:
    """What is said to the database about a table with these columns."""

    take: sql.Composed
    regain: sql.Composed
    finish: sql.Composed
    bury: sql.Composed
    reopen: sql.Composed | None
    insert: sql.Composed


class Table:
    """The table, the one of its dead letters, and a connection that listens; used by one thread."""

    def __init__(self, options: PostgresOptions) -> None:
        """Connect to nothing yet."""
        self.options = options
        self._connections = Connections(options.conninfo, patience=0.0, prepares=False, settings=_SETTINGS)
        self._listener: Connection | None = None
        self._statements: _Statements | None = None
        self._names = {"table": _identifier(options.table), "dead": _identifier(options.dead)}

    def open(self) -> None:
        """Listen, look at the columns, and make the table of the dead letters where it is missing.

        Raises:
            ImpossibleSourceError: There is no such table, or it is none to be read from.
            PostgresLostError: The database cannot be reached.
        """
        self._drop()
        with self._told():
            self._listener = self._connections.open()
            try:
                self._statements = self._looked_at(self._listener)
                self._listener.execute(sql.SQL("listen {}").format(sql.Identifier(self.options.channel)))
            except BaseException:
                self._drop()
                raise

    def fileno(self) -> int:
        """Return the socket that becomes readable when a notification comes, or the connection ends."""
        if self._listener is None:
            raise PostgresLostError(f"{self.options.name} is not connected")
        with self._told():
            return self._listener.fileno()

    def notified(self) -> bool:
        """Return whether a notification came; wait for none.

        Raises:
            PostgresLostError: The connection that listens is lost.
        """
        if self._listener is None:
            return False
        with self._told():
            return any([*self._listener.notifies(timeout=0)])

    def take(self, passed_over: Collection[str]) -> Row | None:
        """Lock the first row that nobody has, and whose id is not passed over; None when there is none."""
        return self._locked(self._said.take, (list(passed_over),))

    def regain(self, id: str) -> Row | None:
        """Lock a row whose lock was lost; None when it is gone, or somebody else has it."""
        return self._locked(self._said.regain, (id,))

    def finish(self, row: Row) -> None:
        """Delete or mark the row, and let go of it."""
        with self._told():
            self._end(row)

    def bury(self, row: Row, reason: Reason) -> None:
        """Move the row, or a copy when it is only marked, to the dead letters, in one transaction."""
        record = json.dumps({name: _storable(text) for name, text in reason.as_dict().items()})
        with self._told():
            row.connection.execute(self._said.bury, (row.body, record, row.id))
            self._end(row)

    def release(self, row: Row) -> None:
        """Let others have the row; never raises, since a connection that ends does that too."""
        try:
            row.connection.execute("rollback")
        except psycopg.Error:
            row.connection.close()
        self._connections.give_back(row.connection)

    def close(self) -> None:
        """Close all connections but those of rows that are in hand."""
        self._drop()
        self._connections.close()

    def dead_letters(self) -> Iterator[DeadLetter]:
        """Yield the dead letters, the oldest first."""
        with self._visiting() as connection:
            if not self._columns(connection, "dead"):
                return
            text = "select number, id, failed_at, body, reason from {dead} order by number"
            rows = connection.execute(sql.SQL(text).format(**self._names)).fetchall()
        for number, id, failed_at, body, reason in rows:
            known = reason if isinstance(reason, dict) else {}
            yield DeadLetter.of(str(number), body, {"row": id}, {**known, "failed_at": failed_at.isoformat()})

    def replay(self, ids: Collection[str]) -> Sequence[str]:
        """Put dead letters back into the table, or take their marks away; return the ids of those that there were."""
        with self._visiting() as connection:
            if not self._columns(connection, "dead"):
                return []
            said = self._looked_at(connection)
            return [id for id in dict.fromkeys(ids) if id.isdecimal() and self._replayed(connection, said, id)]

    def _replayed(self, connection: Connection, said: _Statements, number: str) -> bool:
        gone = 'delete from {dead} where number = %s::numeric returning id, body, "row"::text'
        text = sql.SQL(gone).format(**self._names)
        with connection.transaction():
            row = connection.execute(text, (number,)).fetchone()
            if row is None:
                return False
            id, body, rest = row
            if said.reopen is None or not connection.execute(said.reopen, (id,)).rowcount:
                connection.execute(said.insert, {"body": body, "row": rest})
            connection.execute("select pg_notify(%s, '')", (self.options.channel,))
        return True

    @property
    def _said(self) -> _Statements:
        if self._statements is None:
            raise PostgresLostError(f"{self.options.name} is not connected")
        return self._statements

    def _end(self, row: Row) -> None:
        if not row.connection.execute(self._said.finish, (row.id,)).rowcount:
            raise PostgresLostError(f"{self.options.name}: row {row.id} cannot be ended: a trigger or policy keeps it")
        row.connection.execute("commit")
        self._connections.give_back(row.connection)

    def _locked(self, statement: sql.Composed, arguments: Sequence[object]) -> Row | None:
        with self._told():
            connection = self._connections.take()
            try:
                connection.execute("begin")
                found = connection.execute(statement, arguments).fetchone()
                if found is None:
                    connection.execute("rollback")
            except BaseException:
                connection.close()
                raise
            if found is None:
                self._connections.give_back(connection)
                return None
            return Row(connection, *found)

    def _drop(self) -> None:
        if self._listener is not None:
            self._listener.close()
        self._listener = None

    @contextmanager
    def _visiting(self) -> Iterator[Connection]:
        with self._told():
            connection = self._connections.open()
            try:
                yield connection
            finally:
                connection.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            said = printable(str(error).strip()) or type(error).__name__
            what = "refuses" if error.sqlstate and not isinstance(error, psycopg.OperationalError) else "is lost"
            raise PostgresLostError(f"{self.options.name} {what}: {said}") from error

    def _columns(self, connection: Connection, which: str) -> dict[str, tuple[Any, ...]]:
        """Return what is known of a table's columns by their names; nothing when it is not there."""
        name = self._names[which].as_string(connection)
        return {row[0]: row[1:] for row in connection.execute(_COLUMNS, (name,)).fetchall()}

    def _looked_at(self, connection: Connection) -> _Statements:
        options, columns = self.options, self._columns(connection, "table")
        if not columns:
            remedy = "make it, or write its schema too, as table=app.inbox"
            raise ImpossibleSourceError(f"{options.name}: there is no table `{options.table}`; {remedy}")
        for option in ("id", "data", "done"):
            name = getattr(options, option)
            if name and name != WHOLE_ROW and name not in columns:
                has = ", ".join(columns)
                raise ImpossibleSourceError(
                    f"{options.name}: the table has no column `{name}`; write {option}= with one of {has}"
                )
        if not columns[options.id][2]:
            remedy = "make it the primary key, or unique and not null"
            raise ImpossibleSourceError(f"{options.name}: the column `{options.id}` does not tell rows apart; {remedy}")
        done = columns[options.done][0] if options.done else ""
        if done not in ("", _TRUTH, *_TIMES):
            raise ImpossibleSourceError(
                f"{options.name}: the column `{options.done}` is {done}; write done= with a boolean or timestamptz"
            )
        self._require_rights(connection)
        self._require_dead(connection)
        return self._composed(columns, done)

    def _require_rights(self, connection: Connection) -> None:
        name = self._names["table"].as_string(connection)
        needed = {"select": "any_column", "update": "any_column", "delete": "table"}
        if self.options.done:
            del needed["delete"]
        for right, on in needed.items():
            row = connection.execute(f"select has_{on}_privilege(%s, %s)", (name, right)).fetchone()
            if row != (True,):
                why = "; a row is locked for update while it is in hand" if right == "update" else ""
                raise ImpossibleSourceError(f"{self.options.name}: grant {right} on {name} to the daemon's user{why}")

    def _require_dead(self, connection: Connection) -> None:
        make = sql.SQL(_DEAD).format(**self._names)
        columns = self._columns(connection, "dead")
        if not columns:
            try:
                connection.execute(make)
            except (errors.DuplicateTable, errors.UniqueViolation):
                return  # another daemon was quicker
            except (errors.InsufficientPrivilege, errors.InvalidSchemaName) as error:
                raise ImpossibleSourceError(
                    f"{self.options.name}: the table of the dead letters cannot be made: {error.diag.message_primary};"
                    f" let somebody who may do it say: {' '.join(make.as_string(connection).split())}"
                ) from error
        elif not columns.keys() >= _DEAD_COLUMNS:
            raise ImpossibleSourceError(
                f"{self.options.name}: `{self.options.dead}` is no table of dead letters, it lacks"
                f" {', '.join(sorted(_DEAD_COLUMNS - columns.keys()))}; write dead= with another name"
            )

    def _composed(self, columns: dict[str, tuple[Any, ...]], done: str) -> _Statements:
        options, whole = self.options, self.options.data == WHOLE_ROW
        data = sql.SQL("row_to_json(t)") if whole else sql.SQL("t.{}").format(_column(options.data))
        raw = not whole and columns[options.data][0] == "bytea"
        mark = _column(options.done)
        written = [name for name, known in columns.items() if known[1]]
        type = sql.SQL(columns[options.id if whole else options.data][0])
        body = sql.SQL("cast({} as {})").format(sql.SQL("%(body)s" if raw else _TEXT), type)
        back = [body if name == options.data else sql.SQL("r.{}").format(_column(name)) for name in written]
        kept = [sql.SQL("t.{}").format(_column(name)) for name in written if name != options.data]
        parts = {
            **self._names,
            "id": _column(options.id),
            "type": sql.SQL(columns[options.id][0]),
            "body": data if raw else sql.SQL(_BYTES).format(column=data),
            "pending": sql.SQL("true"),
            "columns": sql.SQL(", ").join(map(_column, written)),
            "kept": sql.SQL(", ").join(kept),
            "back": sql.SQL(", ").join(back),
        }
        finish, reopen = "delete from {table} as t where t.{id} = cast(%s as {type})", ""
        if done:
            parts["pending"] = sql.SQL("t.{} is not true" if done == _TRUTH else "t.{} is null").format(mark)
            parts["mark"], where = mark, "where t.{id} = cast(%s as {type})"
            finish = f"update {{table}} as t set {{mark}} = {'true' if done == _TRUTH else 'now()'} {where}"
            reopen = f"update {{table}} as t set {{mark}} = {'false' if done == _TRUTH else 'null'} {where}"
        found = "select t.{id}::text, {body} from {table} as t where {pending} and t.{id}"
        lock = "limit 1 for update of t skip locked"

        def composed(text: str) -> sql.Composed:
            return sql.SQL(text).format(**parts)

        return _Statements(
            composed(f"{found} <> all(cast(%s as {{type}}[])) order by t.{{id}} {lock}"),
            composed(f"{found} = cast(%s as {{type}}) {lock}"),
            composed(finish),
            composed(
                'insert into {dead} (id, body, "row", reason)'
                " select t.{id}::text, %s, (select row_to_json(s) from (select {kept}) s), %s"
                " from {table} as t where t.{id} = cast(%s as {type})"
            ),
            composed(reopen) if reopen else None,
            composed(
                "insert into {table} ({columns}) overriding system value"
                " select {back} from json_populate_record(null::{table}, %(row)s) as r"
            ),
        )


def _storable(text: str) -> str:
    """Return a text as PostgreSQL can have it: without NUL, be it escaped in JSON, and without half a character."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def _identifier(name: str) -> sql.Identifier:
    return sql.Identifier(*name.split("."))


def _column(name: str) -> sql.Identifier:
    """Return a column's name for a statement with arguments, in which a percent sign is written twice."""
    return sql.Identifier(name.replace("%", "%%"))
