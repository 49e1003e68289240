"""`WriteAudit` and `AuditTable`: the rows, and what another attempt does to them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iocflow.activities import AuditTable, ContextFieldError, DatabaseError, Recipient, SendMail, WriteAudit
from iocflow.context import ProcessContext, StepInfo


class Mailing(ProcessContext):
    seed_data: Any
    recipients: list[Recipient]


class Lent:
    """Lends the step of one run."""

    def __init__(self, run_id: str) -> None:
        self.info = StepInfo(run_id, "mailing")
        self.info.activity = "write-audit"

    def lend(self) -> StepInfo:
        return self.info


def mailing(run_id: str = "run-1") -> Mailing:
    """Return the context of a run that is about to mail two people."""
    context = Mailing()
    context.seed_data = SimpleNamespace(route=117)
    context.recipients = [Recipient("a@example.com", "O'Neil"), Recipient("b@example.com", "王小明")]
    context._lender = Lent(run_id)
    return context


def rows(path: Path, columns: str, table: str = "audit") -> list[Any]:
    """Return some columns of all rows, in the order they were written."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT {columns} FROM {table} ORDER BY rowid").fetchall()


def test_one_row_for_each_item(tmp_path: Path) -> None:
    """Each recipient gets a row, with what the paths lead to in the context and in the recipient."""
    path = tmp_path / "new" / "audit.db"
    audit = WriteAudit(
        path,
        {"name": "item.name", "route": "seed_data.route"},
        each="recipients",
        key="address",
        item_column="recipient",
        status="prepared",
    )
    audit.execute(mailing())
    assert rows(path, "run_id, processor, activity, recipient, status, detail, name, route") == [
        ("run-1", "mailing", "write-audit", "a@example.com", "prepared", "", "O'Neil", "117"),
        ("run-1", "mailing", "write-audit", "b@example.com", "prepared", "", "王小明", "117"),
    ]


def test_one_row_for_the_run(tmp_path: Path) -> None:
    """Without a field of items there is one row, about the run."""
    WriteAudit(tmp_path / "a.db", {"route": "seed_data.route"}, table="trail").execute(mailing())
    assert rows(tmp_path / "a.db", "item, status, route", "trail") == [("", "written", "117")]


def test_another_attempt_writes_over(tmp_path: Path) -> None:
    """A repeated step leaves one row for each item, with the newest values; another run adds its own."""
    audit = WriteAudit(tmp_path / "a.db", {"name": "item.name"}, each="recipients", key="address")
    context = mailing()
    audit.execute(context)
    context.recipients = [Recipient("a@example.com", "O'Neil-Smith")]
    audit.execute(context)
    audit.execute(mailing("run-2"))
    assert sorted(rows(tmp_path / "a.db", "run_id, item, name")) == [
        ("run-1", "a@example.com", "O'Neil-Smith"),
        ("run-1", "b@example.com", "王小明"),
        ("run-2", "a@example.com", "O'Neil"),
        ("run-2", "b@example.com", "王小明"),
    ]


def test_settling_changes_the_rows_of_one_run(tmp_path: Path) -> None:
    """What became of an item is set in its run's row alone; without such a row it says so."""
    audit = WriteAudit(tmp_path / "a.db", each="recipients", key="address")
    for run in ("run-1", "run-2"):
        audit.execute(mailing(run))
    assert audit.trail.settle("run-1", "a@example.com", "sent", "250 '); DROP TABLE audit; --")
    assert not audit.trail.settle("run-3", "a@example.com", "sent")
    assert rows(tmp_path / "a.db", "run_id, item, status, detail")[:2] == [
        ("run-1", "a@example.com", "sent", "250 '); DROP TABLE audit; --"),
        ("run-1", "b@example.com", "written", ""),
    ]


