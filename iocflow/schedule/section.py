"""The scheduled launchers of a container file: `every:`, `cron:`, `at:`, `calendar:`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Literal, TypeVar

from iocflow.launch.clock import Clock, SystemClock
from iocflow.launch.contract import Overlap, Poller
from iocflow.launch.errors import LauncherError
from iocflow.launch.launcher import Launcher
from iocflow.launch.section import LauncherEntry, refused
from iocflow.schedule.options import Late, PollingOptions
from iocflow.schedule.polling import PollingLauncher
from iocflow.schedule.timing import ANCHOR, TEN_YEARS, At, Calendar, Cron, Dst, Every, Timing, time_zone
from iocflow.wiring import Scope, Table, Wired
from iocflow.wiring.schemas import choice, duration_schema, number, text
from iocflow.wiring.settings import Bounds, read_duration, read_settings

__all__ = ["ScheduleReader"]

T = TypeVar("T")

_TIME = {"hour": 23, "minute": 59, "second": 59}
_COMMON: dict[str, Any] = {
    "poll": text("A bean whose `poll` yields seeds, outside any run; each seed starts one run."),
    "jitter": duration_schema("Up to how much later than its time a tick begins, at random."),
    "late": choice("What becomes of a tick that begins 30 s or more after its time; run-once by default.", Late),
    "overlap": choice(
        "What becomes of a tick while an earlier one is in hand; skip by default.", ("skip", "queue-one")
    ),
}
_ZONE = text("Whose wall clock is meant, as Europe/Berlin; UTC by default.")
_DST = choice("How often a time of the day fires that comes twice, when clocks are set back; once by default.", Dst)
_BOUNDS: Bounds = {unit: (0, most) for unit, most in (*TEN_YEARS.items(), *_TIME.items())}
_CALENDAR: dict[str, Any] = {
    "description": "A time of the day, every so many years, months, weeks and days.",
    "type": "object",
    "properties": {
        **{unit: number(f"How many {unit} from one firing to the next.", 0, most) for unit, most in TEN_YEARS.items()},
        **{unit: number(f"The {unit} of the day's time; 0 by default.", 0, most) for unit, most in _TIME.items()},
        "start": text(f"The day from which steps are counted; {ANCHOR}, a Monday, by default."),
    },
    "additionalProperties": False,
}
_KEYS: dict[str, dict[str, Any]] = {
    "every": {"every": duration_schema("Fires at the start and then every so often; 100ms to 366d.")},
    "cron": {
        "cron": text(
            "Minute, hour, day of the month, month, day of the week (0, 7 or sun is Sunday); or @daily and such."
        ),
        "timezone": _ZONE,
        "dst": _DST,
    },
    "at": {"at": text("Fires once, as at 2027-01-01T06:00."), "timezone": _ZONE},
    "calendar": {"calendar": _CALENDAR, "timezone": _ZONE, "dst": _DST},
}


class ScheduleReader:
    """Reads every kind of scheduled launcher; they differ in the timing only."""

    def __init__(self, clock: Clock | None = None) -> None:
        """Take the clock that tells which moments have passed: the machine's, unless given."""
        self._clock = clock or SystemClock()

    def schema(self, kind: str) -> dict[str, Any]:
        """Return the JSON Schemas of the keys of a launcher of that kind."""
        return {**_KEYS[kind], **_COMMON}

    def read(self, entry: LauncherEntry, scope: Scope) -> Callable[[Wired], Launcher] | None:
        """Check a launcher; return its builder, None when it is wrong."""
        reading = _Reading(entry, scope, self._clock.now())
        scope.unknown_keys(entry.table, ("processor", *self.schema(entry.kind)), f"launcher {entry.name}")
        poll = reading.poll()
        timing = reading.timing()
        options = reading.options(timing)
        if timing is None or options is None:
            return None
        return lambda wired: PollingLauncher(
            entry.name,
            entry.kind,
            timing,
            wired[entry.processor],
            poll=wired[poll] if poll else None,
            options=options,
        )


