"""Scheduled launchers over a store: what a restart, a second daemon, an operator and a lost store make of firings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from unit.schedule.kit import HostWith, Work, counts, eventually

from iocflow.launch.host import DaemonHost
from iocflow.launch.snapshot import LauncherState
from iocflow.schedule import at, cron, every
from iocflow.schedule.ledger import LEASE, Ledger
from iocflow.schedule.polling import AGAIN, PollingLauncher
from iocflow.schedule.timer import Timer
from iocflow.store.errors import StoreLostError
from iocflow.store.launchers import Launchers, Standing
from iocflow.store.sqlite.store import SqliteStore

Make = Callable[[Work], PollingLauncher]


class Losing:
    """A store's launchers that are lost whenever a test says so."""

    def __init__(self, book: Launchers) -> None:
        self._book = book
        self.lost = False

    def __getattr__(self, name: str) -> Any:
        if self.lost:
            raise StoreLostError("the cable was cut")
        return getattr(self._book, name)


@pytest.fixture
def book(watch, tmp_path: Path) -> Iterator[Losing]:
    """Return a SQLite file's launchers."""
    store = SqliteStore(tmp_path / "store.db")
    yield Losing(store.launchers)
    store.close()


class Served:
    """One daemon with one launcher over a store."""

    def __init__(self, host_with: HostWith, book: Losing, make: Make) -> None:
        self.work = Work()
        self.launcher = make(self.work)
        self.book = book
        self.host: DaemonHost = host_with(self.launcher.name, book=book)
        self.timer: Timer = self.host.service(Timer)
        self.ledger: Ledger = self.host.service(Ledger)
        self.launcher.start(self.host)
        self.ledger.flush()

    def turn(self) -> None:
        """Let the timer fire what is due, and wait until that is dealt with."""
        self.timer.turn()
        self.settled()

    def settled(self) -> None:
        """Wait until nothing is in hand."""
        assert self.host.pool.wait_idle(10)
        eventually(lambda: not self.host.pool.queued and not self.host.pool.in_hand())

    @property
    def standing(self) -> Standing:
        """How the launcher stands in the store."""
        (found,) = self.book.standings([self.launcher.name])
        return found  # type: ignore[no-any-return]

    @property
    def counts(self) -> dict[str, int]:
        """What was counted."""
        return counts(self.host, self.launcher.name)

    @property
    def moments(self) -> list[str]:
        """The moments of the runs that began here, UTC, to the minute; or the request that each answered."""
        keys = [key.partition("/")[0] for key in self.work.keys]
        return [key.partition("@")[2][:16] or key for key in keys]

    def die(self) -> None:
        """Show no more life, and fire nothing more."""
        self.timer.stop()


@pytest.fixture
def serve(host_with: HostWith, book: Losing) -> Callable[[Make], Served]:
    """Return a function that starts a daemon for a launcher."""
    return lambda make: Served(host_with, book, make)


def hourly(work: Work) -> PollingLauncher:
    """Return a launcher of every hour."""
    return every("1h", work.processor, name="poll")


def test_a_restart_goes_on_behind_the_last_firing(serve, watch) -> None:
    """An interval is not begun anew: ten minutes after a firing it is fifty until the next."""
    first = serve(hourly)
    first.turn()
    first.die()
    watch.pass_by(600)
    second = serve(hourly)
    second.turn()
    assert (first.moments, second.moments) == (["2026-03-02T12:00"], [])
    watch.pass_by(3000)
    second.turn()
    assert (second.moments, second.counts) == (["2026-03-02T13:00"], {"started": 1, "completed": 1})


@pytest.mark.parametrize(
    ("make", "moment", "missed"),
    [
        (lambda work: cron("*/10 * * * *", work.processor, name="poll"), "2026-03-02T15:00", 17),
        (lambda work: every("10m", work.processor, name="poll"), "2026-03-02T15:00", 17),
        (lambda work: at("2026-03-02T14:00", work.processor, name="poll"), "2026-03-02T14:00", 0),
    ],
    ids=["cron", "every", "at"],
)
def test_what_was_missed_while_no_daemon_ran(serve, watch, make: Make, moment: str, missed: int) -> None:
    """One firing makes up for all of them, at once; the others are counted, in the store, too."""
    first = serve(make)
    first.turn()
    first.die()
    watch.pass_by(3 * 3600 + 60)
    second = serve(make)
    second.turn()
    late = {"late": 1, "started": 1, "completed": 1} | ({"missed": missed} if missed else {})
    assert (second.moments, second.counts) == ([moment], late)
    assert second.standing.missed == missed
    third = serve(make)
    third.turn()
    assert third.moments == []


