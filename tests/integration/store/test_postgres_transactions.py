"""Runs that are submitted in a caller's transaction, and steps that are one with a user's own changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.orm import Session

from iocflow.store.contract import Batch
from iocflow.store.errors import StoreError, StoreLostError, TransactionError
from iocflow.store.postgres.connections import Address
from iocflow.store.postgres.store import PostgresStore
from tests.contract.store.work import LEASE, Work, record, submission

pytestmark = pytest.mark.service("postgres")


@pytest.fixture
def caller(store: PostgresStore) -> Iterator[psycopg.Connection[Any]]:
    """Return a connection of the application, with a table of its own."""
    with psycopg.connect(Address.parse(store.url).conninfo, row_factory=dict_row) as connection:
        connection.execute("create table orders(number text)")
        connection.commit()
        yield connection


@pytest.fixture
def engine(store: PostgresStore, caller: psycopg.Connection[Any]) -> Iterator[sqlalchemy.Engine]:
    """Return SQLAlchemy's way to the same database."""
    conninfo = Address.parse(store.url).conninfo
    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(conninfo))
    yield engine
    engine.dispose()


def orders(store: PostgresStore) -> int:
    """Return how many rows the application's table has."""
    with psycopg.connect(Address.parse(store.url).conninfo) as connection:
        row = connection.execute("select count(*) from orders").fetchone()
        assert row is not None
        return int(row[0])


def test_runs_are_there_with_what_the_caller_wrote(store: PostgresStore, caller: psycopg.Connection[Any]) -> None:
    """Nothing is seen before the caller commits; then all of it is, and a group's runs are in order."""
    work = Work(store)
    first = work.submit(group="g")
    caller.execute("insert into orders values ('PO-17')")
    accepted = store.submit([submission(group="g"), submission(), submission(group="new")], transaction=caller)
    assert [one.what for one in accepted] == ["new"] * 3
    assert [run.id for run in store.runs()] == [first]
    caller.commit()
    assert orders(store) == 1
    ids = [one.id for one in accepted]
    assert sorted(work.ids()) == sorted([first, *ids])
    with psycopg.connect(Address.parse(store.url).conninfo, autocommit=True) as connection:
        sql = f"select count(*) from {Address.parse(store.url).schema}.run where grp = 0"
        assert connection.execute(sql).fetchone() == (0,)


def test_nothing_is_there_when_the_caller_rolls_back(store: PostgresStore, caller: psycopg.Connection[Any]) -> None:
    """A roll back takes the runs along; what the same identity is sent for again is new."""
    caller.execute("insert into orders values ('PO-17')")
    store.submit([submission("1", group="g"), submission("2")], transaction=caller)
    caller.rollback()
    assert (orders(store), store.counts()["queued"]) == (0, 0)
    assert [one.what for one in store.submit([submission("1", group="g")])] == ["new"]


def test_an_identity_is_known_in_a_callers_transaction(store: PostgresStore, caller: psycopg.Connection[Any]) -> None:
    """What is there already, or twice in the batch or transaction, is known, or a conflict."""
    (there,) = store.submit([submission("1")])
    one = store.submit(
        [submission("1"), submission("2"), submission("2"), submission("1", digest="x")], transaction=caller
    )
    assert [answer.what for answer in one] == ["known", "new", "known", "conflict"]
    assert one[0].id == there.id
    assert [answer.what for answer in store.submit([submission("2")], transaction=caller)] == ["known"]
    caller.commit()


def test_a_callers_transaction_is_in_nobodys_way(store: PostgresStore, caller: psycopg.Connection[Any]) -> None:
    """While it is open, others submit to the same groups, workers finish and claim them, and operators act."""
    work = Work(store)
    first = work.submit(group="g")
    (run,) = work.claim()
    store.submit([submission(group="g"), submission(group="new")], transaction=caller)
    began = time.monotonic()
    work.submit(group="g")
    work.submit(group="new")
    work.step(run)
    work.end(run)
    assert store.cancel(work.submit(group="g"), who="me", why="")
    assert store.sweep(deliveries=5) == (0, 0, 0, 0)
    claimed = work.claim(5)
    work.end(*claimed)
    assert time.monotonic() - began < 5
    assert first == run.id
    assert store.counts()["queued"] == 0
    caller.commit()
    assert len(work.ids()) == 2


def test_delayed_runs_of_a_caller_wait(store: PostgresStore, caller: psycopg.Connection[Any]) -> None:
    """A delay that was asked for in a caller's transaction is kept, and holds up nobody."""
    soon = store.now() + 0.5
    accepted = store.submit(
        [submission(group="g", not_before=soon), submission(not_before=soon), submission(group="g")], transaction=caller
    )
    caller.commit()
    work = Work(store)
    assert work.ids() == [accepted[2].id]
    time.sleep(0.6)
    assert work.ids() == [accepted[1].id]


def test_a_loose_run_is_cancelled_and_times_out(store: PostgresStore, caller: psycopg.Connection[Any]) -> None:
    """A run that no worker has seen yet obeys operators and its limits."""
    accepted = store.submit(
        [submission(group="a"), submission(group="b", start_by=store.now() - 1), submission(group="c")],
        transaction=caller,
    )
    caller.commit()
    assert store.cancel(accepted[0].id, who="me", why="")
    assert store.signal(accepted[2].id, "s", b"1")
    assert store.sweep(deliveries=5).timeouts == 1
    work = Work(store)
    assert work.states([one.id for one in accepted]) == ["cancelled", "failed", "queued"]
    (run,) = work.claim(5)
    assert [signal.name for signal in run.signals] == ["s"]


