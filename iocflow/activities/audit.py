"""An audit trail in a SQL table: what a run was about to do, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from iocflow.activities.arguments import Rule, complaints, demanded, keep, path_rules
from iocflow.activities.database import DatabaseSource, as_database, check_name, quoted
from iocflow.activities.fields import check_path, read_field, read_items
from iocflow.activity import Activity

__all__ = ["AuditRow", "AuditTable", "WriteAudit"]


_OWN = ("run_id", "processor", "activity", "status", "detail", "written_at", "changed_at")
_ITEM_COLUMN = "item"


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One row: which run and activity wrote it, what it is about, and how it stands.

    Attributes:
        item: What the row is about, as a recipient's address; empty when it is about the run.
        values: The table's further columns.
    """

    run_id: str
    processor: str
    activity: str
    item: str
    status: str
    values: Mapping[str, Any] = field(default_factory=dict)


class AuditTable:
    """A table of audit rows, created at first use; a run's activity has at most one row for each item."""

    def __init__(
        self,
        database: DatabaseSource,
        table: str = "audit",
        item_column: str = _ITEM_COLUMN,
        columns: Iterable[str] = (),
    ) -> None:
        """Take the place and the columns; nothing is opened yet.

        Args:
            database: A SQLite path or URL (made when it is missing), a function that returns a new DB-API connection,
                or a `Database`.
            table: The table's name.
            item_column: The column that holds what a row is about.
            columns: The names of further columns; all of them hold text.

        Raises:
            ValueError: A name cannot stand in SQL, or is that of another column.
        """
        self.columns = list(columns)
        keep(_table_rules({"table": table, "item_column": item_column, "values": self.columns}))
        self.database = as_database(database, create=True)
        self.table = table
        self.item_column = item_column

    def write(self, rows: Iterable[AuditRow], remaining: float | None = None) -> None:
        """Write all `rows` in one transaction; a row of the same run, activity and item is written over.

        Raises:
            DatabaseError: An existing table has other columns, or the database cannot be written.
        """
        now = _now()
        item = quoted(self.item_column)
        names = ["run_id", "activity", item, "processor", "status", "detail", "written_at", "changed_at"]
        names += map(quoted, self.columns)
        updates = ", ".join(f"{name} = excluded.{name}" for name in names[3:])
        statement = (
            f"INSERT INTO {quoted(self.table)} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
            f" ON CONFLICT (run_id, activity, {item}) DO UPDATE SET {updates}"
        )
        with self.database.connect(remaining) as connection:
            cursor = connection.cursor()
            cursor.execute(self._create_statement())
            cursor.executemany(self.database.marked(statement), [self._parameters(row, now) for row in rows])

    def settle(self, run_id: str, item: str, status: str, detail: str = "", remaining: float | None = None) -> bool:
        """Set the status of the run's row about `item`; tell whether there is one."""
        table = quoted(self.table)
        where = f"run_id = ? AND {table}.{quoted(self.item_column)} = ?"  # SQLite takes a bare one for text, in doubt
        statement = f"UPDATE {table} SET status = ?, detail = ?, changed_at = ? WHERE {where}"
        with self.database.connect(remaining) as connection:
            cursor = connection.cursor()
            cursor.execute(self.database.marked(statement), (status, detail, _now(), run_id, item))
            return bool(cursor.rowcount)

    def _parameters(self, row: AuditRow, now: str) -> list[str | None]:
        fixed = [row.run_id, row.activity, row.item, row.processor, row.status, "", now, now]
        return [*fixed, *(_text(row.values.get(column)) for column in self.columns)]

    def _create_statement(self) -> str:
        item = quoted(self.item_column)
        columns = [f"{name} TEXT NOT NULL" for name in (*_OWN, item)]
        columns += [f"{quoted(name)} TEXT" for name in self.columns]
        key = f"PRIMARY KEY (run_id, activity, {item})"
        return f"CREATE TABLE IF NOT EXISTS {quoted(self.table)} ({', '.join([*columns, key])})"


