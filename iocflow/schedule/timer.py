"""The timer that all scheduled launchers of a daemon share: APScheduler's jobs, called in a thread of ours.

What APScheduler 3.11 does in ways that lose firings without a word is done here instead: the thread (its own dies of
one error while `running` stays true), late firings (dropped after a second), overlaps (its count of instances never
recovers from a hung job), clocks that are set (back: silence; ten years ahead: a list entry for every firing in
between), jitter (it adds up).
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from iocflow.launch.launcher import Host
from iocflow.schedule.scheduler import JobScheduler
from iocflow.schedule.timing import Timing

__all__ = ["Fire", "Timer", "latest_until", "missed_between"]

logger = logging.getLogger("iocflow.schedule")

Fire = Callable[[datetime, int], None]
"""Gets the moment that was meant, and how many earlier ones were passed over; called in the timer's thread."""

CLOCK_TOLERANCE = timedelta(seconds=2)
"""How far the wall clock may move away from the monotonic one between two turns before it counts as set: the kernel
slews by at most 0.5 ms a second, and time services step what is more."""
MISSED_MOST = 1000
"""Up to which number missed firings are counted."""
_LOOKING_BACK = tuple(timedelta(seconds=one) for one in (1, 60, 3600, 86_400, 31 * 86_400, 366 * 86_400, 4000 * 86_400))


@dataclass(slots=True, eq=False)
class _Entry:
    name: str
    timing: Timing
    fire: Fire
    jitter: timedelta
    last: datetime | None = None

    def after(self, moment: datetime) -> datetime | None:
        """Return the first firing after that moment, by the timing as it is when this is called."""
        return self.timing.after(moment)

    @property
    def delayed(self) -> str:
        """The id of the job that holds a firing back by the jitter."""
        return f"{self.name} delayed by jitter"

    @property
    def again(self) -> str:
        """The id of the job that asks for a firing again."""
        return f"{self.name} again"


def latest_until(timing: Timing, now: datetime, known: datetime) -> datetime:
    """Return the last firing that is not after `now`; `known` is one of them.

    It looks back in growing spans, so that the way from a firing long ago is not stepped through.
    """
    for span in _LOOKING_BACK:
        found = timing.after(now - span) if now - span > known else known
        if found is not None and found <= now:
            while (following := timing.after(found)) is not None and following <= now:
                found = following
            return found
    return known


def missed_between(timing: Timing, first: datetime, last: datetime) -> int:
    """Return how many firings lie in `[first, last)`, counted to 1,000 at most."""
    missed = 0
    while first < last and missed < MISSED_MOST:
        missed += 1
        first = timing.after(first) or last
    return missed