def test_late_skip_makes_up_for_nothing(serve, watch) -> None:
    """With `late: skip` a firing that was missed is counted, and dealt with."""

    def make(work: Work) -> PollingLauncher:
        return cron("0 * * * *", work.processor, name="poll", late="skip")

    serve(make).die()
    watch.pass_by(3 * 3600 + 60)
    second = serve(make)
    second.turn()
    assert (second.moments, second.counts) == ([], {"missed": 4})
    assert (second.standing.missed, second.standing.fired) == (4, 0)
    watch.pass_by(3600 - 60)
    second.turn()
    assert second.moments == ["2026-03-02T16:00"]


def test_a_moment_before_it_was_first_served_is_not_made_up_for(serve) -> None:
    """Nobody missed it."""
    served = serve(lambda work: at("2026-03-02T11:59", work.processor, name="poll"))
    served.turn()
    assert (served.moments, served.counts) == ([], {"missed": 1})
    assert served.launcher.state is LauncherState.FINISHED


@pytest.mark.parametrize("make", [hourly, lambda work: cron("0 * * * *", work.processor, name="poll")])
def test_two_daemons_fire_once(serve, watch, make: Make) -> None:
    """Each moment has one run, wherever, and intervals are those of the daemon that fired first."""
    first = serve(make)
    first.turn()
    watch.pass_by(900)
    second = serve(make)
    for _ in range(40):
        for one in (second, first):
            one.turn()
        watch.pass_by(900)
    both = sorted(first.moments + second.moments)
    assert len(both) == len(set(both)) == 11
    assert {moment[-2:] for moment in both} == {"00"}
    assert "missed" not in first.counts | second.counts
    assert first.standing.missed == 0


def test_two_daemons_that_start_at_once_begin_one_interval(serve, watch) -> None:
    """The later one's own beginning is given up for the earlier one's."""
    first = serve(hourly)
    watch.pass_by(1)
    second = serve(hourly)
    first.turn()
    second.turn()
    watch.pass_by(3599)
    second.turn()
    first.turn()
    assert (first.work.keys, len(second.work.keys)) == (["poll@2026-03-02T12:00:00+00:00/act#1"], 1)
    assert second.work.keys[0].startswith("poll@2026-03-02T13:00:00")


def test_the_tick_of_a_dead_daemon_is_begun_by_another(serve, watch) -> None:
    """The other one looks again when the lease is over, not at its next firing."""
    first, make = serve(hourly), hourly
    first.work.go.clear()
    first.timer.turn()
    eventually(lambda: first.standing.busy)
    first.die()
    second = serve(make)
    second.turn()
    assert second.moments == []
    watch.pass_by(LEASE + 1)
    second.turn()
    assert second.moments == ["2026-03-02T12:00"]
    first.work.go.set()
    first.settled()
    assert second.standing.fired == 1


def test_a_daemon_that_lives_keeps_its_tick(serve, watch) -> None:
    """However long it takes, as long as the ledger shows life, nobody else begins it."""
    first = serve(hourly)
    first.work.go.clear()
    first.timer.turn()
    eventually(lambda: first.standing.busy)
    second = serve(hourly)
    for _ in range(10):
        watch.pass_by(LEASE / 2)
        first.ledger.turn()
        second.turn()
    assert second.moments == []
    first.work.go.set()
    first.settled()
    assert (first.standing.busy, first.standing.outcome) == (False, "completed")


def test_what_an_overlap_drops_is_not_made_up_for(serve, watch) -> None:
    """Dropped moments are dealt with when the tick ends that they would have overlapped, by no daemon."""
    first = serve(hourly)
    first.work.go.clear()
    first.timer.turn()
    eventually(lambda: bool(first.work.seeds))
    watch.pass_by(3600)
    first.ledger.turn()
    first.timer.turn()
    assert first.counts["skipped_overlap"] == 1
    first.work.go.set()
    first.settled()
    second = serve(hourly)
    second.turn()
    assert second.moments == []


def test_pause_and_resume(serve, watch) -> None:
    """A paused launcher passes over its firings without a run, tells so, and is still ready; later it goes on."""
    served = serve(hourly)
    served.turn()
    served.book.pause("poll", who="ann", why="")
    served.ledger.turn()
    assert served.launcher.state is LauncherState.PAUSED
    for _ in range(3):
        watch.pass_by(3600)
        served.turn()
    assert (len(served.moments), served.counts["paused"]) == (1, 3)
    served.book.resume("poll", who="ann", why="")
    served.ledger.turn()
    assert served.launcher.state is LauncherState.RUNNING
    served.turn()
    assert len(served.moments) == 1
    watch.pass_by(3600)
    served.turn()
    assert served.moments == ["2026-03-02T12:00", "2026-03-02T16:00"]
    assert served.standing.missed == 0


