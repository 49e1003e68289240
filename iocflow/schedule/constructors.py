"""Scheduled launchers for applications that are built in Python, and the firings of any launcher."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import TypedDict, TypeVar, Unpack

from iocflow.launch.contract import Launchable, Overlap, Poller
from iocflow.launch.duration import duration
from iocflow.launch.errors import LauncherError
from iocflow.schedule.beginning import INSTANT, beginning
from iocflow.schedule.options import Late, PollingOptions
from iocflow.schedule.polling import PollingLauncher
from iocflow.schedule.timing import ANCHOR, At, Calendar, Cron, Dst, Every, Timing, time_of_day, time_zone
from iocflow.store.launchers import Standing

E = TypeVar("E", bound=StrEnum)

__all__ = ["Options", "at", "calendar", "cron", "every", "next_firings"]


class Options(TypedDict, total=False):
    """What every scheduled launcher takes by name.

    Attributes:
        name: The launcher's id; the processor's name and the launcher's kind without one.
        poll: Yields the seeds of the runs, outside any run; without it each tick starts one run without a seed.
        jitter: Up to how much later than its moment a tick begins, as `5s` or a timedelta.
        late: What becomes of a tick that begins 30 s or more after its moment: `run-once` (default) or `skip`.
        overlap: What becomes of one while an earlier one is in hand: `skip` (default) or `queue-one`.
    """

    name: str
    poll: Poller
    jitter: str | timedelta
    late: str
    overlap: str


def every(interval: str | timedelta, processor: Launchable, **options: Unpack[Options]) -> PollingLauncher:
    """Return a launcher that fires at its start and then every `interval`, as `60s`.

    Raises:
        LauncherError: The interval is nought, negative, or outside 100 ms to 366 days; an option is wrong.
    """
    return _launcher("every", Every(duration(interval, "every")), processor, options)


def cron(
    expression: str, processor: Launchable, *, timezone: str = "UTC", dst: str = "once", **options: Unpack[Options]
) -> PollingLauncher:
    """Return a launcher that fires by a cron expression of five fields, as `30 6 * * mon-fri`; 0, 7 and sun are Sunday.

    Args:
        timezone: Whose wall clock is meant.
        dst: Whether a time of the day that comes twice in autumn fires `once` or `twice`.

    Raises:
        LauncherError: The expression or an option is wrong.
    """
    return _launcher("cron", Cron(expression, time_zone(timezone), _choice(Dst, dst, "dst")), processor, options)


def at(
    moment: str | datetime, processor: Launchable, *, timezone: str = "UTC", **options: Unpack[Options]
) -> PollingLauncher:
    """Return a launcher that fires once; a moment that has passed when it starts is not made up for.

    Raises:
        LauncherError: The moment or an option is wrong.
    """
    try:
        shown = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        raise LauncherError(f"`{moment}` is no date and time; write 2027-01-01T06:00") from None
    return _launcher("at", At.written(shown, time_zone(timezone)), processor, options)


def calendar(  # noqa: PLR0913  # the parts of a date and a time, by name
    processor: Launchable,
    *,
    years: int = 0,
    months: int = 0,
    weeks: int = 0,
    days: int = 0,
    hour: int = 0,
    minute: int = 0,
    second: int = 0,
    start: date = ANCHOR,
    timezone: str = "UTC",
    dst: str = "once",
    **options: Unpack[Options],
) -> PollingLauncher:
    """Return a launcher that fires at a time of the day, every so many years, months, weeks and days from `start` on.

    Raises:
        LauncherError: The step is nought, the time is none, or an option is wrong.
    """
    step, clock = (years, months, weeks, days), time_of_day(hour, minute, second)
    timing = Calendar(step, clock, start=start, zone=time_zone(timezone), dst=_choice(Dst, dst, "dst"))
    return _launcher("calendar", timing, processor, options)


def next_firings(launcher: object, number: int, now: datetime, standing: Standing | None = None) -> list[datetime]:
    """Return the next firings of a launcher that starts `now`, in its own time zone and without jitter.

    Args:
        launcher: Any launcher; one that no schedule sets off has no firings.
        number: How many to return at most.
        now: An aware datetime.
        standing: How it stands in the store, when it has one: it goes on from there.
    """
    if not isinstance(launcher, PollingLauncher):
        return []
    timing, _ = beginning(launcher.timing, standing, now)
    found: list[datetime] = []
    following = timing.after(now - INSTANT)
    while following is not None and len(found) < number:
        found.append(following.astimezone(timing.zone))
        following = timing.after(following)
    return found


def _choice(kind: type[E], written: str, what: str) -> E:
    try:
        return kind(written)
    except ValueError:
        raise LauncherError(f"{what} is {written!r}; write {' or '.join(kind)}") from None


def _launcher(kind: str, timing: Timing, processor: Launchable, options: Options) -> PollingLauncher:
    return PollingLauncher(
        options.get("name") or f"{processor.name}-{kind}",
        kind,
        timing,
        processor,
        poll=options.get("poll"),
        options=PollingOptions(
            _choice(Late, options.get("late", Late.RUN_ONCE), "late"),
            _choice(Overlap, options.get("overlap", Overlap.SKIP), "overlap"),
            duration(options.get("jitter", timedelta()), "jitter"),
        ),
    )
