"""When launchers fire, and what they do where clocks are set back and forward."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import pytest

from iocflow.launch.errors import LauncherError
from iocflow.schedule.timing import At, Calendar, Cron, Dst, Every, Timing, time_zone

NEW_YORK = "America/New_York"  # 2026: 8 March 02:00 -> 03:00, 1 November 02:00 -> 01:00
BERLIN = "Europe/Berlin"  # 2026: 29 March 02:00 -> 03:00, 25 October 03:00 -> 02:00
LORD_HOWE = "Australia/Lord_Howe"  # 2026: 5 April 02:00 -> 01:30, 4 October 02:00 -> 02:30


def utc(text: str) -> datetime:
    """Return a moment from `2026-03-01 06:00`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def shown(timing: Timing, after: str, number: int) -> list[str]:
    """Return the next firings as the zone's wall clocks show them, with their offsets."""
    found, following = [], timing.after(datetime.fromisoformat(after))
    while following is not None and len(found) < number:
        found.append(following.astimezone(timing.zone).strftime("%m-%d %H:%M%z"))
        following = timing.after(following)
    return found


def test_every_keeps_its_grid() -> None:
    """An interval fires at its start and at multiples from there, however late somebody asks."""
    timing = Every(timedelta(seconds=60)).starting(utc("2026-01-01 00:00:07"))
    assert timing.after(utc("2025-01-01")) == utc("2026-01-01 00:00:07")
    assert timing.after(utc("2026-01-01 00:00:07")) == utc("2026-01-01 00:01:07")
    assert timing.after(utc("2026-01-01 00:05:00")) == utc("2026-01-01 00:05:07")


def test_every_takes_no_notice_of_summer_time() -> None:
    """An interval of a day drifts off the wall clock by an hour: that is what cron and calendar are for."""
    timing = Every(timedelta(days=1)).starting(datetime(2026, 3, 7, 6, tzinfo=time_zone(NEW_YORK)))
    following = timing.after(datetime(2026, 3, 8, 0, tzinfo=time_zone(NEW_YORK)))
    assert following is not None
    assert following.astimezone(time_zone(NEW_YORK)).hour == 7


@pytest.mark.parametrize("step", [timedelta(0), timedelta(seconds=-5), timedelta(milliseconds=99), timedelta(days=367)])
def test_every_refuses_what_nobody_means(step: timedelta) -> None:
    """Nought (one second, in APScheduler), negative and absurd intervals are refused."""
    with pytest.raises(LauncherError, match="write 100ms to 366d"):
        Every(step)


@pytest.mark.parametrize(
    ("zone", "time_of_day", "after", "expected"),
    [
        (NEW_YORK, "30 1", "2026-10-31T12:00Z", ["11-01 01:30-0400", "11-02 01:30-0500"]),
        (BERLIN, "30 2", "2026-10-24T12:00Z", ["10-25 02:30+0200", "10-26 02:30+0100"]),
        (LORD_HOWE, "45 1", "2026-04-04T00:00Z", ["04-05 01:45+1100", "04-06 01:45+1030"]),
        (NEW_YORK, "0 2", "2026-10-31T12:00Z", ["11-01 02:00-0500", "11-02 02:00-0500"]),
        (NEW_YORK, "59 0", "2026-10-31T12:00Z", ["11-01 00:59-0400", "11-02 00:59-0500"]),
    ],
)
def test_autumn_a_time_of_the_day_fires_once(zone: str, time_of_day: str, after: str, expected: list[str]) -> None:
    """A time that comes twice fires at its first pass only."""
    assert shown(Cron(f"{time_of_day} * * *", time_zone(zone)), after, 2) == expected


def test_autumn_once_also_when_the_daemon_starts_in_the_second_pass() -> None:
    """Asked in the second pass, a time of the day that had its first pass waits for the next day."""
    timing = Cron("30 1 * * *", time_zone(NEW_YORK))
    assert shown(timing, "2026-11-01T06:10Z", 1) == ["11-02 01:30-0500"]
    assert shown(Cron("30 1,3 * * *", time_zone(NEW_YORK)), "2026-11-01T06:10Z", 1) == ["11-01 03:30-0500"]


def test_autumn_twice_when_asked_for() -> None:
    """`dst: twice` fires a repeated time at both passes, in the order of time."""
    timing = Cron("0,30 1 * * *", time_zone(NEW_YORK), Dst.TWICE)
    both = ["11-01 01:00-0400", "11-01 01:30-0400", "11-01 01:00-0500", "11-01 01:30-0500", "11-02 01:00-0500"]
    assert shown(timing, "2026-10-31T12:00Z", 5) == both


@pytest.mark.parametrize("expression", ["*/10 * * * *", "7 * * * *"])
@pytest.mark.parametrize(
    ("zone", "day"),
    [
        (NEW_YORK, "03-08"),
        (NEW_YORK, "11-01"),
        (BERLIN, "03-29"),
        (BERLIN, "10-25"),
        (LORD_HOWE, "04-05"),
        (LORD_HOWE, "10-04"),
    ],
)
def test_a_rhythm_keeps_its_pace_through_both_changes(zone: str, day: str, expression: str) -> None:
    """An expression whose hour is a star is neither silent for an hour nor doubled: its gaps stay equal."""
    timing = Cron(expression, time_zone(zone))
    step = timedelta(minutes=10) if expression.startswith("*") else timedelta(hours=1)
    at = utc(f"2026-{day}") - timedelta(days=1)
    for _ in range(int(timedelta(days=3) / step)):
        following = timing.after(at)
        assert following is not None
        # Half an hour is what Lord Howe's clocks are moved by: the pace of an hourly rhythm bends there.
        bends = zone == LORD_HOWE and step == timedelta(hours=1)
        assert following - at <= step + timedelta(minutes=30 if bends else 0), at
        assert following > at
        at = following