class Timer:
    """Calls launchers at their moments; a service of the daemon's host."""

    def __init__(self, host: Host) -> None:
        """Make the timer; it starts with `start`."""
        self._clock = host.clock
        self._beat = host.settings.heartbeat
        self._entries: dict[str, _Entry] = {}
        self._woken = threading.Event()
        self._scheduler = JobScheduler(self._woken.set)
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._wall = self._clock.now()
        self._monotonic = self._progress = self._clock.monotonic()
        self._failure = ""

    def start(self) -> None:
        """Start the thread."""
        self.prepare()
        self._thread = self._new_thread()

    def prepare(self) -> None:
        """Get ready for `turn`; a program that wants no thread calls this, and `turn` itself."""
        self._scheduler.start()

    def add(self, name: str, timing: Timing, since: datetime, fire: Fire, jitter: timedelta = timedelta()) -> None:
        """Call `fire` at every moment of `timing` from `since` on, each up to `jitter` later."""
        entry = self._entries[name] = _Entry(name, timing, fire, jitter)
        first = timing.after(since - timedelta(microseconds=1))
        if first is not None:
            self._scheduler.put(name, first, lambda moment: self._due(entry, moment), entry.after)

    def later(self, name: str, seconds: float, call: Callable[[], None]) -> None:
        """Call `call` once, so many seconds from now; it replaces an earlier one of that name."""
        at = self._clock.now() + timedelta(seconds=seconds)
        self._scheduler.put(self._entries[name].again, at, lambda _: call(), lambda _: None)

    def realign(self, name: str, timing: Timing) -> None:
        """Let the firings of that name be those of another timing from now on."""
        entry = self._entries[name]
        entry.timing = timing
        following = timing.after(self._clock.now())
        if following is not None and self.next_firing(name) is not None:
            self._scheduler.move(name, following)

    def next_firing(self, name: str) -> datetime | None:
        """Return the next moment of that name, None when there is none any more."""
        return self._scheduler.next_moment(name)

    def stop(self) -> None:
        """Fire nothing more."""
        self._stopped = True
        self._woken.set()
        if self._scheduler.running:
            self._scheduler.shutdown()

    def heartbeat(self) -> None:
        """Replace the thread when it died."""
        if self._thread is not None and not self._thread.is_alive() and not self._stopped:
            logger.error("the timer's thread died and is replaced")
            self._thread = self._new_thread()

    def trouble(self) -> str:
        """Return what is wrong with the timer, empty when it made a turn recently."""
        silent = self._clock.monotonic() - self._progress
        if silent > 3 * self._beat.total_seconds() + 1:
            return f"the timer made no progress for {silent:.0f} s"
        return self._failure

    def turn(self) -> float:
        """Fire what is due; return after how many seconds the next turn should be. The thread does nothing else."""
        try:
            self._look_at_clock()
            wait = self._scheduler.process_jobs()
            self._failure = ""
        except Exception as error:
            logger.exception("a turn of the timer failed and is repeated")
            self._failure = f"the timer's last turn failed: {type(error).__qualname__}"
            wait = 1.0
        self._progress = self._clock.monotonic()
        longest = self._beat.total_seconds()
        return longest if wait is None else min(wait, longest)

    def _new_thread(self) -> threading.Thread:
        thread = threading.Thread(target=self._main, name="iocflow-timer", daemon=True)
        thread.start()
        return thread

    def _main(self) -> None:
        while not self._stopped:
            self._woken.wait(self.turn())
            self._woken.clear()

    def _due(self, entry: _Entry, first: datetime) -> None:
        now = self._clock.now()
        last = entry.last = latest_until(entry.timing, now, first)
        missed = missed_between(entry.timing, first, last)
        if not entry.jitter:
            entry.fire(last, missed)
            return
        later = now + random.uniform(0, 1) * entry.jitter
        self._scheduler.put(entry.delayed, later, lambda _: entry.fire(last, missed), lambda _: None)

    def _look_at_clock(self) -> None:
        now, monotonic = self._clock.now(), self._clock.monotonic()
        by = now - self._wall - timedelta(seconds=monotonic - self._monotonic)
        self._wall, self._monotonic = now, monotonic
        if abs(by) > CLOCK_TOLERANCE:
            way = "back" if by < timedelta() else "forward"
            logger.warning("the wall clock was set %s by %s, or the machine slept", way, abs(by))
            for entry in self._entries.values():
                self._move(entry, by, now)

    def _move(self, entry: _Entry, by: timedelta, now: datetime) -> None:
        """Put an entry's next firing where it belongs on the wall clock that was set."""
        for waiting in (entry.delayed, entry.again):
            if self.next_firing(waiting):
                self._scheduler.move(waiting, now)
        due = self.next_firing(entry.name)
        if due is None:
            return
        moved = entry.timing.moved(by)
        if moved is not entry.timing:
            entry.timing = moved
            due += by
        elif by < timedelta():
            due = entry.timing.after(self._floor(entry, by, now))
        if due is not None:
            self._scheduler.move(entry.name, due)

    def _floor(self, entry: _Entry, by: timedelta, now: datetime) -> datetime:
        """Return the moment after which an entry fires again when the clock was set back.

        A firing is not repeated, unless that would silence the launcher for longer than it usually rests: set back by
        an hour, a daily launcher does not fire twice that day, and one of every minute goes on at once.
        """
        if entry.last is None or entry.last <= now:
            return now
        following = entry.timing.after(entry.last)
        rests = following is None or -by <= following - entry.last
        return entry.last if rests else now