def test_wrong_columns_are_told(tmp_path: Path) -> None:
    """A table that exists with other columns is an error that names the missing one, and nothing is written."""
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("CREATE TABLE audit (run_id, item)")
    with pytest.raises(DatabaseError, match=r"a\.db: table audit has no column named activity"):
        WriteAudit(tmp_path / "a.db").execute(mailing())
    with pytest.raises(DatabaseError, match="no such table: trail"):
        AuditTable(tmp_path / "a.db", "trail").settle("run-1", "a", "sent")


def test_missing_fields_are_named(tmp_path: Path) -> None:
    """A path that leads nowhere names the field and its holder, and nothing is written."""
    for values, said in (
        ({"x": "nope"}, "Mailing has no field nope"),
        ({"x": "item.nope"}, "Recipient has no field nope"),
    ):
        with pytest.raises(ContextFieldError, match=said):
            WriteAudit(tmp_path / "a.db", values, each="recipients").execute(mailing())
    assert not (tmp_path / "a.db").exists()


def test_words_of_sql_are_names(tmp_path: Path) -> None:
    """Table and columns can be called by words of SQL; a table that was made without care for them is written on."""
    path = tmp_path / "audit.db"
    with closing(sqlite3.connect(path)) as connection:
        fixed = "run_id, activity, processor, status, detail, written_at, changed_at"
        connection.execute(f"CREATE TABLE Old ({fixed}, Who, PRIMARY KEY (run_id, activity, Who))")
    for table, item, column in (("order", "group", "select"), ("TABLE", "User", "From"), ("old", "who", "status2")):
        if table == "old":
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("ALTER TABLE Old ADD COLUMN Status2")
        audit = WriteAudit(
            path, {column: "seed_data.route"}, each="recipients", key="address", table=table, item_column=item
        )
        audit.execute(mailing())
        assert audit.trail.settle("run-1", "a@example.com", "sent")
        assert rows(path, f'"{item}", status, "{column}"', f'"{table}"') == [
            ("a@example.com", "sent", "117"),
            ("b@example.com", "written", "117"),
        ]


def test_the_audits_own_columns_are_refused(tmp_path: Path) -> None:
    """A further column, or the one of the items, cannot have the name of another, in upper case neither."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(WriteAudit(tmp_path / "a.db").trail._create_statement())
        own = [name for (name,) in connection.execute("SELECT name FROM pragma_table_info('audit')")]
    assert len(own) == 8
    for name in (*own, *map(str.upper, own)):
        with pytest.raises(ValueError, match=f"^values: the audit has a column '{name}' already"):
            WriteAudit(tmp_path / "a.db", {name: "route"})
        assert [where for where, _ in WriteAudit.check_arguments({"values": {name: "route"}})] == ["values"]
        with pytest.raises(ValueError, match=r"^values: the audit has"):
            AuditTable(tmp_path / "a.db", columns=[name])
    for name in set(own) - {"item"}:
        with pytest.raises(ValueError, match=r"^item_column: the audit has"):
            AuditTable(tmp_path / "a.db", item_column=name)
    with pytest.raises(ValueError, match=r"^values: the audit has a column 'Route' already"):
        WriteAudit(tmp_path / "a.db", {"route": "x", "Route": "y"})


@pytest.mark.parametrize("items", ["a@example.com", b"a", bytearray(b"a"), {"a": 1}, 7, None, iter(["a"])])
def test_items_are_no_text(tmp_path: Path, items: Any) -> None:
    """What is gone through item by item holds items, again and again: no letters, no mapping, no iterator."""
    context = mailing()
    context.recipients = items
    said = f"recipients is a {type(items).__name__}; a list or tuple is wanted"
    with pytest.raises(TypeError, match=f"^write-audit: context.{said}"):
        WriteAudit(tmp_path / "a.db", each="recipients").execute(context)
    assert not (tmp_path / "a.db").exists()
    context.subject, context.message = "x", "y"  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=f"^send-mail: context.{said}"):
        SendMail(object(), "a@example.com").execute(context)  # type: ignore[arg-type]
