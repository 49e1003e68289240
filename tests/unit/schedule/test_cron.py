"""Cron expressions mean what they mean in crontab(5)."""

from __future__ import annotations

from datetime import datetime

import pytest

from iocflow.launch.errors import LauncherError
from iocflow.schedule.cron import CronExpression

SUNDAY = datetime(2026, 3, 1)


def firings(expression: str, after: datetime, number: int) -> list[datetime]:
    """Return the next walls of an expression."""
    cron, found = CronExpression(expression), []
    following: datetime | None = after
    while len(found) < number and (following := cron.next_wall(following)) is not None:
        found.append(following)
    return found


@pytest.mark.parametrize("sunday", ["0", "7", "sun", "SUN", "0-0", "7-7"])
def test_sunday_is_0_and_7_and_sun(sunday: str) -> None:
    """Every way in which cron writes Sunday is Sunday, where APScheduler's 0 is Monday."""
    assert firings(f"0 6 * * {sunday}", SUNDAY, 2) == [datetime(2026, 3, 1, 6), datetime(2026, 3, 8, 6)]


@pytest.mark.parametrize(
    ("field", "days"),
    [
        ("1-5", [2, 3, 4, 5, 6]),
        ("mon-fri", [2, 3, 4, 5, 6]),
        ("5-7", [1, 6, 7]),
        ("fri-mon", [1, 2, 6, 7]),
        ("0-7", [1, 2, 3, 4, 5, 6, 7]),
        ("*/2", [1, 3, 5, 7]),
        ("1-5/2", [2, 4, 6]),
        ("mon,3,sat", [2, 4, 7]),
    ],
)
def test_weekdays(field: str, days: list[int]) -> None:
    """Ranges, steps, lists and names of weekdays count from Sunday."""
    found = [one.day for one in firings(f"0 6 * * {field}", SUNDAY, 14) if one < datetime(2026, 3, 8)]
    assert found == days


def test_day_of_month_or_day_of_week() -> None:
    """When both days are restricted, cron fires on either, where APScheduler wants both."""
    found = firings("0 0 13 * fri", SUNDAY, 6)
    assert [one.day for one in found] == [6, 13, 20, 27, 3, 10]
    assert [one.day for one in firings("0 0 15 * fri", SUNDAY, 3)] == [6, 13, 15]


def test_day_of_month_with_a_star_and_a_weekday_wants_both() -> None:
    """As in cron, a field that begins with a star does not count as restricted."""
    assert [one.day for one in firings("0 0 */7 * sun", SUNDAY, 3)] == [8, 15, 22]


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("*/15 * * * *", datetime(2026, 3, 1, 0, 15)),
        ("5/20 * * * *", datetime(2026, 3, 1, 0, 5)),
        ("30 6 1 jan *", datetime(2027, 1, 1, 6, 30)),
        ("0 0 1 nov-feb *", datetime(2026, 11, 1)),
        ("0 0 29 2 *", datetime(2028, 2, 29)),
        ("  0   12 * *\t* ", datetime(2026, 3, 1, 12)),
        ("@weekly", datetime(2026, 3, 8)),
        ("@daily", datetime(2026, 3, 2)),
        ("@Monthly", datetime(2026, 4, 1)),
        ("0 0 31 2 mon", datetime(2027, 2, 1)),
    ],
)
def test_first_firing(expression: str, first: datetime) -> None:
    """The next wall is strictly later, and found also when it is years away."""
    assert CronExpression(expression).next_wall(SUNDAY) == first


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("* * * *", "has 4 fields"),
        ("0 * * * * *", "has 6 fields"),
        ("", "has 1 fields"),
        ("60 * * * *", "`60` is no minute; write 0 to 59"),
        ("* 24 * * *", "`24` is no hour"),
        ("* * 0 * *", "`0` is no day of the month; write 1 to 31"),
        ("* * * 13 *", "`13` is no month; write 1 to 12 or jan to dec"),
        ("* * * * 8", "`8` is no day of the week; write 0 to 7 or sun to sat"),
        ("* * * janx *", "`janx` is no month"),
        ("* * * jan-mar/2x *", "nothing that a cron expression's month can be"),
        ("* * lastly * *", "`lastly` is no day of the month"),
        ("30-10 * * * *", "ends before it begins; write 10-30"),
        ("*/0 * * * *", "the step of `*/0` is 0"),
        (f"{'9' * 5000} * * * *", "9` is no minute; write 0 to 59"),
        (f"*/{'9' * 5000} * * * *", "9` has too many digits; write */1 or more"),
        (f"1-{'9' * 5000} * * * *", "9` is no minute"),
        ("1,,2 * * * *", "nothing that"),
        ("-5 * * * *", "nothing that"),
        ("* * * * fri#2", "nothing that"),
        ("0 0 30 2 *", "never fires: none of its months has a day 30"),
        ("0 0 31 4,6,9,11 *", "never fires: none of its months has a day 31"),
        ("@reboot", "has 1 fields"),
    ],
)
def test_refused(expression: str, says: str) -> None:
    """What cron does not read, or what never fires, is refused with what to write instead."""
    with pytest.raises(LauncherError) as refusal:
        CronExpression(expression)
    assert says in str(refusal.value)
