"""When a launcher fires: every so often, by cron expression, by calendar, or once. All moments are in UTC."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Protocol, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from apscheduler.triggers.calendarinterval import CalendarIntervalTrigger  # type: ignore[import-untyped]

from iocflow.launch.errors import LauncherError
from iocflow.schedule.cron import CronExpression
from iocflow.schedule.walls import gap_end, is_gap, is_repeated, moment, second_pass, wall
from iocflow.wiring import did_you_mean
from iocflow.wiring.duration import duration_text

__all__ = ["ANCHOR", "TEN_YEARS", "At", "Calendar", "Cron", "Dst", "Every", "Timing", "time_of_day", "time_zone"]

SHORTEST = timedelta(milliseconds=100)
LONGEST = timedelta(days=366)
ANCHOR = date(2024, 1, 1)
"""From where calendar steps are counted unless a start is given: a Monday, the first of a month and of a year, and the
same after every restart."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEN_YEARS = {"years": 10, "months": 120, "weeks": 520, "days": 3660}
"""The longest step of a calendar in each unit: APScheduler would look for a date after the year 9999 for ever."""

_TICK = timedelta(microseconds=1)


class Dst(StrEnum):
    """How often a time of the day fires that comes twice, when clocks are set back."""

    ONCE = "once"
    TWICE = "twice"


class Timing(Protocol):
    """Tells moments, and has no state: the same question gets the same answer."""

    @property
    def text(self) -> str:
        """The timing as a person would write it."""

    @property
    def zone(self) -> tzinfo:
        """The time zone in which people think of it."""

    def starting(self, at: datetime) -> Self:
        """Return the timing of a launcher that starts at that moment."""

    def after(self, at: datetime) -> datetime | None:
        """Return the first firing after that moment; None when there is none any more."""

    def moved(self, by: timedelta) -> Self:
        """Return the timing for a wall clock that was set forward by that much (back when it is negative)."""


