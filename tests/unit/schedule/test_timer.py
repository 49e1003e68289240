"""The timer: late turns, clocks that are set, jitter, and a thread that may not die unnoticed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from iocflow.launch.clock import SystemClock
from iocflow.launch.host import DaemonHost
from iocflow.launch.settings import DaemonSettings
from iocflow.schedule.timer import Timer, latest_until, missed_between
from iocflow.schedule.timing import At, Cron, Every, Timing


class Fired:
    """Keeps what a timer called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def __call__(self, moment: datetime, missed: int) -> None:
        self.calls.append((moment.strftime("%d %H:%M:%S"), missed))

    def take(self) -> list[tuple[str, int]]:
        """Return what was called since the last time."""
        taken, self.calls = self.calls, []
        return taken


@pytest.fixture
def fired() -> Fired:
    """Return a callable that remembers its calls."""
    return Fired()


def run_for(seconds: float, timer: Timer, watch, step: float = 1.0) -> None:
    """Let time go by in small steps, with a turn after each."""
    timer.turn()
    for _ in range(int(seconds / step)):
        watch.pass_by(step)
        timer.turn()


def add(timer: Timer, timing: Timing, fired: Fired, watch, jitter: timedelta = timedelta()) -> None:
    """Have a timing call `fired` from now on."""
    timer.add("x", timing.starting(watch.now()), watch.now(), fired, jitter)


def test_every_fires_at_the_start_and_in_steps(timer: Timer, watch, fired: Fired) -> None:
    """The first tick comes at once, the others on the grid."""
    add(timer, Every(timedelta(seconds=10)), fired, watch)
    run_for(30, timer, watch)
    assert fired.take() == [("02 12:00:00", 0), ("02 12:00:10", 0), ("02 12:00:20", 0), ("02 12:00:30", 0)]


def test_turn_tells_how_long_to_wait(timer: Timer, watch, fired: Fired) -> None:
    """A turn never waits longer than a heartbeat, however far the next firing is: a clock may be set meanwhile."""
    assert timer.turn() == 5.0
    add(timer, Every(timedelta(seconds=2)), fired, watch)
    assert timer.turn() == pytest.approx(2.0)
    timer.add("far", Cron("0 0 1 1 *"), watch.now(), fired)
    watch.pass_by(0.5)
    assert timer.turn() == pytest.approx(1.5)


def test_a_late_turn_fires_once(timer: Timer, watch, fired: Fired) -> None:
    """After a stall, the last moment that has passed fires, and the others are reported as passed over."""
    add(timer, Every(timedelta(seconds=10)), fired, watch)
    timer.turn()
    watch.pass_by(95)
    timer.turn()
    timer.turn()
    assert fired.take() == [("02 12:00:00", 0), ("02 12:01:30", 8)]
    assert timer.next_firing("x") == datetime(2026, 3, 2, 12, 1, 40, tzinfo=UTC)


def test_clock_set_back_does_not_silence_an_interval(timer: Timer, watch, fired: Fired) -> None:
    """An interval goes on in its pace although the wall clock was set back by an hour."""
    add(timer, Every(timedelta(seconds=10)), fired, watch)
    timer.turn()
    watch.pass_by(4)
    watch.set_wall(timedelta(hours=-1))
    fired.take()
    run_for(16, timer, watch)
    assert fired.take() == [("02 11:00:10", 0), ("02 11:00:20", 0)]


def test_clock_set_back_does_not_silence_a_rhythm(timer: Timer, watch, fired: Fired) -> None:
    """A cron expression of every minute goes on at once by the new time."""
    add(timer, Cron("* * * * *"), fired, watch)
    run_for(60, timer, watch)
    watch.set_wall(timedelta(hours=-1))
    fired.take()
    run_for(60, timer, watch)
    assert fired.take() == [("02 11:02:00", 0)]


def test_clock_set_back_a_little_does_not_repeat_a_firing(timer: Timer, watch, fired: Fired) -> None:
    """A daily firing is not repeated when the clock is set back over it by less than a day."""
    add(timer, Cron("30 12 * * *"), fired, watch)
    run_for(1860, timer, watch, step=60)
    assert fired.take() == [("02 12:30:00", 0)]
    watch.set_wall(timedelta(hours=-1))
    run_for(7200, timer, watch, step=60)
    assert fired.take() == []
    run_for(86_400, timer, watch, step=600)
    assert fired.take() == [("03 12:30:00", 0)]


def test_clock_ten_years_ahead_and_back(timer: Timer, watch, fired: Fired) -> None:
    """Ten years ahead fires each launcher once, in no time; back again, nothing is silent for ten years."""
    add(timer, Cron("*/5 * * * *"), fired, watch)
    timer.add("second", Every(timedelta(seconds=1)).starting(watch.now()), watch.now(), fired)
    timer.turn()
    fired.take()
    began = time.thread_time()
    watch.set_wall(timedelta(days=3653, seconds=1))
    timer.turn()
    assert time.thread_time() - began < 5.0
    assert fired.take() == [("02 12:00:00", 1000)]
    watch.pass_by(1)
    timer.turn()
    assert fired.take() == [("02 12:00:02", 0)]
    watch.set_wall(timedelta(days=-3653))
    run_for(300, timer, watch, step=1)
    calls = fired.take()
    assert ("02 12:05:00", 0) in calls
    assert len(calls) == 300 + 1


def test_suspended_machine_makes_up_once(timer: Timer, watch, fired: Fired) -> None:
    """A machine that slept (its monotonic clock too) makes up for one firing when it wakes."""
    add(timer, Cron("0 * * * *"), fired, watch)
    timer.turn()
    watch.set_wall(timedelta(hours=8, minutes=20))
    timer.turn()
    assert fired.take() == [("02 12:00:00", 0), ("02 20:00:00", 7)]


