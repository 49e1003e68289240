"""`Database`: where it finds the file, what it does when it cannot, and names in SQL."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from iocflow.activities import AuditTable, Database, DatabaseBusyError, DatabaseError, PollQuery, WriteAudit


@pytest.mark.parametrize("form", ["{path}", "sqlite:///{path}"])
def test_path_and_url_name_the_same_file(tmp_path: Path, form: str) -> None:
    """A path with characters that URLs treat specially is opened as it stands, also behind sqlite:///."""
    path = tmp_path / "with space?#%41&ü.db"
    with Database(form.format(path=path), create=True).connect() as connection:
        connection.cursor().execute("CREATE TABLE t (x)")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_relative_urls_start_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """sqlite:///fares.db lies in the working directory, and a missing folder is made when creating is allowed."""
    monkeypatch.chdir(tmp_path)
    with Database("sqlite:///var/fares.db", create=True).connect() as connection:
        connection.cursor().execute("CREATE TABLE t (x)")
    assert (tmp_path / "var" / "fares.db").is_file()


@pytest.mark.parametrize("source", ["", ":memory:", "sqlite://", "sqlite:///:memory:", "postgresql://host/db"])
def test_what_names_no_file_is_refused(source: str) -> None:
    """An empty path, a database in memory (gone with each connection) and other databases' URLs are refused."""
    with pytest.raises(ValueError, match=r"names no file|hand over a function"):
        Database(source)


def test_a_missing_file_is_not_made_by_looking(tmp_path: Path) -> None:
    """Without leave to create it, a missing file is an error that says so, and stays missing."""
    path = tmp_path / "none.db"
    with pytest.raises(DatabaseError, match=r"none\.db: there is no such database file"), Database(path).connect():
        pass
    assert not path.exists()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/sys/none.db", r"/sys/none\.db: the database file cannot be made: (Permission denied|Read-only file system)"),
        ("file/none.db", r"the folder /.*/file cannot be made: File exists"),
        ("folder", r"folder: this is a folder; name a file in it"),
    ],
)
def test_what_cannot_be_made_is_told_by_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, said: str
) -> None:
    """With leave to create the file, the error says what is in its way."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(DatabaseError, match=said), Database(path, create=True).connect():
        pass


def test_what_is_no_database_is_an_error(tmp_path: Path) -> None:
    """A file of another kind, and a statement that the database refuses, are errors with its words."""
    path = tmp_path / "no.db"
    path.write_text("certainly no database" * 100)
    with pytest.raises(DatabaseError, match="file is not a database"), Database(path).connect() as connection:
        connection.cursor().execute("SELECT 1 FROM t")


def test_a_block_is_one_transaction(tmp_path: Path) -> None:
    """What a block changed is kept when it ends, and undone when it raises; the connection is closed in both cases."""
    database = Database(tmp_path / "a.db", create=True)
    with database.connect() as first:
        first.cursor().execute("CREATE TABLE t (x)")
        first.cursor().execute("INSERT INTO t VALUES (1)")
    with contextlib.suppress(ZeroDivisionError), database.connect() as second:
        second.cursor().execute("INSERT INTO t VALUES (2)")
        raise ZeroDivisionError
    with database.connect() as third:
        assert third.cursor().execute("SELECT x FROM t").fetchall() == [(1,)]
    for closed in (first, second, third):
        with pytest.raises(sqlite3.ProgrammingError):
            closed.cursor()


def test_a_locked_file_is_waited_for_only_so_long(tmp_path: Path) -> None:
    """A file that others have locked is waited for until the busy time-out or the end of the step, then told."""
    path = tmp_path / "a.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE t (x)")
    other.execute("BEGIN EXCLUSIVE")
    for database, remaining in ((Database(path, busy_timeout=0.05), None), (Database(path), 0.05)):
        with (
            pytest.raises(DatabaseBusyError, match=r"locked by others for 0\.05 s"),
            database.connect(remaining) as own,
        ):
            own.cursor().execute("INSERT INTO t VALUES (1)")
    release = threading.Timer(0.1, other.execute, ["COMMIT"])
    release.start()
    with Database(path).connect() as own:
        own.cursor().execute("INSERT INTO t VALUES (1)")
    release.join()
    other.close()


def test_any_driver_connects_through_a_factory(tmp_path: Path) -> None:
    """A function that connects is enough, and a driver that marks parameters by %s gets them so."""
    opened: list[Any] = []

    def connect() -> sqlite3.Connection:
        opened.append(sqlite3.connect(tmp_path / "a.db"))
        return opened[-1]

    database = Database(connect, paramstyle="format")
    with database.connect() as connection:
        connection.cursor().execute("CREATE TABLE t (x)")
    assert database.marked("SELECT ? FROM t WHERE x = ?") == "SELECT %s FROM t WHERE x = %s"
    assert Database(connect).marked("?") == "?"
    assert len(opened) == 1
    assert "connect" in str(database)


@pytest.mark.parametrize("name", ["", "x y", "x;--", 'x"', "x)", "1x", "ü", "select * from t", "main.t"])
def test_names_that_would_be_sql_are_refused(tmp_path: Path, name: str) -> None:
    """No name that comes from a container file can smuggle SQL in: table, column, key and cursor table are checked."""
    for make in (
        lambda: AuditTable("a.db", name),
        lambda: AuditTable("a.db", item_column=name),
        lambda: AuditTable("a.db", columns=[name]),
        lambda: WriteAudit("a.db", {name: "x"}),
        lambda: WriteAudit("a.db", table=name),
        lambda: PollQuery("a.db", "SELECT 1", name),
        lambda: PollQuery("a.db", "SELECT 1", "id", table=name),
    ):
        with pytest.raises(ValueError, match="cannot be a name in SQL here"):
            make()