def test_connections_that_cannot_be_used_are_refused(store: PostgresStore, postgres: str) -> None:
    """Another database, another store's server, a connection that commits each statement, and what is none."""
    conninfo = Address.parse(store.url).conninfo
    with psycopg.connect(conninfo, dbname="template1") as other, pytest.raises(TransactionError, match="own database"):
        store.submit([submission()], transaction=other)
    with psycopg.connect(conninfo, autocommit=True) as auto:
        with pytest.raises(TransactionError, match="by itself"):
            store.submit([submission()], transaction=auto)
        with auto.transaction():
            assert store.submit([submission("1")], transaction=auto)[0].what == "new"
    assert store.find("ACME", "1") is not None
    with psycopg.connect(conninfo) as failed:
        with pytest.raises(psycopg.Error):
            failed.execute("select nonsense")
        with pytest.raises(TransactionError, match="failed"):
            store.submit([submission()], transaction=failed)
    with pytest.raises(TransactionError, match="closed"):
        store.submit([submission()], transaction=failed)
    with pytest.raises(TransactionError, match="no connection"):
        store.submit([submission()], transaction="postgresql://")


def test_an_error_of_the_callers_transaction_is_told(store: PostgresStore, caller: psycopg.Connection[Any]) -> None:
    """A caller whose connection ends hears of it as from every call."""
    caller.execute("insert into orders values ('PO-17')")
    with psycopg.connect(Address.parse(store.url).conninfo, autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s)", [caller.info.backend_pid])
    with pytest.raises(StoreLostError):
        store.submit([submission()], transaction=caller)


def test_sqlalchemy_connections_and_sessions(store: PostgresStore, engine: sqlalchemy.Engine) -> None:
    """Runs commit and roll back with SQLAlchemy's own transaction, even when they are its first statement."""
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("insert into orders values ('1')"))
        store.submit([submission("1", group="g")], transaction=connection)
    with engine.connect() as connection:
        store.submit([submission("2")], transaction=connection)
        connection.commit()
        store.submit([submission("3")], transaction=connection)
    with Session(engine) as session:
        store.submit([submission("4")], transaction=session)
        session.commit()
        session.execute(sqlalchemy.text("insert into orders values ('5')"))
        store.submit([submission("5")], transaction=session)
        session.rollback()
    assert [store.find("ACME", str(n)) is not None for n in range(1, 6)] == [True, True, False, True, False]
    assert orders(store) == 1


def test_the_same_identity_in_two_open_transactions(store: PostgresStore, caller: psycopg.Connection[Any]) -> None:
    """The second one waits for the first, and is told what became of it."""
    (one,) = store.submit([submission("1", group="g")], transaction=caller)
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.extend(store.submit([submission("1", group="h")])))
    thread.start()
    time.sleep(0.2)
    assert answers == []
    caller.commit()
    thread.join()
    assert [(answer.id, answer.what) for answer in answers] == [(one.id, "known")]


def test_what_a_step_leaves_on_its_connection_harms_nobody(store: PostgresStore) -> None:
    """Deallocated statements, another row factory, or an open cursor of one step are nothing to the next."""
    work = Work(store)
    work.submit()
    (run,) = work.claim()
    for n, act in enumerate(("deallocate all", "discard plans", "declare c cursor with hold for select 1"), 1):
        with store.begin(work.id, lease=LEASE) as step:
            step.connection.row_factory = dict_row
            step.connection.execute(act)
            if n != 1:
                step.commit(Batch(records=[record(run.id, n - 1)]))
    with store.begin(work.id, lease=LEASE) as step:
        assert step.connection.execute("select 1").fetchone() == (1,)
        step.commit(Batch(records=[record(run.id, 3)]))


def test_statements_that_are_gone_at_the_commit(store: PostgresStore) -> None:
    """A step that deallocates all statements is given up, as by a lost connection; the next one finds them again."""
    work = Work(store)
    work.submit()
    (run,) = work.claim()
    for n in (1, 2):
        with store.begin(work.id, lease=LEASE) as step:
            step.commit(Batch(records=[record(run.id, n)]))

    def deallocate() -> None:
        with store.begin(work.id, lease=LEASE) as step:
            step.connection.execute("deallocate all")
            step.commit(Batch(records=[record(run.id, 3)]))

    with pytest.raises(StoreError):
        deallocate()
    with store.begin(work.id, lease=LEASE) as step:
        step.commit(Batch(records=[record(run.id, 3)]))


def test_text_that_postgresql_cannot_hold(store: PostgresStore) -> None:
    """U+0000 and half characters in a result or error are replaced; in an identity they are refused."""
    work = Work(store)
    work.submit()
    (run,) = work.claim()
    work.step(run, result="a\0b\ud800c", error=None)
    assert store.history(run.id)[1].result == "a\ufffdb?c"
    with pytest.raises(StoreError):
        work.submit("a\0b")