def time_zone(name: str) -> ZoneInfo:
    """Return the time zone of that name.

    Raises:
        LauncherError: There is none.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        remedy = did_you_mean(name, available_timezones())
        raise LauncherError(f"there is no time zone `{name}`; {remedy} (as in Europe/Berlin, UTC)") from None


def time_of_day(hour: int, minute: int, second: int) -> time:
    """Return the time of the day.

    Raises:
        LauncherError: There is no such time.
    """
    try:
        return time(hour, minute, second)
    except ValueError as error:
        raise LauncherError(f"{error}; write hour: 0 to 23, minute: and second: 0 to 59") from None


@dataclass(frozen=True, slots=True)
class Every:
    """Fires at its start and then in equal steps, whatever the wall clock does: it takes no notice of summer time.

    Attributes:
        step: The time between two firings.
        start: The first firing.
    """

    step: timedelta
    start: datetime = EPOCH

    def __post_init__(self) -> None:
        """Refuse steps that nobody means.

        Raises:
            LauncherError: The step is nought, negative, or outside 100 ms to 366 days.
        """
        if not SHORTEST <= self.step <= LONGEST:
            bounds = f"{duration_text(SHORTEST)} to {duration_text(LONGEST)}"
            raise LauncherError(f"every {duration_text(self.step)} is no interval to poll at; write {bounds}")

    @property
    def text(self) -> str:
        """The timing as a person would write it."""
        return f"every {duration_text(self.step)}"

    @property
    def zone(self) -> tzinfo:
        """UTC: an interval has nothing to do with the wall clock."""
        return UTC

    def starting(self, at: datetime) -> Self:
        """Return the timing whose first firing is at that moment."""
        return replace(self, start=at.astimezone(UTC))

    def after(self, at: datetime) -> datetime | None:
        """Return the first firing after that moment."""
        if at < self.start:
            return self.start
        # Arithmetic between two times of one zone is on its walls; in UTC it is on moments.
        at = at.astimezone(UTC)
        return self.start + self.step * ((at - self.start) // self.step + 1)

    def moved(self, by: timedelta) -> Self:
        """Return the same steps as seen on the wall clock that was set."""
        return replace(self, start=self.start + by)


@dataclass(frozen=True, slots=True)
class At:
    """Fires once.

    Attributes:
        moment: When.
        zone: In which zone that was written.
    """

    moment: datetime
    zone: tzinfo = UTC

    @classmethod
    def written(cls, shown: datetime, zone: tzinfo) -> At:
        """Return the timing for a time as written: in `zone`, unless it tells its own offset.

        A time that comes twice in that zone is its first pass, one in a gap the end of the gap.
        """
        if shown.tzinfo is not None:
            return cls(shown.astimezone(UTC), zone)
        return cls(gap_end(shown, zone) if is_gap(shown, zone) else moment(shown, zone), zone)

    @property
    def text(self) -> str:
        """The timing as a person would write it."""
        return f"at {self.moment.astimezone(self.zone).isoformat(sep=' ')}"

    def starting(self, at: datetime) -> Self:  # noqa: ARG002  # the same whenever it starts
        """Return itself."""
        return self

    def after(self, at: datetime) -> datetime | None:
        """Return the moment while it lies ahead."""
        return self.moment if at < self.moment else None

    def moved(self, by: timedelta) -> Self:  # noqa: ARG002  # it means the wall clock's time, whoever set it
        """Return itself."""
        return self


class _OnWalls:
    """Fires at walls of a time zone.

    Where clocks are set back, a wall that means a time of the day fires at its first pass only (unless `dst` is
    `twice`), and one that means a rhythm at both. Where they are set forward, times of the day in the gap fire
    together, once, at the end of the gap, and those of a rhythm do not exist.
    """

    def __init__(self, zone: tzinfo, *, rhythm: bool, dst: Dst) -> None:
        self.zone = zone
        self._rhythm = rhythm
        self._twice = rhythm or dst is Dst.TWICE

    def starting(self, at: datetime) -> Self:  # noqa: ARG002  # walls are the same whenever it starts
        """Return itself."""
        return self

    def moved(self, by: timedelta) -> Self:  # noqa: ARG002  # walls are what the clock shows, whoever set it
        """Return itself."""
        return self

    def next_wall(self, after: datetime) -> datetime | None:
        """Return the first wall after that one, as if the zone had no summer time."""
        raise NotImplementedError

    def after(self, at: datetime) -> datetime | None:
        """Return the first firing after that moment."""
        shown = wall(at, self.zone)
        if not is_repeated(shown, self.zone):
            return self._moment(self.next_wall(shown))
        begin, end = second_pass(shown, self.zone)
        following = self.next_wall(shown)
        if following is not None and following < end and (self._twice or not shown.fold):
            return moment(following, self.zone, second=bool(shown.fold))
        if self._twice and not shown.fold:
            again = self.next_wall(begin - _TICK)
            if again is not None and again < end:
                return moment(again, self.zone, second=True)
        return self._moment(self.next_wall(end - _TICK))

    def _moment(self, shown: datetime | None) -> datetime | None:
        if shown is None or not is_gap(shown, self.zone):
            return None if shown is None else moment(shown, self.zone)
        end = gap_end(shown, self.zone)
        return self._moment(self.next_wall(wall(end, self.zone) - _TICK)) if self._rhythm else end


class Cron(_OnWalls):
    """Fires by a cron expression, whose fields mean what they mean in crontab(5).

    An expression whose hour begins with `*` means a rhythm, any other one a time of the day.
    """

    def __init__(self, expression: str, zone: tzinfo = UTC, dst: Dst = Dst.ONCE) -> None:
        """Read the expression.

        Raises:
            LauncherError: It is none, or never fires.
        """
        self._expression = CronExpression(expression)
        super().__init__(zone, rhythm=self._expression.each_hour, dst=dst)

    @property
    def text(self) -> str:
        """The timing as a person would write it."""
        return f"cron {self._expression.text} ({self.zone})"

    def next_wall(self, after: datetime) -> datetime | None:
        """Return the first wall after that one."""
        return self._expression.next_wall(after)


class Calendar(_OnWalls):
    """Fires at a time of the day, every so many years, months, weeks and days, counted from a start.

    Months and years are added first; a day that a month does not have is left out.
    """

    def __init__(
        self,
        step: tuple[int, int, int, int],
        at: time = time(0),
        *,
        start: date = ANCHOR,
        zone: tzinfo = UTC,
        dst: Dst = Dst.ONCE,
    ) -> None:
        """Take the step in years, months, weeks and days.

        Raises:
            LauncherError: The step is nought, or one of its parts negative or above ten years.
        """
        super().__init__(zone, rhythm=False, dst=dst)
        if not any(step) or not all(0 <= part <= most for part, most in zip(step, TEN_YEARS.values(), strict=True)):
            raise LauncherError(
                "a calendar needs a step: years, months, weeks or days, one of them above 0, ten years at most"
            )
        self._step = step
        self._at = at
        self._start = start

    @property
    def text(self) -> str:
        """The timing as a person would write it."""
        parts = (f"{number} {unit}" for number, unit in zip(self._step, ("y", "mo", "w", "d"), strict=True) if number)
        return f"calendar every {' '.join(parts)} at {self._at} ({self.zone})"

    def next_wall(self, after: datetime) -> datetime | None:
        """Return the first wall after that one."""
        years, months, weeks, days = self._step
        trigger = CalendarIntervalTrigger(
            years=years, months=months, weeks=weeks, days=days,
            hour=self._at.hour, minute=self._at.minute, second=self._at.second,
            start_date=self._near(after.date()), timezone=UTC,
        )  # fmt: skip
        after = after.replace(tzinfo=UTC, fold=0)
        found = trigger.get_next_fire_time(None, after)
        while found is not None and found <= after:
            found = trigger.get_next_fire_time(found, after)
        return None if found is None else found.replace(tzinfo=None)

    def _near(self, day: date) -> date:
        """Return a day of the calendar not long before `day`, so that no long way has to be stepped through."""
        years, months, weeks, days = self._step
        if years or months or day <= self._start:
            return self._start
        step = timedelta(weeks=weeks, days=days)
        return self._start + step * ((day - self._start) // step)