def test_clock_drift_is_no_jump(timer: Timer, watch, fired: Fired, caplog: pytest.LogCaptureFixture) -> None:
    """What time services slew is left alone."""
    add(timer, Every(timedelta(seconds=10)), fired, watch)
    for _ in range(20):
        watch.pass_by(5)
        watch.set_wall(timedelta(milliseconds=-3))
        timer.turn()
    assert "was set" not in caplog.text


def test_at_fires_once_for_all(timer: Timer, watch, fired: Fired) -> None:
    """A single moment fires once, also when the clock is set back over it."""
    add(timer, At(datetime(2026, 3, 2, 12, 1, tzinfo=UTC)), fired, watch)
    run_for(61, timer, watch)
    assert fired.take() == [("02 12:01:00", 0)]
    assert timer.next_firing("x") is None
    watch.set_wall(timedelta(minutes=-5))
    run_for(600, timer, watch)
    assert fired.take() == []


def test_jitter_delays_and_does_not_add_up(timer: Timer, watch, fired: Fired) -> None:
    """Each firing comes up to the jitter late, with the moment that was meant; the grid stays where it is."""
    add(timer, Every(timedelta(seconds=10)), fired, watch, jitter=timedelta(seconds=8))
    run_for(100, timer, watch, step=0.25)
    calls = fired.take()
    meant = [f"02 12:0{n // 6}:{n % 6}0" for n in range(len(calls))]
    assert [moment for moment, _ in calls] == meant
    assert len(calls) in (10, 11)


def test_jitter_is_over_when_the_clock_is_set(timer: Timer, watch, fired: Fired) -> None:
    """A firing that the jitter holds back comes at once when the clock is set, rather than an hour later."""
    add(timer, Cron("0 12 * * *"), fired, watch, jitter=timedelta(hours=10))
    timer.turn()
    assert fired.take() == []
    watch.set_wall(timedelta(hours=-1))
    timer.turn()
    assert fired.take() == [("02 12:00:00", 0)]


def test_latest_and_missed_agree_with_stepping() -> None:
    """Looking back in spans finds the same as stepping through all firings."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    timings: list[Timing] = [Every(timedelta(seconds=7)).starting(start), Cron("*/17 * * * *"), Cron("0 6 * * mon")]
    for timing in timings:
        known = timing.after(start) or start
        for hours in (0.01, 0.5, 30):
            now = known + timedelta(hours=hours)
            stepped, steps = known, 0
            while (following := timing.after(stepped)) is not None and following <= now:
                stepped, steps = following, steps + 1
            assert latest_until(timing, now, known) == stepped
            assert missed_between(timing, known, stepped) == min(steps, 1000)


def test_an_error_in_a_turn_is_survived(timer: Timer, watch, fired: Fired, caplog: pytest.LogCaptureFixture) -> None:
    """What a call lets through is logged, and the others still fire; APScheduler's own thread would have died."""

    def broken(moment: datetime, missed: int) -> None:
        raise OSError("disk on fire")

    timer.add("broken", Every(timedelta(seconds=1)).starting(watch.now()), watch.now(), broken)
    add(timer, Every(timedelta(seconds=1)), fired, watch)
    run_for(3, timer, watch)
    assert len(fired.take()) == 4
    assert "disk on fire" in caplog.text


def test_a_turn_that_fails_shows_until_one_works(timer: Timer, watch, fired: Fired) -> None:
    """A timing that raises makes the timer not ready; it is tried again, and the trouble goes when it works."""

    class Moody(Every):
        broken = True

        def after(self, at: datetime) -> datetime | None:
            if Moody.broken:
                raise OverflowError
            return super().after(at)

    timing = Moody(timedelta(seconds=10))
    Moody.broken = False
    add(timer, timing, fired, watch)
    Moody.broken = True
    assert timer.turn() == 1.0
    assert timer.trouble() == "the timer's last turn failed: OverflowError"
    Moody.broken = False
    timer.turn()
    assert timer.trouble() == ""


def test_silence_is_trouble(timer: Timer, watch) -> None:
    """A timer that made no turn for some heartbeats is in trouble, whatever its flags say."""
    timer.turn()
    assert timer.trouble() == ""
    watch.pass_by(17)
    assert timer.trouble() == "the timer made no progress for 17 s"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_thread_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    """When the timer's thread dies, the next heartbeat notices and goes on with a new one."""
    real = DaemonHost(
        SystemClock(),
        DaemonSettings(heartbeat=timedelta(milliseconds=100)),
        {},
        limits={},
        mask=str,
        give_up=lambda code, why: None,
        changed=lambda: None,
    )
    timer = Timer(real)
    died, fired = threading.Event(), threading.Event()

    # Only what is no Exception gets out of a turn; a job's is caught by APScheduler, so the loop pass raises it.
    process: Callable[[], float | None] = timer._scheduler.process_jobs

    def once() -> float | None:
        if not died.is_set():
            died.set()
            raise SystemExit
        return process()

    timer._scheduler.process_jobs = once  # type: ignore[method-assign]
    timer.start()
    assert died.wait(5)
    thread = timer._thread
    assert thread is not None
    thread.join(5)
    timer.add("x", Every(timedelta(seconds=1)).starting(real.clock.now()), real.clock.now(), lambda *_: fired.set())
    assert not fired.is_set()
    timer.heartbeat()
    assert fired.wait(5)
    assert "died and is replaced" in caplog.text
    timer.stop()
    timer.heartbeat()
    assert timer._thread is not None
    timer._thread.join(5)
    assert not timer._thread.is_alive()
