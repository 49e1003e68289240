"""What the daemon lends its launchers: clocks, threads, counters, and the one place where launches are performed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from iocflow.errors import IocflowError
from iocflow.launch.clock import Clock
from iocflow.launch.contract import Acknowledgement, Launch
from iocflow.launch.counters import Count, Counters
from iocflow.launch.durations import Durations
from iocflow.launch.ended import Ended
from iocflow.launch.exit_codes import ExitCode
from iocflow.launch.launcher import S, Service
from iocflow.launch.pool import Pool, Progress
from iocflow.launch.settings import DaemonSettings
from iocflow.launch.texts import printable
from iocflow.run import Outcome
from iocflow.store.errors import StoreError
from iocflow.store.launchers import Launchers

__all__ = ["DaemonHost"]

logger = logging.getLogger("iocflow.launch")

_COUNT_OF = {
    Outcome.COMPLETED: Count.COMPLETED,
    Outcome.STOPPED: Count.STOPPED,
    Outcome.FAILED: Count.FAILED,
    Outcome.COMPENSATED: Count.FAILED,
    Outcome.INTERRUPTED: Count.INTERRUPTED,
    Outcome.SUBMITTED: Count.SUBMITTED,
}


class DaemonHost:
    """The host of a daemon's launchers; every launcher's counters exist from the start."""

    def __init__(
        self,
        clock: Clock,
        settings: DaemonSettings,
        counters: Mapping[str, Counters],
        *,
        limits: Mapping[str, int],
        mask: Callable[[str], str],
        give_up: Callable[[ExitCode, str], None],
        changed: Callable[[], None],
        book: Launchers | None = None,
    ) -> None:
        """Take the parts; `limits` bounds the runs of a processor by its name."""
        self.clock = clock
        self.settings = settings
        self.pool = Pool(settings.pool, clock, limits)
        self.mask = mask
        self.give_up = give_up
        self.changed = changed
        self.book = book
        self.durations = Durations()
        self._counters = counters
        self._services: dict[object, Service] = {}

    @property
    def services(self) -> tuple[Service, ...]:
        """What launchers asked for."""
        return tuple(self._services.values())

    def counters(self, launcher: str) -> Counters:
        """Return the counters of the launcher with that name."""
        return self._counters[launcher]

    def service(self, kind: Callable[[DaemonHost], S]) -> S:
        """Return the only service of that class, made and started at the first call."""
        if kind not in self._services:
            made = kind(self)
            made.start()
            self._services[kind] = made
        found: Any = self._services[kind]
        service: S = found
        return service

    def perform(self, launch: Launch, progress: Progress) -> Ended:
        """Run, count and log one launch in the calling thread of the pool; raises nothing."""
        counters = self.counters(launch.launcher)
        progress.at(launch.run_id, launch.message_id)
        counters.add(Count.STARTED)
        began = self.clock.monotonic()
        ended = self._run(launch)
        idle = ended.run is not None and ended.run.idle
        seconds = self.clock.monotonic() - began
        if ended.run is not None and not idle and getattr(launch.processor, "engine", None) is None:
            self.durations.add(launch.processor.name, seconds)
        counters.add(Count.NOTHING_FOUND if idle else Count.ERRORS if ended.untried else _COUNT_OF[ended.outcome])
        progress.at("")
        self._log(launch, ended, seconds, idle)
        return ended

    def _run(self, launch: Launch) -> Ended:
        try:
            run = launch.perform()
        except StoreError as error:
            return Ended(launch.run_id, Outcome.FAILED, error, untried=True)
        except IocflowError as error:  # it says what is wrong, with the seed as a rule; where it was found is no news
            return Ended(launch.run_id, Outcome.FAILED, error)
        except Exception as error:
            logger.exception("processor %s could not be launched", launch.processor.name, extra=_fields(launch))
            return Ended(launch.run_id, Outcome.FAILED, error)
        except BaseException as error:  # noqa: BLE001  # an activity's SystemExit ends its run, not the daemon
            return Ended(launch.run_id, Outcome.INTERRUPTED, error)
        return Ended(launch.run_id, run.outcome, run.error, run)

    def _log(self, launch: Launch, ended: Ended, seconds: float, idle: bool) -> None:
        if idle or (ended.refused and launch.seed is not None):  # who brought the seed tells what becomes of it
            level = logging.DEBUG
        elif ended.acknowledgement is Acknowledgement.DONE:
            level = logging.INFO
        else:
            level = logging.WARNING
        run_id = ended.run.id if ended.run else launch.run_id
        logger.log(
            level,
            "%s: run %s of %s%s %s after %.3f s",
            launch.launcher,
            run_id,
            launch.processor.name,
            _origin(launch),
            self.mask(_end(ended)),
            seconds,
            # What fails a run is in the log already; what interrupts it passes through the engine unseen.
            exc_info=ended.error if ended.outcome is Outcome.INTERRUPTED else None,
            extra={**_fields(launch), "run_id": run_id, "outcome": ended.outcome.name, "seconds": round(seconds, 6)},
        )


def _end(ended: Ended) -> str:
    """Return in words how a launch ended."""
    if ended.untried:
        return f"could not be submitted ({ended.reason})"
    return "was submitted" if ended.outcome is Outcome.SUBMITTED else f"ended {ended.outcome.name}"


def _origin(launch: Launch) -> str:
    """Return which event a launch comes from, by its source's name for it and by its id, unless that says both."""
    name, id = launch.event, printable(launch.message_id)
    said = id if not name or id.startswith(name) else f"{name} ({id})"
    return f" for event {said}" if said else ""


def _fields(launch: Launch) -> dict[str, object]:
    """Return what identifies a launch in a log record; the run's own log lines carry the same `run_id`."""
    return {
        "launcher": launch.launcher,
        "processor": launch.processor.name,
        "run_id": launch.run_id,
        "message_id": launch.message_id,
        "scheduled_for": launch.scheduled_for.isoformat() if launch.scheduled_for else "",
    }