@dataclass(slots=True)
class _Reading:
    """The reading of one launcher."""

    entry: LauncherEntry
    scope: Scope
    now: datetime
    failed: bool = False

    def poll(self) -> str | None:
        """Return the id of the polling bean."""
        node = self.entry.table.entries.get("poll")
        if node is None:
            return None
        what = f"poll of launcher {self.entry.name}"
        found = self.scope.reference(node, Poller, what)
        method = getattr(self.scope.beans[found].type, "poll", None) if found else None
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            text = f"{what} is `{found}`, whose `poll` is async, and a tick does not await it"
            self.scope.findings.error(node.place, text, "write `def poll`, and yield the seeds")
            found = None
        self.failed |= found is None
        return found

    def timing(self) -> Timing | None:
        """Return the timing, None when it is wrong."""
        makers: Mapping[str, Callable[[], Timing | None]] = {
            "every": self._every,
            "cron": self._cron,
            "at": self._at,
            "calendar": self._calendar,
        }
        return self._tried(self.entry.kind, makers[self.entry.kind])

    def options(self, timing: Timing | None) -> PollingOptions | None:
        """Return the options, None when they are wrong or do not fit the timing."""
        late = self._value("late", Late, Late.RUN_ONCE)
        overlap = self._value("overlap", Literal["skip", "queue-one"], Overlap.SKIP)
        jitter = self._duration("jitter") or timedelta()
        if jitter:
            self._tried("jitter", lambda: PollingOptions(jitter=jitter).check(timing))
        return None if self.failed else PollingOptions(late, Overlap(overlap), jitter)

    def _value(self, key: str, annotation: Any, default: Any) -> Any:
        return self._in(self.entry.table, key, annotation, default)

    def _duration(self, key: str) -> timedelta | None:
        """Return the duration of that key, None when there is none or it is wrong."""
        node = self.entry.table.entries.get(key)
        if node is None:
            return None
        value = read_duration(node, self.scope, f"{key} of launcher {self.entry.name}")
        self.failed |= value is None
        return value

    def _in(self, table: Table, key: str, annotation: Any, default: Any = None) -> Any:
        node = table.entries.get(key)
        if node is None:
            return default
        value = self.scope.coerce(node, annotation, f"{key} of launcher {self.entry.name}")
        self.failed |= value is None
        return value

    def _tried(self, key: str, make: Callable[[], T | None]) -> T | None:
        """Return what `make` returns; what it refuses is noted at the value of `key`."""
        try:
            return make()
        except LauncherError as error:
            node = self.entry.table.entries[key]
            self.scope.findings.error(node.place, f"{key} of launcher {self.entry.name}: {refused(node, error)}")
            self.failed = True
            return None

    def _zone(self) -> tzinfo | None:
        name = self._value("timezone", str, "UTC")
        if name is None or name == "UTC":
            return UTC if name else None
        return self._tried("timezone", lambda: time_zone(name))

    def _every(self) -> Timing | None:
        step = self._duration("every")
        return None if step is None else Every(step)

    def _cron(self) -> Timing | None:
        expression, zone, dst = self._value("cron", str, None), self._zone(), self._value("dst", Dst, Dst.ONCE)
        return None if expression is None else Cron(expression, zone or UTC, dst or Dst.ONCE)

    def _at(self) -> Timing | None:
        shown, zone = self._value("at", datetime, None), self._zone()
        if shown is None or zone is None:
            return None
        timing = At.written(shown, zone)
        if timing.after(self.now) is None:
            what = f"at of launcher {self.entry.name} has passed, and will not be made up for"
            remedy = "write a moment that is to come, or remove the launcher"
            self.scope.findings.warn(self.entry.table.entries["at"].place, what, remedy)
        return timing

    def _calendar(self) -> Timing | None:
        table = self.entry.table.entries["calendar"]
        name = f"the calendar of launcher {self.entry.name}"
        zone, dst = self._zone(), self._value("dst", Dst, Dst.ONCE)
        if not isinstance(table, Table):
            self.scope.findings.error(table.place, f"{name} is no mapping", "write `calendar: {days: 1, hour: 6}`")
            self.failed = True
            return None
        self.scope.unknown_keys(table, (*_BOUNDS, "start"), name)
        numbers = {key: node for key, node in table.entries.items() if key in _BOUNDS}
        given = read_settings(Table(table.place, numbers, table.keys), _BOUNDS, name, self.scope)
        start = self._in(table, "start", date, ANCHOR)
        known = table.entries.keys() <= {*_BOUNDS, "start"}
        if known and given.keys() & TEN_YEARS.keys() == numbers.keys() & TEN_YEARS.keys():
            years, months, weeks, days = (given.get(unit, 0) for unit in TEN_YEARS)
            at = time(*(given.get(unit, 0) for unit in _TIME))
            timing = Calendar((years, months, weeks, days), at, start=start or ANCHOR, zone=zone or UTC, dst=dst)
            if len(given) == len(numbers) and start is not None and zone is not None:
                return timing
        self.failed = True
        return None
