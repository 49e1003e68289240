"""One SQLite store in many processes: forks, killed writers, and writers that wait for each other."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from iocflow.store.errors import StoreLostError
from iocflow.store.sqlite.store import SqliteStore
from tests.contract.store.work import LEASE, Work, submission

HOLD = """
import sys, time
from iocflow.store.sqlite.store import SqliteStore
store = SqliteStore(sys.argv[1])
worker = store.register(30.0, "host", 1)
with store.begin(worker, lease=30.0) as step:
    step.connection.execute("create table seat(no)")
    print("in", flush=True)
    time.sleep(60)
"""

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def in_fork(act: Callable[[], object]) -> int:
    """Call `act` in a forked child; return its exit code."""
    process = multiprocessing.get_context("fork").Process(target=act)
    process.start()
    process.join(60)
    assert process.exitcode is not None
    return process.exitcode


def test_a_child_of_a_fork_opens_its_own(tmp_path: Path) -> None:
    """A store that was open at a fork works in the parent and in its children, at once."""
    store = SqliteStore(tmp_path / "store.db")
    store.submit([submission()])
    store.counts()

    def use() -> None:
        for i in range(50):
            store.submit([submission(f"child-{os.getpid()}-{i}")])
            assert store.counts()["queued"] > i

    children = [multiprocessing.get_context("fork").Process(target=use) for _ in range(3)]
    for child in children:
        child.start()
    for _ in range(50):
        store.submit([submission()])
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert store.counts()["queued"] == 201
    assert list(store.doctor()) == []
    store.close()


def test_nothing_is_lost_when_the_parent_closes_first(tmp_path: Path) -> None:
    """What a child writes is there, though its parent closed the file, as the last one that it knows of, meanwhile."""
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    store.submit([submission()])
    fork = multiprocessing.get_context("fork")
    opened, closed = fork.Event(), fork.Event()

    def use() -> None:
        store.submit([submission()])
        opened.set()
        assert closed.wait(60)
        for _ in range(20):
            store.submit([submission()])

    child = fork.Process(target=use)
    child.start()
    assert opened.wait(60)
    store.close()
    closed.set()
    child.join(60)
    assert child.exitcode == 0
    again = SqliteStore(path)
    assert again.counts()["queued"] == 22
    again.close()
    connection = sqlite3.connect(path)
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_a_child_of_a_fork_in_the_middle_of_a_transaction_is_told(tmp_path: Path) -> None:
    """A child that was forked while its parent wrote or read cannot use the store, and is told how it could."""
    store = SqliteStore(tmp_path / "store.db")
    work = Work(store)

    def use() -> None:
        with pytest.raises(StoreLostError, match="spawned"):
            store.submit([submission()])
        with pytest.raises(StoreLostError, match="spawned"):
            store.counts()

    with store.begin(work.id, lease=LEASE):
        assert in_fork(use) == 0
    with store._connections.read():
        assert in_fork(use) == 0
    assert in_fork(lambda: store.submit([submission("17")])) == 0
    assert store.find("ACME", "17") is not None
    store.close()


def test_a_child_that_ends_does_not_end_its_parents_connections(tmp_path: Path) -> None:
    """A child that closes the store, or leaves by the interpreter's own end, leaves the parent's as they are."""
    store = SqliteStore(tmp_path / "store.db")
    store.submit([submission()])
    for leave in (store.close, store.counts, lambda: sys.exit(0)):
        assert in_fork(leave) == 0
        assert store.submit([submission()])[0].what == "new"
    assert store.counts()["queued"] == 4
    store.close()


def test_a_killed_writer_leaves_nothing_and_holds_nothing(tmp_path: Path) -> None:
    """When a process is killed in the middle of a transaction, others go on at once, and see nothing of it."""
    store = SqliteStore(tmp_path / "store.db")
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "store.db")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "in\n"
        waiting = threading.Thread(target=lambda: store.submit([submission("17")]))
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        process.send_signal(signal.SIGKILL)
        waiting.join(10)
        assert not waiting.is_alive()
    finally:
        process.kill()
        process.wait()
        process.stdout.close() if process.stdout else None
    assert store.find("ACME", "17") is not None
    with store._connections.read() as tables:
        assert tables.rows("select 1 from sqlite_master where name = 'seat'") == []
    store.close()


def test_readers_do_not_wait_for_writers(tmp_path: Path) -> None:
    """Status and lists are read while a step's transaction is open."""
    store = SqliteStore(tmp_path / "store.db")
    work = Work(store)
    run = work.submit()
    with store.begin(work.id, lease=LEASE):
        began = time.monotonic()
        assert store.status(run) is not None
        assert store.counts()["queued"] == 1
        assert len(store.history(run)) == 1
        assert time.monotonic() - began < 5
    store.close()
