"""Trouble with the store in the middle of work: nothing is lost, and nothing is on record twice."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

import iocflow.durable.worker
from iocflow import ProcessContext
from iocflow.store.contract import Batch, Receipt, Store
from iocflow.store.errors import StoreFullError, StoreLostError
from iocflow.store.postgres_connections import Address
from tests.contract.store.stores import SqliteKit
from tests.integration.durable.house import House, Ledger


class Work(ProcessContext):
    """A context that counts."""

    seed_data: int
    n: int = 0


def add(context: Work) -> None:
    context.n += 1


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker tries again soon."""
    monkeypatch.setattr(iocflow.durable.worker, "_BACKOFF", (0.01,) * 5)


class Failing:
    """A store that fails at some commits of what runs did: before the commit, or after it, when nobody hears of it."""

    def __init__(self, store: Store, error: type[Exception], *, at: set[int], after: bool) -> None:
        self._store, self._error, self._at, self._after = store, error, at, after
        self.commits = 0

    def commit(self, worker: int, batch: Batch, *, lease: float) -> Receipt:
        """Commit, or fail."""
        self.commits += bool(batch.records or batch.endings or batch.rests)
        fails = self.commits in self._at
        self._at -= {self.commits}
        if fails and not self._after:
            raise self._error("planted")
        receipt = self._store.commit(worker, batch, lease=lease)
        if fails:
            raise self._error("planted")
        return receipt

    def __getattr__(self, name: str) -> Any:
        """Do everything else as the store does."""
        return getattr(self._store, name)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_the_store_is_lost_at_commits(house: House, after: bool) -> None:
    """The connection is lost before a commit, or after it: runs go on from what is on record; keys tell repeats."""
    ledger = Ledger()

    def effect(context: Work) -> None:
        ledger.note(context)
        context.n += 1

    house.sequence(effect, effect, effect, context=Work)
    runs = [house.submit(group=f"g{i % 3}") for i in range(9)]
    failing: Any = Failing(house.store, StoreLostError, at={1, 2, 4, 7}, after=after)
    house.worker(store=failing, threads=2)
    assert house.wait_all(runs) == ["completed"] * 9
    assert [house.trail(run) for run in runs] == ["effect, effect, effect"] * 9
    assert [house.context(run).n for run in runs] == [3] * 9
    assert ledger.effects == 27
    assert [house.client.status(run).deliveries for run in runs] == [0] * 9


def test_the_store_is_full_at_a_commit(house: House) -> None:
    """The disk is full: what was done is kept, and written when there is room; no activity is done again."""
    ledger = Ledger()

    def effect(context: Work) -> None:
        ledger.note(context)

    house.sequence(effect, effect, context=Work)
    runs = [house.submit() for _ in range(5)]
    failing: Any = Failing(house.store, StoreFullError, at={1, 2, 3}, after=False)
    house.worker(store=failing, threads=2)
    assert house.wait_all(runs) == ["completed"] * 5
    assert len(ledger.calls) == 10


@contextmanager
def database_is_down(house: House) -> Iterator[None]:
    """Make the store's database refuse all work."""
    if isinstance(house.kit, SqliteKit):
        connection = sqlite3.connect(house.kit.path, isolation_level=None, timeout=10)
        connection.execute("begin immediate")
        try:
            yield
        finally:
            connection.execute("rollback")
            connection.close()
    else:
        address = Address.parse(house.kit.url)
        kill = "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
        with psycopg.connect(address.conninfo, autocommit=True) as connection:
            mine = f"{kill} and application_name = current_setting('application_name')"
            for _ in range(5):
                connection.execute(mine)
                time.sleep(0.02)
            yield
            connection.execute(mine)


def test_connections_are_cut(house: House) -> None:
    """All connections are cut (or, with SQLite, the file is locked by another program) while much is under way."""

    def slow(context: Work) -> None:
        context.n += 1
        time.sleep(0.005)

    house.sequence(slow, slow, slow, slow, context=Work)
    house.client.submit_many("job", range(60))
    runs = [status.id for status in house.client.runs()]
    house.worker(threads=4)
    house.eventually(lambda: house.store.counts().get("completed", 0) > 3)
    with database_is_down(house):
        time.sleep(0.05)
    assert house.wait_all(runs) == ["completed"] * 60
    assert {house.trail(run) for run in runs} == {"slow, slow, slow, slow"}
    assert {house.context(run).n for run in runs} == {4}


def test_a_read_only_file(house: House) -> None:
    """A SQLite file that cannot be written for a time: a clear error to submitters, and the work goes on later."""
    if not isinstance(house.kit, SqliteKit):
        pytest.skip("a file's rights are not PostgreSQL's")
    entered, go_on = threading.Event(), threading.Event()

    def gate(context: Work) -> None:
        entered.set()
        go_on.wait(20)
        context.n += 1

    house.sequence(add, gate, add, context=Work)
    run = house.submit()
    house.worker()
    entered.wait(20)
    other = sqlite3.connect(house.kit.path, isolation_level=None)
    other.execute("pragma journal_size_limit")
    # The user root writes whatever the rights say, so the limit of pages stands in for a disk that is full.
    connection = house.store._connections  # type: ignore[attr-defined]
    with connection.write() as tables:
        (pages,) = tables.sql("pragma page_count").fetchone()
        tables.sql(f"pragma max_page_count = {pages}")
    with pytest.raises(StoreFullError, match="full"):
        for _ in range(2000):
            house.submit(seed=10**6)
    go_on.set()
    time.sleep(0.05)
    with connection.write() as tables:
        tables.sql("pragma max_page_count = 1000000")
    assert house.wait(run).state == "completed"
    assert (house.trail(run), house.context(run).n) == ("add, gate, add", 3)
    other.close()


def test_the_file_is_gone(house: House) -> None:
    """A worker whose SQLite file is removed says so, and does not end; nothing is told to be done that is not."""
    if not isinstance(house.kit, SqliteKit):
        pytest.skip("PostgreSQL has no file of ours")
    house.kit.healthy = False
    entered, go_on = threading.Event(), threading.Event()

    def gate(context: Work) -> None:
        entered.set()
        go_on.wait(20)

    house.sequence(gate, context=Work)
    house.submit()
    worker = house.worker(threads=1)
    entered.wait(20)
    os.rename(house.kit.path, f"{house.kit.path}.away")
    go_on.set()
    time.sleep(0.05)
    os.rename(f"{house.kit.path}.away", house.kit.path)
    assert worker.stop(20)
