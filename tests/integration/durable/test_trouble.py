"""Trouble with the store in the middle of work: nothing is lost, and nothing is on record twice."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import psycopg
import pytest

import iocflow.durable.worker.membership
from iocflow import ProcessContext
from iocflow.durable.client import Client
from iocflow.durable.worker.companion import WorkerCompanion
from iocflow.store.contract import Batch, Receipt, RunStatus, Store
from iocflow.store.errors import StoreFullError, StoreLostError
from iocflow.store.postgres.connections import Address
from tests.contract.store.stores import SqliteKit
from tests.integration.durable.house import House, Ledger


class Work(ProcessContext):
    """A context that counts."""

    seed_data: int = 0
    n: int = 0
    text: str = ""


def add(context: Work) -> None:
    context.n += 1


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker tries again soon."""
    monkeypatch.setattr(iocflow.durable.worker.membership, "BACKOFF", (0.01,) * 5)


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


def test_a_worker_says_what_keeps_it_from_working(house: House) -> None:
    """A worker whose store is full is in trouble as long as that lasts, and says why; then all is well again."""
    house.sequence(add, context=Work)
    run = house.submit()
    failing: Any = Failing(house.store, StoreFullError, at=set(range(1, 20)), after=False)
    worker = house.worker(store=failing)
    companion = WorkerCompanion(worker)
    assert house.eventually(companion.trouble) == "worker: planted"
    house.wait(run)
    house.eventually(lambda: not companion.trouble())


@pytest.mark.parametrize(("lost", "seen"), [({1, 3}, "completed"), ({2, 3}, None)], ids=["now and then", "in a row"])
def test_who_waits_does_not_give_up_at_once(house: House, lost: set[int], seen: str | None) -> None:
    """Waiting for a run survives a connection that is cut, and ends when the store does not answer twice in a row."""

    class Cut(Failing):
        looks = 0

        def status(self, run: int) -> RunStatus | None:
            self.looks += 1
            if self.looks in lost:
                raise StoreLostError("planted")
            return house.store.status(run) if self.looks > 4 else house.client.status(waiting)

    house.sequence(lambda context: None, context=Work)
    run, waiting = house.submit(), house.submit(not_before=house.store.now() + 1000)
    house.work()
    client = Client(cast("Store", Cut(house.store, StoreLostError, at=set(), after=False)), {})
    if seen is None:
        with pytest.raises(StoreLostError):
            client.wait(run, timeout=20)
    else:
        assert client.wait(run, timeout=20).state == seen


@contextlib.contextmanager
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

    def completed() -> int:
        with contextlib.suppress(StoreLostError):  # this reader's connection is cut, too
            return house.store.counts()["completed"]
        return 0

    house.eventually(lambda: completed() > 3)
    with database_is_down(house):
        time.sleep(0.05)
    house.eventually(lambda: completed() == 60)
    assert {house.trail(run) for run in runs} == {"slow, slow, slow, slow"}
    assert {house.context(run).n for run in runs} == {4}


@pytest.mark.parametrize("house", ["sqlite"], indirect=True)  # a server's disk is not a test's to fill
@pytest.mark.parametrize(
    ("trouble", "cure", "text"),
    [
        ("max_page_count = 1", "max_page_count = 1000000", "full"),  # it is never less than there is
        ("query_only = 1", "query_only = 0", "readonly"),
    ],
    ids=["full", "read-only"],
)
def test_the_file_cannot_be_written(house: House, trouble: str, cure: str, text: str) -> None:
    """The disk is full, or read-only, for a time: submitters are told, no activity is done again, the work goes on."""
    entered, go_on, ledger = threading.Event(), threading.Event(), Ledger()

    def gate(context: Work) -> None:
        ledger.note(context)
        entered.set()
        go_on.wait(20)
        context.text = "x" * 100_000

    house.sequence(add, gate, add, context=Work)
    run = house.submit()
    house.worker()
    entered.wait(20)
    process = house.store._connections.here  # type: ignore[attr-defined]
    with process.lock:
        process.writer.execute(f"pragma {trouble}")
    with pytest.raises(StoreFullError, match=text):
        house.client.submit_many("job", range(3000))
    go_on.set()
    time.sleep(0.05)
    assert house.state(run) == "running"
    with process.lock:
        process.writer.execute(f"pragma {cure}")
    assert house.wait(run).state == "completed"
    assert (house.trail(run), house.context(run).n, len(ledger.calls)) == ("add, gate, add", 2, 1)
    assert house.client.submit_many("job", range(10)).new == 10
