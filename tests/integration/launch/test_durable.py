"""Launchers and durable processors: what they start is submitted, and workers beside them do it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from iocflow.container import App
from iocflow.context import ProcessContext
from iocflow.durable.worker.companion import WorkerCompanion
from iocflow.events import MemorySource, on_event
from iocflow.launch import DaemonSettings, ExitCode
from iocflow.launch.daemon import Daemon
from iocflow.run import Run
from iocflow.schedule import every
from iocflow.sequence import SequenceProcessor
from iocflow.store.errors import StoreLostError

QUICK = DaemonSettings(pool=2, grace=timedelta(seconds=10), heartbeat=timedelta(milliseconds=50))
Serve = Callable[..., Any]


class Number(ProcessContext):
    """A context whose seed is a number."""

    seed_data: int = 0
    square: int


class Finder:
    """A poller with so many finds, which notes how far it came."""

    def __init__(self, finds: int) -> None:
        self.finds = finds
        self.done = 0

    def poll(self) -> Iterator[int]:
        while self.done < self.finds:
            yield self.done
            self.done += 1


def squaring(seen: list[int]) -> SequenceProcessor[Number]:
    """Return a processor that notes its seeds."""

    def square(context: Number) -> None:
        context.square = context.seed_data**2
        seen.append(context.seed_data)

    return SequenceProcessor([square], context=Number, name="squaring")


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, twenty seconds at most."""
    for _ in range(4000):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError("it never came about")


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that runs a daemon in a thread and returns it with the list that gets its exit code."""
    running: list[tuple[Daemon, threading.Thread]] = []

    def start(app: App, **options: Any) -> tuple[Daemon, list[ExitCode]]:
        daemon, codes = Daemon(app, settings=QUICK, **options), list[ExitCode]()
        thread = threading.Thread(target=lambda: codes.append(daemon.run()))
        thread.start()
        running.append((daemon, thread))
        return daemon, codes

    yield start
    for daemon, thread in running:
        daemon.stop()
        thread.join(20)
        assert not thread.is_alive()


def test_what_launchers_start_is_submitted_and_done_by_a_worker(serve: Serve, tmp_path: Path) -> None:
    """Polls and events are counted as submitted; a worker beside the launchers completes their runs, and stops."""
    seen: list[int] = []
    processor, source = squaring(seen), MemorySource("numbers")
    finder = Finder(3)
    launchers = [
        every("1h", processor, name="polled", poll=finder),
        on_event(source, processor, name="told"),
    ]
    with App(processor, launchers=launchers, store=f"sqlite:///{tmp_path}/app.db") as app:
        daemon, codes = serve(app, companions=[WorkerCompanion(app.worker(threads=2))])
        source.put(10)
        source.put(11)
        eventually(lambda: sorted(seen) == [0, 1, 2, 10, 11])
        eventually(lambda: all(run.state == "completed" for run in app.runs()))
        counts = {one.name: {k: n for k, n in one.counts.items() if n} for one in daemon.snapshot().launchers}
        assert counts == {"polled": {"started": 3, "submitted": 3}, "told": {"started": 2, "submitted": 2}}
        assert finder.done == 3
        daemon.stop()
        eventually(lambda: codes == [ExitCode.OK])


def test_without_a_worker_runs_wait_in_the_store(serve: Serve, tmp_path: Path) -> None:
    """A daemon without a worker submits all the same; whoever works on the store does the runs."""
    seen: list[int] = []
    processor, source = squaring(seen), MemorySource("numbers")
    launchers = [on_event(source, processor, name="told")]
    with App(processor, launchers=launchers, store=f"sqlite:///{tmp_path}/app.db") as app:
        serve(app)
        source.put(3)
        eventually(lambda: source.join(0.01) and len(app.runs(states=["queued"])) == 1)
        assert seen == []
        app.run_until_idle()
        assert seen == [3]


def test_a_daemon_of_workers_alone(serve: Serve, tmp_path: Path) -> None:
    """Launchers can be left out: then a worker is all that runs, and it is told that none of them is."""
    seen: list[int] = []
    processor = squaring(seen)
    launchers = [every("1h", processor, name="polled", poll=Finder(3))]
    with App(processor, launchers=launchers, store=f"sqlite:///{tmp_path}/app.db") as app:
        app.submit("squaring", 5)
        daemon, codes = serve(app, companions=[WorkerCompanion(app.worker(threads=1))], launching=False)
        eventually(lambda: seen == [5])
        assert daemon.snapshot().launchers == ()
        daemon.stop()
        eventually(lambda: codes == [ExitCode.OK])


def test_a_run_that_outlasts_the_grace_time_is_left(tmp_path: Path) -> None:
    """A worker whose activity does not end in time is left behind, and the exit code says so."""
    go, entered = threading.Event(), threading.Event()

    def wait(context: Number) -> None:
        entered.set()
        go.wait(20)

    processor = SequenceProcessor([wait], context=Number, name="waiting")
    with App(processor, store=f"sqlite:///{tmp_path}/app.db") as app:
        app.submit("waiting", 1)
        short = DaemonSettings(grace=timedelta(milliseconds=200), heartbeat=timedelta(milliseconds=50))
        worker = app.worker(threads=1)
        daemon, codes = Daemon(app, settings=short, companions=[WorkerCompanion(worker)]), list[ExitCode]()
        thread = threading.Thread(target=lambda: codes.append(daemon.run()))
        thread.start()
        assert entered.wait(20)
        daemon.stop()
        thread.join(20)
        assert codes == [ExitCode.FORCED]
        go.set()
        assert worker.stop(20)


class Lost:
    """A store that is gone, for the first few runs."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.taken: list[Any] = []

    def launch(self, processor: Any, seed: object, **asked: object) -> Run[Any]:
        if self.failures:
            self.failures -= 1
            raise StoreLostError("the server is gone")
        self.taken.append(seed)
        run: Run[Any] = Run()
        run.of, run.ticks, run.context = processor, [0.0], processor.new_context()
        return run


def test_a_poll_keeps_its_cursor_while_the_store_is_gone(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """A find that the store could not take is found again at the next tick: the poller did not go on behind it."""
    processor, finder, engine = squaring([]), Finder(2), Lost(1)
    processor.entrust(engine)
    with App(processor, launchers=[every("100ms", processor, name="polled", poll=finder)]) as app:
        daemon, _ = serve(app)
        eventually(lambda: finder.done == 2)
        assert engine.taken == [0, 1]
        assert daemon.snapshot().launchers[0].counts["errors"] == 2  # the run's, and the poll's
    assert "could not be submitted (StoreLostError: the server is gone)" in caplog.text
