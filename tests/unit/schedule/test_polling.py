"""The polling launcher: its two forms, overlaps, lateness, and what it leaves when it is stopped."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from iocflow.activities import PollQuery
from iocflow.context import ProcessContext
from iocflow.errors import SeedError
from iocflow.launch.counters import Count
from iocflow.launch.host import DaemonHost
from iocflow.launch.snapshot import LauncherState
from iocflow.parallel_split import ParallelSplitProcessor
from iocflow.schedule import at, cron, every
from iocflow.schedule.polling import PollingLauncher
from iocflow.schedule.timer import Timer
from iocflow.sequence import SequenceProcessor

HostWith = Callable[..., DaemonHost]


class Work:
    """An activity that a test can hold up."""

    def __init__(self) -> None:
        self.seeds: list[object] = []
        self.keys: list[str] = []
        self.go = threading.Event()
        self.go.set()
        self.entered = threading.Semaphore(0)
        self.behaviour: Callable[[ProcessContext], None] = lambda context: None
        self.processor = SequenceProcessor([self.act], context=ProcessContext, name="fares")

    def act(self, context: ProcessContext) -> None:
        self.seeds.append(vars(context).get("seed_data"))
        self.keys.append(context.step.idempotency_key)
        self.entered.release()
        assert self.go.wait(10)
        self.behaviour(context)


@pytest.fixture
def work() -> Work:
    """Return an activity that notes its seeds, in a processor."""
    return Work()


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds that the pool's threads bring about; time in `watch` stands still meanwhile."""
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError("it never came about")


def started(host: DaemonHost, launcher: PollingLauncher) -> Timer:
    """Start a launcher and return its timer."""
    launcher.start(host)
    timer: Timer = host.service(Timer)
    return timer


def counts(host: DaemonHost, name: str) -> dict[str, int]:
    """Return what was counted, without noughts."""
    return {name: number for name, number in host.counters(name).as_dict().items() if number}


def test_a_tick_starts_one_run(host_with: HostWith, watch, work: Work) -> None:
    """Without a poller each tick is one run, with the moment that was meant and a key made of it."""
    host = host_with("poll-fares")
    timer = started(host, every("60s", work.processor, name="poll-fares"))
    for expected in (1, 2):
        timer.turn()
        eventually(lambda n=expected: host.counters("poll-fares")[Count.COMPLETED] == n)
        watch.pass_by(60)
    assert work.keys == ["poll-fares@2026-03-02T12:00:00+00:00/act#1", "poll-fares@2026-03-02T12:01:00+00:00/act#1"]
    assert work.seeds == [None, None]


def test_nothing_to_do_leaves_a_counter_only(host_with: HostWith, work: Work, caplog: pytest.LogCaptureFixture) -> None:
    """A run that found nothing is counted apart and logged for debugging at most."""
    work.behaviour = ProcessContext.nothing_to_do
    host = host_with("poll-fares")
    caplog.set_level("INFO")
    started(host, every("60s", work.processor, name="poll-fares")).turn()
    eventually(lambda: counts(host, "poll-fares") == {"started": 1, "nothing_found": 1})
    assert caplog.records == []


def test_an_overlapping_tick_is_skipped(host_with: HostWith, watch, work: Work) -> None:
    """While a tick is in hand others are dropped and counted, and a hung one never blocks the timer."""
    host = host_with("slow", "other")
    timer = started(host, every("10s", work.processor, name="slow"))
    started(host, every("10s", Work().processor, name="other"))
    work.go.clear()
    for number in (1, 2, 3, 4):
        timer.turn()
        eventually(lambda n=number: host.counters("other")[Count.COMPLETED] == n and len(work.seeds) == 1)
        watch.pass_by(10)
    assert counts(host, "slow") == {"started": 1, "skipped_overlap": 3}
    work.go.set()
    eventually(lambda: host.counters("slow")[Count.COMPLETED] == 1)
    timer.turn()
    eventually(lambda: host.counters("slow")[Count.COMPLETED] == 2)


def test_queue_one_keeps_one(host_with: HostWith, watch, work: Work) -> None:
    """With `queue-one` one tick waits for the one in hand; the third and fourth are dropped."""
    host = host_with("slow")
    timer = started(host, every("10s", work.processor, name="slow", overlap="queue-one"))
    work.go.clear()
    for _ in range(4):
        timer.turn()
        eventually(lambda: len(work.seeds) == 1)
        watch.pass_by(10)
    work.go.set()
    eventually(lambda: host.counters("slow")[Count.COMPLETED] == 2)
    assert host.counters("slow")[Count.SKIPPED_OVERLAP] == 2
    assert [key.partition("+")[0] for key in work.keys] == ["slow@2026-03-02T12:00:00", "slow@2026-03-02T12:00:10"]


