"""Cron expressions, read as crontab(5) reads them, for triggers that number and combine their fields differently."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from apscheduler.triggers.cron import CronTrigger  # type: ignore[import-untyped]

from iocflow.launch.errors import LauncherError
from iocflow.wiring.numbers import number_of

__all__ = ["CronExpression"]

_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONGEST = {1: 31, 2: 29, 3: 31, 4: 30, 5: 31, 6: 30, 7: 31, 8: 31, 9: 30, 10: 31, 11: 30, 12: 31}
_PART = re.compile(r"(?:(?P<all>\*)|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?")
_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_SUNDAY_TOO = 7


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def values(self, text: str) -> frozenset[int]:
        """Return the numbers that the field's text stands for.

        Raises:
            LauncherError: The text is no such field.
        """
        return frozenset(value for part in text.split(",") for value in self._part(part))

    def _part(self, part: str) -> Iterable[int]:
        found = _PART.fullmatch(part)
        if not found:
            raise LauncherError(f"`{part}` is nothing that a cron expression's {self.name} can be")
        step = number_of(found["step"] or "1")
        if not step:
            what = "is 0" if step == 0 else "has too many digits"
            raise LauncherError(f"the step of `{part}` {what}; write */1 or more")
        if found["all"]:
            return range(self.low, self.high + 1, step)
        first = self._number(found["first"])
        last = self._number(found["last"]) if found["last"] else (self.high if found["step"] else first)
        if last < first and self.names:  # fri-mon, nov-feb: round the end
            last += self.high - self.low + 1
        if last < first:
            raise LauncherError(f"the range `{part}` ends before it begins; write {last}-{first}, or two ranges")
        length = self.high - self.low + 1
        return ((value - self.low) % length + self.low for value in range(first, last + 1, step))

    def _number(self, text: str) -> int:
        if text.lower() in self.names:
            return self.names.index(text.lower()) + self.low
        most = _SUNDAY_TOO if self.names is _WEEKDAYS else self.high
        number = number_of(text)
        if number is None or not self.low <= number <= most:
            named = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
            raise LauncherError(f"`{text}` is no {self.name}; write {self.low} to {most}{named}")
        return number


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 6, _WEEKDAYS),
)


class CronExpression:
    """The five fields of a cron expression, or a nickname as `@daily`.

    Differences of APScheduler's own reading, which are evened out here: its weekday 0 is Monday, it wants day of the
    month *and* day of the week where cron fires on either when both are restricted, and it takes text that only begins
    like an expression.

    Attributes:
        text: What was written.
        each_hour: Whether the hour begins with `*`: such an expression means a rhythm, any other one a time of the day.
    """

    def __init__(self, text: str) -> None:
        """Read the expression.

        Raises:
            LauncherError: It is none, or never fires.
        """
        self.text = " ".join(text.split())
        fields = _NICKNAMES.get(self.text.lower(), self.text).split(" ")
        if len(fields) != len(_FIELDS):
            raise LauncherError(
                f"`{self.text}` has {len(fields)} fields; a cron expression has five: minute, hour, day of the month,"
                " month, day of the week (for seconds there is `every:`)"
            )
        self.each_hour = fields[1].startswith("*")
        minute, hour, day, month, weekday = (kind.values(field) for kind, field in zip(_FIELDS, fields, strict=True))
        any_day, any_weekday = fields[2].startswith("*"), fields[4].startswith("*")
        days = {"day": _written(day)}
        weekdays = {"day_of_week": ",".join(_WEEKDAYS[one] for one in sorted(weekday))}
        either = [{**days, **weekdays}] if any_day or any_weekday else [days, weekdays]
        if not any(min(day) <= _LONGEST[one] for one in month):
            either.remove(either[0])
        if not either:
            raise LauncherError(f"`{self.text}` never fires: none of its months has a day {min(day)}")
        time = {"minute": _written(minute), "hour": _written(hour), "month": _written(month)}
        self._triggers: Sequence[CronTrigger] = [CronTrigger(**time, **one, timezone=UTC) for one in either]

    def next_wall(self, after: datetime) -> datetime | None:
        """Return the first wall after that one at which the expression fires."""
        begin = after.replace(tzinfo=UTC, fold=0) + timedelta(microseconds=1)
        found = [at for one in self._triggers if (at := one.get_next_fire_time(None, begin)) is not None]
        return min(found).replace(tzinfo=None) if found else None


def _written(values: frozenset[int]) -> str:
    return ",".join(map(str, sorted(values)))
