"""The launcher that a schedule sets off, in its two forms: it runs a processor, or asks a polling bean for seeds."""

from __future__ import annotations

import logging
import threading
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from iocflow.errors import SeedError
from iocflow.launch.contract import Launch, Launchable, Overlap, Poller
from iocflow.launch.counters import Count
from iocflow.launch.ended import Ended
from iocflow.launch.launcher import BaseLauncher, Host
from iocflow.launch.pool import Progress, Task
from iocflow.launch.snapshot import LauncherState
from iocflow.launch.texts import error_text, printable
from iocflow.run import Outcome
from iocflow.schedule.beginning import INSTANT, beginning, moment_of
from iocflow.schedule.ledger import Ledger
from iocflow.schedule.options import Late, PollingOptions
from iocflow.schedule.seeds import NO_MORE, following, seed_error, seeds_of
from iocflow.schedule.timer import Timer, missed_between
from iocflow.schedule.timing import Every, Timing
from iocflow.store.errors import StoreError
from iocflow.store.launchers import GIVEN_UP_AFTER, Firing, Standing, Told

__all__ = ["PollingLauncher"]

logger = logging.getLogger("iocflow.schedule")

LATE_AFTER = timedelta(seconds=30)
"""How long after its moment (and its jitter) a tick may begin before it counts as late."""
AGAIN = 5.0
"""Seconds until a tick is tried again that could not begin, or could not submit its run."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A firing on its way.

    Attributes:
        moment: When it was due, UTC.
        passed_over: How many earlier moments the timer passed over.
        asked: Which of the operators' requests it answers, from 1; 0 when it is the schedule's.
    """

    moment: datetime
    passed_over: int = 0
    asked: int = 0