@pytest.mark.parametrize(
    ("late", "expected"),
    [("run-once", {"started": 2, "completed": 2, "late": 1}), ("skip", {"started": 1, "completed": 1, "missed": 1})],
)
def test_a_late_tick(host_with: HostWith, watch, work: Work, late: str, expected: dict[str, int]) -> None:
    """A tick that begins long after its moment runs once or is dropped, and is counted either way."""
    host = host_with("x")
    timer = started(host, every("60s", work.processor, name="x", late=late))
    timer.turn()
    eventually(lambda: host.counters("x")[Count.COMPLETED] == 1)
    watch.pass_by(60 + 45)
    timer.turn()
    eventually(lambda: counts(host, "x") == expected)


def test_a_tick_that_waited_for_a_thread_is_late(host_with: HostWith, watch, work: Work) -> None:
    """Lateness is judged when a tick begins, not when it is queued: a full pool makes it late too."""
    host = host_with("slow", "x", pool=1)
    timer = started(host, every("1h", work.processor, name="slow"))
    work.go.clear()
    timer.turn()
    eventually(lambda: len(work.seeds) == 1)
    started(host, every("1h", Work().processor, name="x", late="skip"))
    timer.turn()
    watch.pass_by(31)
    work.go.set()
    eventually(lambda: counts(host, "x") == {"missed": 1})


def test_passed_over_moments_are_counted(host_with: HostWith, watch, work: Work) -> None:
    """After a stall one run makes up for all, and the others count as missed."""
    host = host_with("x")
    timer = started(host, cron("*/5 * * * *", work.processor, name="x"))
    timer.turn()
    eventually(lambda: host.counters("x")[Count.COMPLETED] == 1)
    watch.pass_by(3600 + 200)
    timer.turn()
    eventually(lambda: counts(host, "x") == {"started": 2, "completed": 2, "late": 1, "missed": 11})


class Cursor:
    """A poller with three finds that notes what was done in which order."""

    def __init__(self, notes: list[object]) -> None:
        self.notes = notes
        self.done = 0

    def poll(self) -> Iterator[int]:
        self.notes.append("polled")
        try:
            while self.done < 3:
                yield self.done
                self.done += 1
                self.notes.append(f"moved to {self.done}")
        finally:
            self.notes.append("closed")


def test_each_find_is_a_run_and_the_cursor_follows(host_with: HostWith, work: Work) -> None:
    """The poller goes on when the run of what it yielded has ended, a failed one too."""
    notes: list[object] = []

    def note(context: ProcessContext) -> None:
        notes.append(f"ran {context.seed_data}")
        if context.seed_data == 1:
            raise ValueError("no such fare")

    work.behaviour = note
    host = host_with("x")
    started(host, every("60s", work.processor, name="x", poll=Cursor(notes))).turn()
    eventually(lambda: "closed" in notes)
    assert notes == ["polled", "ran 0", "moved to 1", "ran 1", "moved to 2", "ran 2", "moved to 3", "closed"]
    eventually(lambda: counts(host, "x") == {"started": 3, "completed": 2, "failed": 1})


def test_a_crash_between_run_and_cursor_repeats(host_with: HostWith, work: Work) -> None:
    """What ends a poll before its cursor moved, makes the next poll bring the same find: repeated, not lost."""
    host = host_with("x")
    cursor = Cursor([])
    launcher = every("60s", work.processor, name="x", poll=cursor)
    # A kill between run and cursor leaves what closing the generator at its yield leaves: a cursor that has not moved.
    polled = cursor.poll()
    assert next(polled) == 0
    polled.close()  # type: ignore[attr-defined]
    started(host, launcher).turn()
    eventually(lambda: cursor.done == 3)
    assert work.seeds == [0, 1, 2]


def test_stopping_ends_a_poll_behind_the_run_in_hand(host_with: HostWith, work: Work) -> None:
    """The find whose run has ended is committed, the next one is neither run nor committed."""
    notes: list[object] = []
    cursor = Cursor(notes)
    host = host_with("x")
    launcher = every("60s", work.processor, name="x", poll=cursor)
    work.go.clear()
    started(host, launcher).turn()
    assert work.entered.acquire(timeout=5)
    launcher.stop()
    work.go.set()
    assert launcher.finish(host.clock.monotonic() + 5)
    assert (work.seeds, cursor.done, notes[-1]) == ([0], 1, "closed")
    assert launcher.state is LauncherState.STOPPED


