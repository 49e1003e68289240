"""Submitting within a caller's own transaction on a SQLite file: both commit, or neither."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy.orm import Session

from iocflow.store.errors import StoreLostError, TransactionError
from iocflow.store.sqlite.store import SqliteStore
from tests.contract.store.work import Work, submission


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file with a table of the application's own."""
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path)
    connection.execute("create table seat(no integer primary key)")
    connection.close()
    return path


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    """Return a store in that file."""
    store = SqliteStore(path)
    yield store
    assert list(store.doctor()) == []
    store.close()


def connect(path: Path, **options: Any) -> sqlite3.Connection:
    """Return a connection of the caller, as it is by default, or with a transaction of its own way."""
    connection: sqlite3.Connection = sqlite3.connect(path, **options)
    return connection


def test_a_commit_of_the_caller_submits(store: SqliteStore, path: Path) -> None:
    """What was submitted is there when the caller commits, and not before."""
    connection = connect(path)
    connection.execute("insert into seat values (1)")
    (accepted,) = store.submit([submission("17", group="g")], transaction=connection)
    assert store.counts()["queued"] == 0
    assert connection.in_transaction
    connection.commit()
    assert store.find("ACME", "17") == accepted.id
    assert [run.id for run in Work(store).claim()] == [accepted.id]
    connection.close()


def test_a_roll_back_of_the_caller_takes_it_back(store: SqliteStore, path: Path) -> None:
    """What was submitted in a transaction that is rolled back never was."""
    connection = connect(path)
    store.submit([submission("17", group="g")], transaction=connection)
    connection.rollback()
    assert store.counts()["queued"] == 0
    assert store.submit([submission("18", group="g")])[0].what == "new"
    connection.close()


def test_what_the_caller_did_survives_a_refused_submission(store: SqliteStore, path: Path) -> None:
    """A submission that fails is undone as a whole, and leaves what the caller had written."""
    connection = connect(path)
    connection.execute("insert into seat values (1)")
    wrong = submission("b", processor=None)
    with pytest.raises(Exception, match="NULL"):
        store.submit([submission("a", group="g"), wrong], transaction=connection)
    connection.commit()
    assert connection.execute("select no from seat").fetchall() == [(1,)]
    assert store.counts()["queued"] == 0
    connection.close()


def test_a_refused_submission_leaves_no_transaction_open(store: SqliteStore, path: Path) -> None:
    """Where the caller had written nothing yet, a submission that fails holds no lock."""
    connection = connect(path)
    with pytest.raises(Exception, match="NULL"):
        store.submit([submission("b", processor=None)], transaction=connection)
    assert not connection.in_transaction
    assert store.submit([submission()])[0].what == "new"
    connection.close()


def test_known_identities_are_known_there_too(store: SqliteStore, path: Path) -> None:
    """Within a transaction a known identity is known, and one of the transaction itself."""
    first = store.submit([submission("17")])[0]
    connection = connect(path)
    answers = store.submit([submission("17"), submission("18"), submission("18")], transaction=connection)
    again = store.submit([submission("18", digest="another")], transaction=connection)
    assert [answer.what for answer in (*answers, *again)] == ["known", "new", "known", "conflict"]
    assert answers[0].id == first.id
    connection.commit()
    connection.close()


def test_a_group_that_only_sleeps_is_opened_there_too(store: SqliteStore, path: Path) -> None:
    """A run that is submitted to a sleeping group opens it when the caller commits."""
    work = Work(store)
    work.submit(group="g", not_before=store.now() + 1000)
    connection = connect(path)
    (accepted,) = store.submit([submission(group="g")], transaction=connection)
    connection.commit()
    assert work.ids() == [accepted.id]
    connection.close()


@pytest.mark.parametrize("factory", [sqlite3.Row, lambda cursor, row: {"row": row}])
def test_the_callers_own_ways_do_not_matter(store: SqliteStore, path: Path, factory: Any) -> None:
    """Row and text factories of the caller's connection change nothing, and stay as they are."""
    connection = connect(path)
    connection.row_factory = factory
    connection.text_factory = bytes
    store.submit([submission("17")], transaction=connection)
    assert store.submit([submission("17")], transaction=connection)[0].what == "known"
    connection.commit()
    assert connection.row_factory is factory
    assert connection.text_factory is bytes
    connection.close()


def test_a_connection_that_commits_by_itself_has_to_begin(store: SqliteStore, path: Path) -> None:
    """A connection in autocommit mode is refused until a transaction was begun on it."""
    connection = connect(path, isolation_level=None)
    with pytest.raises(TransactionError, match="begin"):
        store.submit([submission()], transaction=connection)
    connection.execute("begin")
    store.submit([submission()], transaction=connection)
    connection.execute("commit")
    assert store.counts()["queued"] == 1
    connection.close()


def test_a_connection_to_another_file_is_refused(store: SqliteStore, tmp_path: Path) -> None:
    """Only the store's own file will do, by whatever path, and not in memory."""
    other = connect(tmp_path / "other.db")
    memory = sqlite3.connect(":memory:")
    for wrong in (other, memory):
        with pytest.raises(TransactionError, match="own file"):
            store.submit([submission()], transaction=wrong)
        assert not wrong.in_transaction
    (tmp_path / "link.db").symlink_to(tmp_path / "store.db")
    same = connect(tmp_path / "link.db")
    store.submit([submission()], transaction=same)
    same.commit()
    assert store.counts()["queued"] == 1
    for connection in (other, memory, same):
        connection.close()


@pytest.mark.parametrize("wrong", ["store.db", 5, object()])
def test_what_is_no_connection_is_refused(store: SqliteStore, wrong: object) -> None:
    """Anything but a connection is said to be none."""
    with pytest.raises(TransactionError, match="no connection"):
        store.submit([submission()], transaction=wrong)


def test_sqlalchemy_connections_and_sessions_will_do(store: SqliteStore, path: Path) -> None:
    """A connection or session of SQLAlchemy submits with its own commit, and not with its roll back."""
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("insert into seat values (1)"))
        store.submit([submission("1")], transaction=connection)
    with Session(engine) as session:
        store.submit([submission("2")], transaction=session)
        session.execute(sqlalchemy.text("insert into seat values (2)"))
        session.commit()
        store.submit([submission("3")], transaction=session)
        session.rollback()
    with pytest.raises(ZeroDivisionError), engine.begin() as connection:
        store.submit([submission(f"{4 / 0}")], transaction=connection)
    with engine.connect() as connection:
        store.submit([submission("5")], transaction=connection)
        connection.commit()
        store.submit([submission("6")], transaction=connection)
        connection.rollback()
        connection.execute(sqlalchemy.text("insert into seat values (3)"))
        connection.commit()
    engine.dispose()
    assert [run.number for run in store.runs()] == ["1", "2", "5"]


def test_a_transaction_that_read_too_early_can_be_tried_again(store: SqliteStore, path: Path) -> None:
    """A caller whose transaction read before somebody else wrote is told so, and succeeds at its second try."""
    connection = connect(path, isolation_level=None, timeout=0.1)
    connection.execute("begin")
    connection.execute("select * from seat").fetchall()
    store.submit([submission()])
    with pytest.raises(StoreLostError):
        store.submit([submission("17")], transaction=connection)
    connection.execute("rollback")
    connection.execute("begin")
    assert store.submit([submission("17")], transaction=connection)[0].what == "new"
    connection.execute("commit")
    connection.close()