@pytest.mark.parametrize("paused", [False, True])
def test_trigger_now(serve, watch, paused: bool) -> None:
    """An operator's request is one run at once, paused or not, and changes nothing about the schedule."""
    served, other = serve(hourly), serve(hourly)
    served.turn()
    watch.pass_by(60)
    if paused:
        served.book.pause("poll", who="ann", why="")
    served.book.trigger("poll", who="ann", why="")
    for one in (served, other, served):
        one.ledger.turn()
        one.settled()
    assert served.moments + other.moments == ["2026-03-02T12:00", "poll#1"]
    assert served.standing.answered == 1
    watch.pass_by(3540)
    served.turn()
    assert served.moments[-1] == ("poll#1" if paused else "2026-03-02T13:00")


def test_no_firing_is_lost_while_the_store_is_away(serve, watch) -> None:
    """It waits, is tried again, and begins when the store answers."""
    served = serve(hourly)
    served.book.lost = True
    for _ in range(3):
        served.turn()
        watch.pass_by(AGAIN)
    assert (served.moments, served.counts) == ([], {"errors": 3})
    assert served.launcher.trouble
    served.book.lost = False
    served.turn()
    assert (served.moments, served.launcher.trouble) == (["2026-03-02T12:00"], "")


def test_an_end_that_could_not_be_written_is_written_later(serve, watch) -> None:
    """The tick is not begun again, here or elsewhere, when the store was away at its end only."""
    served = serve(hourly)
    served.work.behaviour = lambda context: setattr(served.book, "lost", True)
    served.turn()
    assert served.moments == ["2026-03-02T12:00"]
    assert "the cable was cut" in served.ledger.trouble()
    served.book.lost = False
    assert served.standing.ended is None
    served.ledger.turn()
    assert served.standing.outcome == "completed"


def test_a_clock_set_back_an_hour_repeats_no_daily_firing(serve, watch) -> None:
    """Nor does a daemon that starts then; but a launcher of every minute goes on at once."""

    def daily(work: Work) -> PollingLauncher:
        return cron("0 13 * * *", work.processor, name="daily")

    def minutely(work: Work) -> PollingLauncher:
        return cron("* * * * *", work.processor, name="minutely")

    first = [serve(daily), serve(minutely)]
    watch.pass_by(3600)
    for one in first:
        one.turn()
        one.die()
    watch.set_wall(-timedelta(hours=1))
    again = [serve(daily), serve(minutely)]
    for _ in range(61):
        watch.pass_by(60)
        for one in again:
            one.turn()
    assert (len(first[0].moments), again[0].moments) == (1, [])
    assert len(again[1].moments) == 61


def test_a_clock_set_ahead_ten_years_and_back_silences_nobody(serve, watch) -> None:
    """It costs one firing, and afterwards the schedule goes on, in the same daemon and in a new one."""
    first = serve(hourly)
    first.turn()
    watch.set_wall(timedelta(days=3653))
    watch.pass_by(3600)
    first.turn()
    watch.set_wall(-timedelta(days=3653))
    watch.pass_by(3600)
    first.turn()
    first.die()
    watch.pass_by(3600)
    second = serve(hourly)
    second.turn()
    assert [moment[:4] for moment in first.moments] == ["2026", "2036", "2026"]
    assert [moment[:4] for moment in second.moments] == ["2026"]


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("America/New_York", datetime(2026, 3, 8, 0, tzinfo=UTC)),
        ("America/New_York", datetime(2026, 11, 1, 0, tzinfo=UTC)),
        ("Europe/Berlin", datetime(2026, 3, 28, 20, tzinfo=UTC)),
        ("Europe/Berlin", datetime(2026, 10, 24, 20, tzinfo=UTC)),
        ("Australia/Lord_Howe", datetime(2026, 4, 4, 0, tzinfo=UTC)),
        ("Australia/Lord_Howe", datetime(2026, 10, 3, 0, tzinfo=UTC)),
    ],
)
@pytest.mark.parametrize("expression", ["30 1 * * *", "15 2 * * *", "45 1 * * *"])
def test_days_on_which_clocks_are_set(serve, watch, zone: str, day: datetime, expression: str) -> None:
    """Two days in steps of five minutes, a new daemon each hour: one firing on each, in spring and autumn."""

    def make(work: Work) -> PollingLauncher:
        return cron(expression, work.processor, name="daily", timezone=zone)

    watch.set_wall(day - datetime.now(UTC))
    fired: list[str] = []
    for _ in range(48):
        served = serve(make)
        for _ in range(12):
            served.turn()
            watch.pass_by(300)
        fired += served.moments
        served.die()
    assert len(fired) == len(set(fired)) == 2