def test_a_poll_that_finds_nothing_is_counted(
    host_with: HostWith, work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    """A poller that yields nothing leaves a counter only."""
    cursor = Cursor([])
    cursor.done = 3
    host = host_with("x")
    caplog.set_level("INFO")
    started(host, every("60s", work.processor, name="x", poll=cursor)).turn()
    eventually(lambda: counts(host, "x") == {"nothing_found": 1})
    assert caplog.records == []


class Numbered(ProcessContext):
    seed_data: int


@pytest.mark.parametrize("catches", [True, False])
def test_a_seed_that_does_not_fit_moves_no_cursor(host_with: HostWith, catches: bool) -> None:
    """The poller is told at its `yield`: if it catches the error it goes on with the next seed, else the poll ends."""
    moved: list[object] = []

    class Finds:
        def poll(self) -> Iterator[object]:
            for seed in (1, "two", 3):
                try:
                    yield seed
                except SeedError:
                    if not catches:
                        raise
                else:
                    moved.append(seed)

    processor = SequenceProcessor([lambda context: None], context=Numbered, name="numbers")
    host = host_with("x")
    launcher = every("60s", processor, name="x", poll=Finds())
    started(host, launcher).turn()
    eventually(
        lambda: (
            counts(host, "x")
            == {"started": 2 + catches, "completed": 1 + catches, "failed": 1} | ({} if catches else {"errors": 1})
        )
    )
    assert moved == ([1, 3] if catches else [1])


class Unmade(ProcessContext):
    def __init__(self) -> None:
        raise ConnectionError("the license server is down")


class Unseeded(ProcessContext):
    def set_seed_data(self, seed_data: object) -> None:
        raise ConnectionError("the license server is down")


def unmade() -> Unmade:
    return Unmade()


def nothing(context: ProcessContext) -> None:
    pass


CANNOT_BEGIN = {
    "no context": SequenceProcessor([nothing], context=Unmade, name="p"),
    "no context for a split": ParallelSplitProcessor({"a": nothing}, context=Unmade, name="p"),
    "no seed": SequenceProcessor([nothing], context=Unseeded, name="p"),
    "no seed, and a finally": SequenceProcessor([nothing], context=Unseeded, finally_=[nothing], name="p"),
    "no context from a function": SequenceProcessor([nothing], context=unmade, name="p"),
}


@pytest.mark.parametrize("processor", CANNOT_BEGIN.values(), ids=CANNOT_BEGIN)
def test_whatever_keeps_a_run_from_beginning_is_told_to_the_poller(host_with: HostWith, processor: Any) -> None:
    """When no activity ran, the poller hears of it at its `yield`, with the cause, and goes on with the next seed."""
    told: list[SeedError] = []
    moved: list[object] = []

    class Finds:
        def poll(self) -> Iterator[object]:
            for seed in ("a", "b"):
                try:
                    yield seed
                except SeedError as error:
                    told.append(error)
                else:
                    moved.append(seed)

    host = host_with("x")
    started(host, every("60s", processor, name="x", poll=Finds())).turn()
    eventually(lambda: len(told) == 2 and counts(host, "x") == {"started": 2, "failed": 2})
    assert moved == []
    assert str(told[0]) == "no run of p could begin: ConnectionError: the license server is down"
    assert isinstance(told[0].__cause__, ConnectionError)


def test_rows_wait_while_no_run_can_begin(host_with: HostWith, watch, tmp_path: Path) -> None:
    """`PollQuery` keeps none of the rows that no run could begin with as polled; when runs begin again, all are run."""
    database = tmp_path / "orders.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE orders (number INTEGER)")
        connection.executemany("INSERT INTO orders VALUES (?)", [(1,), (2,)])
    seen: list[object] = []

    class Fragile(ProcessContext):
        seed_data: dict[str, int]
        broken = True

        def __init__(self) -> None:
            if Fragile.broken:
                raise ConnectionError("the license server is down")

    processor = SequenceProcessor([lambda context: seen.append(context.seed_data["number"])], context=Fragile)
    host = host_with("x")
    poll = PollQuery(database, "SELECT number FROM orders", "number")
    timer = started(host, every("60s", processor, name="x", poll=poll))
    timer.turn()
    eventually(lambda: counts(host, "x") == {"started": 2, "failed": 2})
    Fragile.broken = False
    watch.pass_by(60)
    timer.turn()
    eventually(lambda: counts(host, "x") == {"started": 4, "failed": 2, "completed": 2})
    assert seen == [1, 2]