class WriteAudit(Activity[Any]):
    """Writes an audit row for the run, or one for each item of a field, before something irrevocable is done.

    It works on any context that offers the fields it is told to record. Another attempt of the step writes its own rows
    over and adds none.
    """

    def __init__(
        self,
        database: DatabaseSource,
        values: Mapping[str, str] | None = None,
        *,
        each: str = "",
        key: str = "",
        table: str = "audit",
        item_column: str = _ITEM_COLUMN,
        status: str = "written",
    ) -> None:
        """Take what to record.

        Args:
            database: A SQLite path or URL (made when it is missing), a function that returns a new DB-API connection,
                or a `Database`.
            values: The path of the field that each column gets, as in `{airline: seed_data.airline_name}`; a path that
                begins with `item.` starts at the item. It is of attributes, and leads into no dict.
            each: The field with the items, one row for each; without it there is one row.
            key: The path within an item of what tells it from the others, as in `address`; else it is the item itself.
            table: The table, created at first use.
            item_column: The column that holds the key.
            status: What the rows begin with.

        Raises:
            ValueError: A name cannot stand in SQL, or is that of another column, or a path is none.
        """
        self.values = dict(values or {})
        keep(_rules({"values": self.values, "each": each, "key": key}))
        self.each = each
        self.key = key
        self.status = status
        self.trail = AuditTable(database, table, item_column, self.values)

    @classmethod
    def check_arguments(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Yield what the constructor would refuse."""
        if cls.__init__ is WriteAudit.__init__:
            columns = arguments.get("values") or {}
            yield from complaints([*_rules(arguments), *_table_rules({**arguments, "values": columns})])

    def execute(self, context: Any) -> None:
        """Write the rows.

        Raises:
            ContextFieldError: The context does not offer a field that is to be recorded.
            TypeError: The field with the items holds a text, or no items.
            DatabaseError: The table has other columns, or cannot be written.
        """
        items = read_items(context, self.each, self.name) if self.each else [None]
        self.trail.write([self._row(context, item) for item in items], context.step.remaining())

    def _row(self, context: Any, item: object) -> AuditRow:
        step = context.step
        about = read_field(item, self.key, self.name) if self.key else item
        values = {
            column: read_field(item, path[5:], self.name)
            if path.startswith("item.")
            else read_field(context, path, self.name)
            for column, path in self.values.items()
        }
        key = "" if about is None else str(about)
        return AuditRow(step.run_id, step.processor, step.activity or self.name, key, self.status, values)


def _table_rules(given: Mapping[str, Any]) -> Iterator[Rule]:
    """Yield the rules about the place and the names of a table that are `given`; `values` are its further columns."""
    if "database" in given:
        yield "database", partial(as_database, given["database"])
    if "table" in given:
        yield "table", partial(check_name, given["table"], "table")
    further = [("values", column) for column in given.get("values", ())]
    taken = set(_OWN)
    for name, column in [("item_column", given.get("item_column", _ITEM_COLUMN)), *further]:
        yield name, partial(check_name, column, name)
        folded = str(column).lower()  # as SQL does with names
        yield demanded(name, folded not in taken, f"the audit has a column {column!r} already; choose another name")
        taken.add(folded)


def _rules(given: Mapping[str, Any]) -> Iterator[Rule]:
    """Yield the rules about the fields that are `given`."""
    for column, path in (given.get("values") or {}).items():
        yield "values", partial(check_path, path, f"values.{column}")
        if not given.get("each") and str(path).startswith("item."):
            why = f"values.{column}: {path!r} is of an item, and `each` names no field with items"
            yield demanded("values", None, why)
    yield from path_rules({name: path for name, path in given.items() if path}, "each", "key")


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _now() -> str:
    return datetime.now(UTC).isoformat()
