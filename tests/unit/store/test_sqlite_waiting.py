"""Waiting for the turn to write to a SQLite file: told of, bounded as a whole, and over when the others are done."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from iocflow.store.errors import StoreLostError
from iocflow.store.sqlite import waiting
from iocflow.store.sqlite.store import SqliteStore
from tests.contract.store.work import LEASE, Work, submission

WRITE = """
import sys
from iocflow.store.sqlite.store import SqliteStore
store = SqliteStore(sys.argv[1])
with store._connections.write():
    print("in", flush=True)
    sys.stdin.read()
"""


@contextmanager
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    """Let another program write to the file, which knows nothing of our queue."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        yield other


@contextmanager
def stopped(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Let another process of ours be stopped in the middle of a transaction; it goes on when it is told to."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", WRITE, str(path)], text=True, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in\n"
        process.send_signal(signal.SIGSTOP)
        try:
            yield process
        finally:
            process.kill()


def test_writers_do_not_wait_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several who wait behind another program's lock, in threads and store objects, give up at about the same time."""
    monkeypatch.setattr(waiting, "PATIENCE", 3.0)
    path = tmp_path / "store.db"
    stores = [SqliteStore(path) for _ in range(2)]
    began = time.monotonic()
    with locked(path), ThreadPoolExecutor(8) as pool:
        waits = [pool.submit(stores[i % 2].submit, [submission()]) for i in range(8)]
        errors = [one.exception() for one in waits]
    assert time.monotonic() - began < 15
    assert {type(error) for error in errors} == {StoreLostError}
    assert all("another program is writing to it" in str(error) for error in errors)
    assert stores[0].submit([submission()])[0].what == "new"
    for store in stores:
        store.close()


def test_a_step_s_transaction_waits_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transaction of a step waits in the same way, and its connection can be used afterwards."""
    monkeypatch.setattr(waiting, "PATIENCE", 0.1)
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    work = Work(store)
    for _ in range(2):
        with locked(path), pytest.raises(StoreLostError, match="another program"), store.begin(work.id, lease=LEASE):
            pass
        with store.begin(work.id, lease=LEASE) as step:
            assert step.connection.execute("select 1").fetchone() == (1,)
            assert step.connection.execute("pragma busy_timeout").fetchone() == (30_000,)
    store.close()


@pytest.mark.parametrize("new", [True, False])
def test_what_is_waited_for_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, new: bool
) -> None:
    """After a while a line of the log says what is waited for, once; the wait ends when the other one is done."""
    monkeypatch.setattr(waiting, "TELL", 0.3)
    path = tmp_path / "store.db"
    if not new:
        SqliteStore(path).close()
    with locked(path) as other:
        done = Future[SqliteStore]()
        thread = threading.Thread(target=lambda: done.set_result(SqliteStore(path)))
        if not new:
            store = SqliteStore(path)
            thread = threading.Thread(target=lambda: store.submit([submission()]) and done.set_result(store))
        thread.start()
        end = time.monotonic() + 20
        while not caplog.messages:
            assert time.monotonic() < end
            time.sleep(0.01)
        time.sleep(0.6)
        other.execute("rollback")
        done.result(20).close()
        thread.join()
    assert caplog.messages == [f"waiting for the store {path}: another program is writing to it"]


def test_a_stopped_process_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Who waits for a process that is stopped in its transaction is told so, and gives up; later it is as ever."""
    monkeypatch.setattr(waiting, "TELL", 0.1)
    monkeypatch.setattr(waiting, "QUEUE", 0.5)
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    with stopped(path) as other:
        for _ in range(3):
            with pytest.raises(StoreLostError, match="another process of iocflow is writing to it, for"):
                store.submit([submission()])
        assert set(caplog.messages) == {f"waiting for the store {path}: another process of iocflow is writing to it"}
        monkeypatch.setattr(waiting, "QUEUE", 60.0)
        other.send_signal(signal.SIGCONT)
        assert other.stdin is not None
        other.stdin.close()
        assert store.submit([submission()])[0].what == "new"
    assert store.counts()["queued"] == 1
    assert store.submit([submission()])[0].what == "new"
    store.close()