class PollingLauncher(BaseLauncher):
    """Fires by a timing; a tick starts one run, or, with a poller, one for each seed that this yields.

    A tick takes one thread of the pool from its beginning to its end, also when it starts several runs: they run one
    after the other, so that the poller's cursor moves exactly when a run has ended.

    Over a store, each firing is asked for there first, so that one of several daemons gets it, and its end is written
    there: a daemon that starts goes on behind the last firing that is dealt with, and a firing that a dead one had in
    hand is begun anew.
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
        self._waiting: Tick | None = None
        self._dropped: datetime | None = None
        self._last: datetime | None = None
        self._stopping = False
        self._timer: Timer | None = None
        self._refused: SeedError | None = None

    @property
    def next_firing(self) -> datetime | None:
        """When it fires next, UTC; the jitter comes on top."""
        return self._timer.next_firing(self.name) if self._timer else None

    def start(self, host: Host) -> None:
        """Have the timer call from now on.

        Raises:
            StoreError: The store does not tell how the launcher stands.
        """
        self._lent = host
        self._timer = host.service(Timer)
        standing = self._ledger.enter(self)
        now = host.clock.now()
        timing, since = beginning(self.timing, standing, now)
        passed = timing.after(since - INSTANT) is None
        if passed and (standing is None or standing.upto is None):
            # Nothing tells whether an earlier daemon fired it, and firing it at every restart would be worse.
            logger.warning("launcher %s: %s has passed and is not made up for", self.name, timing.text)
            self.counters.add(Count.MISSED)
        self._timer.add(self.name, timing, since, self._fire, self._options.jitter)
        self._become(LauncherState.FINISHED if passed else LauncherState.RUNNING)
        self._ledger.follow(self)

    def hear(self, standing: Standing) -> None:
        """Take note of what operators asked of it."""
        if self._state in (LauncherState.RUNNING, LauncherState.PAUSED):
            self._become(LauncherState.PAUSED if standing.paused else LauncherState.RUNNING, self._trouble)
        if standing.asked > standing.answered:
            self._offer(Tick(self._host.clock.now(), asked=standing.answered + 1))

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

    @property
    def _ledger(self) -> Ledger:
        return self._host.service(Ledger)

    # From a firing to a tick.

    def _fire(self, moment: datetime, passed_over: int) -> None:
        """Queue a tick; the timer's thread calls this."""
        tick = Tick(moment, passed_over)
        if self._offer(tick):
            return
        with self._changed:
            if self._stopping:
                return
            kept = self._options.overlap is Overlap.QUEUE_ONE and self._waiting is None
            if kept:
                self._waiting = tick
            else:
                self._dropped = moment
        if not kept:
            self._count_passed_over(passed_over)
            text = "the tick of %s is dropped, an earlier one is in hand"
            self._count(Count.SKIPPED_OVERLAP, text, moment.isoformat())

    def _offer(self, tick: Tick) -> bool:
        """Queue a tick unless one is in hand; return whether it was queued."""
        with self._changed:
            if self._stopping or self._ticking:
                return False
            self._ticking = True
        self._submit(tick)
        return True

    def _submit(self, tick: Tick) -> None:
        work = Task(self.name, self.processor.name, lambda progress: self._run(tick, progress), self._next)
        self._host.pool.submit(work)

    def _next(self) -> None:
        """Queue the tick that waits, if there is one."""
        with self._changed:
            tick, self._waiting = self._waiting, None
            self._ticking = tick is not None
            self._changed.notify_all()
        if tick is not None:
            self._submit(tick)

    def _run(self, tick: Tick, progress: Progress) -> None:
        try:
            if not self._stopping:
                self._attempt(tick, progress)
        except StoreError as error:
            trouble = printable(self._host.mask(error_text(error)))
            self._count(Count.ERRORS, "the tick of %s has to wait: %s", tick.moment.isoformat(), trouble)
            self._become(self._state, f"the last tick has to wait: {type(error).__qualname__}")
            self._later(tick, AGAIN)
        finally:
            self._next()

    def _later(self, tick: Tick, seconds: float) -> None:
        """Queue a tick once more in a while, unless one is in hand then, which stands for it."""

        def offer() -> None:
            self._offer(tick)

        if self._timer is not None and not self._stopping:
            self._timer.later(self.name, seconds, offer)

    def _attempt(self, tick: Tick, progress: Progress) -> None:
        """Begin a tick, if it is this daemon's.

        Raises:
            StoreError: The store does not answer, or could not take the run.
        """
        firing = self._firing(tick)
        told = self._ledger.begin(firing)
        when = tick.moment.isoformat()
        match told.answer:
            case "yours":
                self._work(tick, replace(firing, missed=self._missed(tick, told)), progress)
            case "busy":  # elsewhere; if that daemon dies, the tick is begun here
                self._later(tick, told.wait)
            case "done":
                self._become(self._state)
                self._realign(tick, told)
            case "paused":
                self._count(Count.PAUSED, "the tick of %s is passed over: it is paused", when)
            case "given up":
                text = "the tick of %s is given up: it was begun %d times, and each time the daemon died"
                self._count(Count.MISSED, text, when, GIVEN_UP_AFTER)

    def _firing(self, tick: Tick) -> Firing:
        gap = self.timing.step / 2 if isinstance(self.timing, Every) else timedelta()
        after = self.timing.starting(tick.moment).after(tick.moment)
        rest = float("inf") if after is None else (after - tick.moment).total_seconds()
        return Firing(self.name, tick.moment.timestamp(), gap.total_seconds(), rest, asked=tick.asked)

    def _missed(self, tick: Tick, told: Told) -> int:
        """Count the moments for which nothing ran before a tick, of this daemon or any other; return their number."""
        missed = tick.passed_over
        if told.upto is not None and not tick.asked and (self._last is None or told.upto != self._last.timestamp()):
            upto = moment_of(told.upto)
            timing = self.timing.starting(upto)
            missed = missed_between(timing, timing.after(upto) or tick.moment, tick.moment)
        self._count_passed_over(missed)
        return missed

    def _realign(self, tick: Tick, told: Told) -> None:
        """Go on behind a firing that another daemon had."""
        if self._timer is not None and told.upto is not None and isinstance(self.timing, Every) and not tick.asked:
            self._timer.realign(self.name, self.timing.starting(moment_of(told.upto)))

    # A tick.

    def _work(self, tick: Tick, firing: Firing, progress: Progress) -> None:
        if not self._in_time(tick):
            self._ledger.give_back(self.name)
            self._ledger.skip(self.name, firing.moment, firing.missed + 1)
            return
        outcome, run = "", ""
        try:
            outcome, run = self._tick(tick, progress)
            self._become(self._state)
        except StoreError:
            self._ledger.give_back(self.name)
            raise
        except BaseException as error:  # noqa: BLE001  # a poll's SystemExit ends its tick, not the daemon
            outcome = self._failed(error)
        with self._changed:
            self._last = self._dropped or tick.moment
            self._dropped = None
        moment = firing.moment if tick.asked else self._last.timestamp()
        self._ledger.settle(replace(firing, moment=moment), outcome, run)

    def _failed(self, error: BaseException) -> str:
        """Log and count what a poll raised; return it in words."""
        if error is self._refused:  # why no run could begin is in the log already
            what = "the poll ended at a seed that no run could begin with"
            logger.warning("launcher %s: %s", self.name, what, extra={"launcher": self.name})
        else:
            logger.error("launcher %s: the poll failed", self.name, exc_info=error, extra={"launcher": self.name})
        self.counters.add(Count.ERRORS)
        self._become(self._state, f"the last poll failed: {type(error).__qualname__}")
        return printable(f"the poll failed: {error_text(error)}")

    def _in_time(self, tick: Tick) -> bool:
        """Return whether a tick that begins now may run, and count it if it is late."""
        late = self._host.clock.now() - tick.moment
        if late <= LATE_AFTER + self._options.jitter:
            return True
        if self._options.late is Late.SKIP:
            self._count(Count.MISSED, "the tick of %s is dropped, it is %s late", tick.moment.isoformat(), late)
            return False
        self._count(Count.LATE, "the tick of %s runs %s late", tick.moment.isoformat(), late)
        return True

    def _tick(self, tick: Tick, progress: Progress) -> tuple[str, str]:
        """Do what a tick is for; return what became of it, and the run that it started when it was one.

        Raises:
            StoreError: The store of durable runs could not take one: a poll's cursor stays where it is.
        """
        if self._poller is None:
            ended = self._perform(self._launch(tick, None, _key(self.name, tick)), progress)
            return _said(ended), ended.run.id if ended.run else ""
        found = refused = 0
        with ExitStack() as closing:
            seeds = seeds_of(self._poller)
            if hasattr(seeds, "close"):
                closing.callback(seeds.close)
            seed = next(seeds, NO_MORE)
            while seed is not NO_MORE and not self._stopping:
                found += 1
                self._refused = self._refusal(tick, seed, progress)
                refused += self._refused is not None
                seed = following(seeds, self._refused)
        if found:
            return f"{found} found" + (f", {refused} refused" if refused else ""), ""
        self.counters.add(Count.NOTHING_FOUND)
        logger.debug("launcher %s: nothing found", self.name, extra={"launcher": self.name})
        return "nothing found", ""

    def _refusal(self, tick: Tick, seed: object, progress: Progress) -> SeedError | None:
        """Run a seed; return the error when no run could begin with it, which its poller has to hear of."""
        if seed is None:  # to a run it is no seed at all
            why = "poll() yielded None, which is no seed; yield a seed for each run, or nothing at all"
            self._count(Count.REFUSED, why)
            return SeedError(why)
        ended = self._perform(self._launch(tick, seed), progress)
        return seed_error(ended, self.processor.name) if ended.refused else None

    def _perform(self, launch: Launch, progress: Progress) -> Ended:
        ended = self._host.perform(launch, progress)
        if ended.untried and ended.error:
            raise ended.error
        return ended

    def _launch(self, tick: Tick, seed: object, key: str = "") -> Launch:
        return Launch(
            self.processor,
            self.name,
            seed,
            scheduled_for=tick.moment,
            idempotency_key=key,
            overlap=self._options.overlap,
        )

    def _count_passed_over(self, number: int) -> None:
        if number:
            self._count(Count.MISSED, "%d earlier firings were passed over", number, number=number)

    def _count(self, count: Count, message: str, *args: object, number: int = 1) -> None:
        self.counters.add(count, number)
        level = logging.INFO if count in (Count.SKIPPED_OVERLAP, Count.PAUSED) else logging.WARNING
        logger.log(level, f"launcher %s: {message}", self.name, *args, extra={"launcher": self.name})


def _key(name: str, tick: Tick) -> str:
    return f"{name}#{tick.asked}" if tick.asked else f"{name}@{tick.moment.isoformat()}"


def _said(ended: Ended) -> str:
    """Return how a run ended, in words."""
    if ended.run is not None and ended.run.idle:
        return "nothing found"
    if ended.outcome is Outcome.FAILED and ended.reason:
        return printable(f"failed: {ended.reason.partition(chr(10))[0]}")
    return ended.outcome.name.lower()