@pytest.mark.parametrize(
    ("zone", "time_of_day", "after", "expected"),
    [
        (NEW_YORK, "30 2", "2026-03-07T12:00Z", ["03-08 03:00-0400", "03-09 02:30-0400"]),
        (NEW_YORK, "0,15,30 2", "2026-03-07T12:00Z", ["03-08 03:00-0400", "03-09 02:00-0400"]),
        (BERLIN, "30 2", "2026-03-28T12:00Z", ["03-29 03:00+0200", "03-30 02:30+0200"]),
        (LORD_HOWE, "15 2", "2026-10-03T12:00Z", ["10-04 02:30+1100", "10-05 02:15+1100"]),
        (LORD_HOWE, "30 2", "2026-10-03T12:00Z", ["10-04 02:30+1100", "10-05 02:30+1100"]),
    ],
)
def test_spring_a_time_in_the_gap_fires_at_its_end(
    zone: str, time_of_day: str, after: str, expected: list[str]
) -> None:
    """A time of the day that is left out fires once, when the clock is set forward."""
    assert shown(Cron(f"{time_of_day} * * *", time_zone(zone)), after, 2) == expected


def test_every_day_has_one_firing() -> None:
    """Whatever the zone, a time of the day fires exactly once each local day."""
    for zone in (NEW_YORK, BERLIN, LORD_HOWE):
        for clock in ("30 1", "30 2", "15 2"):
            timing, at, days = Cron(f"{clock} * * *", time_zone(zone)), utc("2026-01-01 12:00"), []
            for _ in range(400):
                at = timing.after(at) or at
                days.append(at.astimezone(timing.zone).date())
            assert days == [days[0] + timedelta(days=n) for n in range(400)]


def test_calendar_from_its_anchor() -> None:
    """Steps are counted from a fixed day, so that a restart does not move them."""
    timing = Calendar((0, 0, 0, 3), time(6), zone=time_zone(BERLIN))
    assert shown(timing, "2024-01-01T00:00Z", 3) == ["01-01 06:00+0100", "01-04 06:00+0100", "01-07 06:00+0100"]
    assert shown(timing, "2026-06-01T00:00Z", 1) == shown(timing, "2026-05-31T23:00Z", 1)


def test_calendar_keeps_the_time_of_the_day() -> None:
    """A daily calendar fires at the same wall time across both changes."""
    timing = Calendar((0, 0, 0, 1), time(2, 30), zone=time_zone(NEW_YORK))
    assert shown(timing, "2026-03-07T12:00Z", 2) == ["03-08 03:00-0400", "03-09 02:30-0400"]
    timing = Calendar((0, 0, 0, 1), time(1, 30), zone=time_zone(NEW_YORK))
    assert shown(timing, "2026-10-31T12:00Z", 2) == ["11-01 01:30-0400", "11-02 01:30-0500"]


def test_calendar_by_month_leaves_out_days_that_do_not_exist() -> None:
    """The 31st of every month comes seven times a year, and a leap day every four years."""
    timing = Calendar((0, 1, 0, 0), start=date(2026, 1, 31))
    assert [one[:5] for one in shown(timing, "2026-01-01T00:00Z", 4)] == ["01-31", "03-31", "05-31", "07-31"]
    leap = Calendar((1, 0, 0, 0), start=date(2024, 2, 29))
    assert leap.after(utc("2025-01-01")) == utc("2028-02-29")


def test_calendar_starts_no_earlier_than_its_start() -> None:
    """Before its start a calendar waits for it."""
    assert Calendar((0, 0, 2, 0), start=date(2030, 5, 1)).after(utc("2026-01-01")) == utc("2030-05-01")


@pytest.mark.parametrize("step", [(0, 0, 0, 0), (0, 0, 0, -1), (0, 121, 0, 0), (8000, 0, 0, 0)])
def test_calendar_refuses_no_step(step: tuple[int, int, int, int]) -> None:
    """A calendar without a step, or with an absurd one, is refused."""
    with pytest.raises(LauncherError, match="a calendar needs a step"):
        Calendar(step)


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2027-01-01T06:00", "2027-01-01 05:00"),
        ("2027-01-01T06:00+05:00", "2027-01-01 01:00"),
        ("2026-10-25T02:30", "2026-10-25 00:30"),
        ("2026-03-29T02:30", "2026-03-29 01:00"),
    ],
)
def test_at_is_read_in_its_zone(written: str, moment: str) -> None:
    """A time without an offset is the zone's: its first pass when it comes twice, the gap's end when it is left out."""
    timing = At.written(datetime.fromisoformat(written), time_zone(BERLIN))
    assert timing.after(utc("2026-01-01")) == utc(moment)
    assert timing.after(utc(moment)) is None


def test_unknown_time_zone() -> None:
    """A misspelt zone is refused with the nearest one."""
    with pytest.raises(LauncherError, match="did you mean `Europe/Berlin`"):
        time_zone("Europe/Berln")
    for name in ("", "../etc/passwd", "/etc/localtime", "Europe"):
        with pytest.raises(LauncherError, match="no time zone"):
            time_zone(name)
