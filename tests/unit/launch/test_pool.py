"""The pool: bounded, fair, and neither held up nor ended by what its tasks do."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from iocflow.launch.pool import Pool, Progress, Task

Pools = Callable[..., Pool]
Eventually = Callable[[Callable[[], bool]], None]


class Gate:
    """Tasks that wait until they are let go."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.ran: list[str] = []
        self.released: list[str] = []

    def task(self, name: str, processor: str = "p") -> Task:
        def run(progress: Progress) -> None:
            self.ran.append(name)
            assert self.open.wait(10)

        return Task("x", processor, run, lambda: self.released.append(name))


@pytest.fixture
def gate() -> Gate:
    """Return a gate that is shut."""
    return Gate()


def test_no_more_than_its_size_run(pools: Pools, gate: Gate, eventually: Eventually) -> None:
    """A pool of two runs two tasks, in the order in which they came, and tells how many it could begin."""
    pool = pools(2)
    assert pool.free("p") == 2
    for name in "abcd":
        pool.submit(gate.task(name))
    eventually(lambda: len(gate.ran) == 2)
    assert sorted(gate.ran) == ["a", "b"]
    assert (pool.free("p"), pool.queued, len(pool.in_hand())) == (0, 2, 2)
    gate.open.set()
    eventually(lambda: len(gate.ran) == 4)
    assert pool.wait_idle(5)


def test_concurrency_of_a_processor(pools: Pools, gate: Gate, eventually: Eventually) -> None:
    """A processor at its limit is passed over, and others go on."""
    pool = pools(3, {"p": 1})
    for name, processor in (("a", "p"), ("b", "p"), ("c", "q")):
        pool.submit(gate.task(name, processor))
    eventually(lambda: sorted(gate.ran) == ["a", "c"])
    assert (pool.free("p"), pool.free("q")) == (0, 0)
    gate.open.set()
    eventually(lambda: "b" in gate.ran)


def test_free_of_a_limited_processor(pools: Pools, gate: Gate, eventually: Eventually) -> None:
    """What is free for a processor is bounded by its limit, tasks that wait counted."""
    pool = pools(8, {"p": 3})
    assert (pool.free("p"), pool.free("q")) == (3, 8)
    pool.submit(gate.task("a"))
    eventually(lambda: gate.ran == ["a"])
    assert (pool.free("p"), pool.free("q")) == (2, 7)
    gate.open.set()


def test_waiting_for_a_free_thread(pools: Pools, gate: Gate, eventually: Eventually) -> None:
    """Who waits for a thread is woken when one comes free, or goes away empty-handed."""
    pool = pools(1)
    pool.submit(gate.task("a"))
    eventually(lambda: gate.ran == ["a"])
    assert pool.wait_free("p", 0.01) == 0
    threading.Timer(0.05, gate.open.set).start()
    assert pool.wait_free("p", 5) == 1


def test_closing_releases_what_has_not_begun(pools: Pools, gate: Gate, eventually: Eventually) -> None:
    """A closed pool runs nothing new: waiting tasks and later ones are released, the one in hand goes on."""
    pool = pools(1)
    for name in "abc":
        pool.submit(gate.task(name))
    eventually(lambda: gate.ran == ["a"])
    pool.close()
    assert gate.released == ["b", "c"]
    pool.submit(gate.task("d"))
    assert gate.released == ["b", "c", "d"]
    assert not pool.wait_idle(0.01)
    gate.open.set()
    assert pool.wait_idle(5)
    assert gate.ran == ["a"]
    assert pool.wait_free("p", 5) == 0


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_task_that_raises(
    pools: Pools, eventually: Eventually, caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    """What a task lets through is logged, and its thread lives on."""

    def fail(progress: Progress) -> None:
        raise error("boom")

    pool, ran = pools(1), threading.Event()
    pool.submit(Task("x", "p", fail, lambda: None))
    pool.submit(Task("x", "p", lambda progress: ran.set(), lambda: None))
    assert ran.wait(5)
    assert "a task of launcher x raised" in caplog.text


def test_a_stalled_pool(pools: Pools, gate: Gate, eventually: Eventually) -> None:
    """A pool is stalled when every thread is taken, or tasks wait, and none began or ended for some time."""
    pool = pools(2, {"p": 1})
    assert not pool.stalled(0)
    pool.submit(gate.task("a"))
    eventually(lambda: len(pool.in_hand()) == 1)
    assert not pool.stalled(0)
    pool.submit(gate.task("b"))
    assert (pool.stalled(0), pool.stalled(60)) == (True, False)
    pool.submit(gate.task("c", "q"))
    eventually(lambda: len(pool.in_hand()) == 2)
    assert (pool.stalled(0), pool.stalled(60)) == (True, False)
    gate.open.set()
    eventually(lambda: not pool.in_hand())
    assert not pool.stalled(0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_thread_is_replaced(pools: Pools, caplog: pytest.LogCaptureFixture) -> None:
    """A thread that died, by whatever broke into it, is replaced at the next heartbeat."""
    pool, ran = pools(1), threading.Event()
    startable = pool._startable

    def die() -> Task | None:
        pool._startable = startable  # type: ignore[method-assign]
        raise SystemExit

    pool._startable = die  # type: ignore[method-assign]
    pool.submit(Task("x", "p", lambda progress: ran.set(), lambda: None))
    pool._threads[0].join(5)
    assert not ran.is_set()
    pool.heartbeat()
    assert ran.wait(5)
    assert "died and is replaced" in caplog.text


def test_progress_tells_what_a_task_does(pools: Pools, eventually: Eventually) -> None:
    """A task reports its run, and the time since that began."""
    told, go = threading.Event(), threading.Event()

    def run(progress: Progress) -> None:
        progress.at("run-1", "event-1")
        told.set()
        assert go.wait(5)

    pool = pools(1)
    pool.submit(Task("x", "p", run, lambda: None))
    assert told.wait(5)
    (progress,) = pool.in_hand()
    assert (progress.launcher, progress.processor, progress.run_id, progress.message_id) == (
        "x",
        "p",
        "run-1",
        "event-1",
    )
    go.set()
