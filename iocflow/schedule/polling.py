"""The launcher that a schedule sets off, in its two forms: it runs a processor, or asks a polling bean for seeds."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from iocflow.errors import SeedError
from iocflow.launch.contract import Launch, Launchable, Overlap, Poller
from iocflow.launch.counters import Count
from iocflow.launch.ended import Ended
from iocflow.launch.errors import LauncherError
from iocflow.launch.launcher import BaseLauncher, Host
from iocflow.launch.pool import Progress, Task
from iocflow.launch.snapshot import LauncherState
from iocflow.schedule.timer import Timer
from iocflow.schedule.timing import Every, Timing
from iocflow.wiring.duration import duration_text

__all__ = ["Late", "PollingLauncher", "PollingOptions"]

logger = logging.getLogger("iocflow.schedule")

LATE_AFTER = timedelta(seconds=30)
"""How long after its moment (and its jitter) a tick may begin before it counts as late."""
LONGEST_JITTER = timedelta(days=1)
_NO_MORE = object()
"""Stands for the seed after the last one."""


class Late(StrEnum):
    """What becomes of a tick that begins long after its moment: the machine slept, a clock was set, the pool was full.

    Attributes:
        RUN_ONCE: It runs; of several that were passed over, only the last one does.
        SKIP: It is dropped and counted.
    """

    RUN_ONCE = "run-once"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class PollingOptions:
    """How a scheduled launcher deals with time.

    Attributes:
        jitter: Up to how much later than its moment a tick is queued, anew at random for each; it does not add up.
    """

    late: Late = Late.RUN_ONCE
    overlap: Overlap = Overlap.SKIP
    jitter: timedelta = timedelta()

    def check(self, timing: Timing | None) -> None:
        """Refuse what cannot be meant with that timing, or with any.

        Raises:
            LauncherError: The jitter is negative, above a day, or not below the interval; overlaps are to be allowed.
        """
        most = timing.step if isinstance(timing, Every) else LONGEST_JITTER
        if not timedelta() <= self.jitter < most:
            raise LauncherError(
                f"jitter {duration_text(self.jitter)} is out of bounds; write less than {duration_text(most)}"
            )
        if self.overlap is Overlap.ALLOW:
            raise LauncherError("two ticks of one launcher never run at once; write overlap: skip, or queue-one")


class PollingLauncher(BaseLauncher):
    """Fires by a timing; a tick starts one run, or, with a poller, one for each seed that this yields.

    A tick takes one thread of the pool from its beginning to its end, also when it starts several runs: they run one
    after the other, so that the poller's cursor moves exactly when a run has ended.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        timing: Timing,
        processor: Launchable,
        *,
        poll: Poller | None = None,
        options: PollingOptions | None = None,
    ) -> None:
        """Take the parts.

        Raises:
            LauncherError: The options do not fit the timing.
        """
        super().__init__(name, kind, timing.text, processor)
        self.timing = timing
        self._poller = poll
        self._options = options or PollingOptions()
        self._options.check(timing)
        self._changed = threading.Condition()
        self._ticking = False
        self._waiting: datetime | None = None
        self._stopping = False
        self._timer: Timer | None = None
        self._refused: SeedError | None = None

    @property
    def next_firing(self) -> datetime | None:
        """When it fires next, UTC; the jitter comes on top."""
        return self._timer.next_firing(self.name) if self._timer else None

    def start(self, host: Host) -> None:
        """Have the timer call from now on."""
        self._lent = host
        timer = host.service(Timer)
        now = host.clock.now()
        timing = self.timing.starting(now)
        passed = timing.after(now - timedelta(microseconds=1)) is None
        if passed:
            # Nothing tells whether an earlier daemon fired it, and firing it at every restart would be worse.
            logger.warning("launcher %s: %s has passed and is not made up for", self.name, timing.text)
            host.counters(self.name).add(Count.MISSED)
        timer.add(self.name, timing, now, self._fire, self._options.jitter)
        self._timer = timer
        self._become(LauncherState.FINISHED if passed else LauncherState.RUNNING)

    def heartbeat(self) -> None:
        """Notice that there is nothing more to wait for."""
        if self.next_firing is None and not self._stopping:
            self._become(LauncherState.FINISHED, self._trouble)

    def stop(self) -> None:
        """Start no more ticks, and no more runs of the tick in hand."""
        with self._changed:
            self._stopping = True
            self._waiting = None

    def finish(self, deadline: float) -> bool:
        """Wait for the tick in hand; there is nothing to release, since its cursor has not moved."""
        clock = self._host.clock
        with self._changed:
            done = self._changed.wait_for(lambda: not self._ticking, max(deadline - clock.monotonic(), 0.0))
        self._become(LauncherState.STOPPED, self._trouble)
        return done

    def _fire(self, moment: datetime, passed_over: int) -> None:
        """Queue a tick; the timer's thread calls this."""
        if passed_over:
            self._count(Count.MISSED, "%d earlier firings were passed over", passed_over, number=passed_over)
        with self._changed:
            if self._stopping:
                return
            busy = self._ticking
            self._ticking = True
            kept = busy and self._options.overlap is Overlap.QUEUE_ONE and self._waiting is None
            if kept:
                self._waiting = moment
        if not busy:
            self._submit(moment)
        elif not kept:
            self._count(
                Count.SKIPPED_OVERLAP, "the tick of %s is dropped, an earlier one is in hand", moment.isoformat()
            )

    def _submit(self, moment: datetime) -> None:
        self._host.pool.submit(
            Task(self.name, self.processor.name, lambda progress: self._run(moment, progress), self._next)
        )

    def _run(self, moment: datetime, progress: Progress) -> None:
        try:
            if not self._stopping and self._in_time(moment):
                self._tick(moment, progress)
                self._become(self._state)
        except BaseException as error:  # a poll's SystemExit ends its tick, not the daemon
            if error is self._refused:  # why no run could begin is in the log already
                what = "the poll ended at a seed that no run could begin with"
                logger.warning("launcher %s: %s", self.name, what, extra={"launcher": self.name})
            else:
                logger.exception("launcher %s: the poll failed", self.name, extra={"launcher": self.name})
            self.counters.add(Count.ERRORS)
            self._become(self._state, f"the last poll failed: {type(error).__qualname__}")
        finally:
            self._next()

    def _next(self) -> None:
        """Queue the tick that waits, if there is one."""
        with self._changed:
            moment, self._waiting = self._waiting, None
            self._ticking = moment is not None
            self._changed.notify_all()
        if moment is not None:
            self._submit(moment)

    def _in_time(self, moment: datetime) -> bool:
        """Return whether a tick that begins now may run, and count it if it is late."""
        late = self._host.clock.now() - moment
        if late <= LATE_AFTER + self._options.jitter:
            return True
        if self._options.late is Late.SKIP:
            self._count(Count.MISSED, "the tick of %s is dropped, it is %s late", moment.isoformat(), late)
            return False
        self._count(Count.LATE, "the tick of %s runs %s late", moment.isoformat(), late)
        return True

    def _tick(self, moment: datetime, progress: Progress) -> None:
        if self._poller is None:
            self._host.perform(self._launch(moment, None, f"{self.name}@{moment.isoformat()}"), progress)
            return
        found = 0
        with ExitStack() as closing:
            seeds = _seeds_of(self._poller)
            if hasattr(seeds, "close"):
                closing.callback(seeds.close)
            seed = next(seeds, _NO_MORE)
            while seed is not _NO_MORE and not self._stopping:
                found += 1
                self._refused = self._refusal(moment, seed, progress)
                seed = _following(seeds, self._refused)
        if not found:
            self.counters.add(Count.NOTHING_FOUND)
            logger.debug("launcher %s: nothing found", self.name, extra={"launcher": self.name})

    def _refusal(self, moment: datetime, seed: object, progress: Progress) -> SeedError | None:
        """Run a seed; return the error when no run could begin with it, which its poller has to hear of.

        Raises:
            StoreError: The store of durable runs could not take it: the tick ends, and the cursor stays where it is.
        """
        if seed is None:  # to a run it is no seed at all
            why = "poll() yielded None, which is no seed; yield a seed for each run, or nothing at all"
            self._count(Count.REFUSED, why)
            return SeedError(why)
        ended = self._host.perform(self._launch(moment, seed), progress)
        if ended.untried and ended.error:
            raise ended.error
        return _seed_error(ended, self.processor.name) if ended.refused else None

    def _launch(self, moment: datetime, seed: object, key: str = "") -> Launch:
        return Launch(
            self.processor,
            self.name,
            seed,
            scheduled_for=moment,
            idempotency_key=key,
            overlap=self._options.overlap,
        )

    def _count(self, count: Count, message: str, *args: object, number: int = 1) -> None:
        self.counters.add(count, number)
        level = logging.INFO if count is Count.SKIPPED_OVERLAP else logging.WARNING
        logger.log(level, f"launcher %s: {message}", self.name, *args, extra={"launcher": self.name})