def test_none_is_no_seed(host_with: HostWith, work: Work) -> None:
    """A None that a poll yields starts no run without a seed: its generator is told, and a plain list goes on."""
    told: list[str] = []

    class Finds:
        def poll(self) -> Iterator[object]:
            for seed in (None, "a"):
                try:
                    yield seed
                except SeedError as error:
                    told.append(str(error))

    class Listed:
        def poll(self) -> list[object]:
            return [None, "b"]

    host = host_with("x", "y")
    expected = {"started": 1, "completed": 1, "refused": 1}
    started(host, every("60s", work.processor, name="x", poll=Finds())).turn()
    eventually(lambda: counts(host, "x") == expected)
    started(host, every("60s", work.processor, name="y", poll=Listed())).turn()
    eventually(lambda: counts(host, "y") == expected)
    assert work.seeds == ["a", "b"]
    assert told == ["poll() yielded None, which is no seed; yield a seed for each run, or nothing at all"]


def test_an_activity_s_own_seed_error_is_no_refusal(host_with: HostWith, work: Work) -> None:
    """A run that began and failed moves the cursor, whatever the error."""

    def refuse(context: ProcessContext) -> None:
        raise SeedError("of another processor")

    work.behaviour = refuse
    notes: list[str] = []
    host = host_with("x")
    started(host, every("60s", work.processor, name="x", poll=Cursor(notes))).turn()
    eventually(lambda: notes[-1:] == ["closed"])
    assert "moved to 3" in notes


@pytest.mark.parametrize("kind", [ConnectionError, SystemExit])
def test_a_poll_that_raises_shows_and_is_repeated(
    host_with: HostWith, watch, work: Work, caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    """What the poller raises, SystemExit too, ends the tick, is logged and shown, and the next tick polls again."""

    class Flaky:
        polls = 0

        def poll(self) -> Iterator[str]:
            Flaky.polls += 1
            yield "first"
            if Flaky.polls == 1:
                raise kind("database went away")
            yield "second"

    host = host_with("x")
    launcher = every("60s", work.processor, name="x", poll=Flaky())
    timer = started(host, launcher)
    timer.turn()
    eventually(lambda: launcher.trouble == f"the last poll failed: {kind.__name__}")
    assert "database went away" in caplog.text
    eventually(lambda: counts(host, "x") == {"started": 1, "completed": 1, "errors": 1})
    watch.pass_by(60)
    timer.turn()
    eventually(lambda: work.seeds == ["first", "first", "second"])
    eventually(lambda: launcher.trouble == "")


def test_an_activity_that_exits_does_not_end_the_poll(host_with: HostWith, work: Work) -> None:
    """SystemExit in an activity interrupts its run, not the daemon's thread nor the other finds."""

    def leave(context: ProcessContext) -> None:
        if context.seed_data == 0:
            raise SystemExit(1)

    work.behaviour = leave
    host = host_with("x")
    started(host, every("60s", work.processor, name="x", poll=Cursor([]))).turn()
    eventually(lambda: counts(host, "x") == {"started": 3, "completed": 2, "interrupted": 1})


def test_a_moment_that_has_passed(host_with: HostWith, work: Work, caplog: pytest.LogCaptureFixture) -> None:
    """A single moment before the start is not made up for, since nothing tells whether it was fired already."""
    host = host_with("once")
    launcher = at("2026-03-02T11:59", work.processor, name="once")
    started(host, launcher).turn()
    assert counts(host, "once") == {"missed": 1}
    assert launcher.state is LauncherState.FINISHED
    assert "2026-03-02 11:59:00+00:00 has passed" in caplog.text


def test_finished_after_the_last_firing(host_with: HostWith, watch, work: Work) -> None:
    """A single moment fires, and then the launcher is finished."""
    host = host_with("once")
    launcher = at("2026-03-02T12:01", work.processor, name="once")
    timer = started(host, launcher)
    assert launcher.state is LauncherState.RUNNING
    watch.pass_by(60)
    timer.turn()
    launcher.heartbeat()
    assert launcher.state is LauncherState.FINISHED
    eventually(lambda: host.counters("once")[Count.COMPLETED] == 1)


def test_finish_gives_up_at_the_deadline(host_with: HostWith, work: Work) -> None:
    """A tick that hangs does not hold up stopping beyond the deadline."""
    host = host_with("x")
    launcher = every("60s", work.processor, name="x")
    work.go.clear()
    started(host, launcher).turn()
    assert work.entered.acquire(timeout=5)
    launcher.stop()
    began = time.perf_counter()
    assert not launcher.finish(host.clock.monotonic() + 0.05)
    assert time.perf_counter() - began < 3
    work.go.set()
