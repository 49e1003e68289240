"""The polling launcher: overlaps, lateness, and what it leaves when it is stopped."""

from __future__ import annotations

import time

import pytest
from unit.schedule.kit import HostWith, Work, counts, eventually, started

from iocflow.context import ProcessContext
from iocflow.launch.counters import Count
from iocflow.launch.snapshot import LauncherState
from iocflow.schedule import at, cron, every


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