def _seed_error(ended: Ended, processor: str) -> SeedError:
    """Return what its poller is told of a seed that no run could begin with, whatever it was that failed."""
    if isinstance(ended.error, SeedError):
        return ended.error
    told = SeedError(f"no run of {processor} could begin: {ended.reason}")
    told.__cause__ = ended.error
    return told


def _seeds_of(poller: Poller) -> Iterator[Any]:
    """Return what a poller found.

    Raises:
        TypeError: It returned something else than seeds one after the other.
    """
    found: Any = poller.poll()
    if inspect.iscoroutine(found):
        found.close()
    if inspect.isawaitable(found) or hasattr(found, "__aiter__"):
        raise TypeError("poll() is async, and a tick does not await it; write `def poll`, and yield the seeds")
    if isinstance(found, (str, bytes, Mapping)) or not hasattr(found, "__iter__"):
        kind = type(found).__name__
        raise TypeError(f"poll() returned a value of type {kind}, not seeds; return a list of them, or yield each")
    return iter(found)


def _following(seeds: Iterator[Any], refused: SeedError | None) -> Any:
    """Return the seed after the last one; a generator is told of one that no run could begin with."""
    throw = getattr(seeds, "throw", None)
    if refused is None or throw is None:
        return next(seeds, _NO_MORE)
    try:
        return throw(refused)
    except StopIteration:
        return _NO_MORE
