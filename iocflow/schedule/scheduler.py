"""APScheduler, reduced to what it is used for here: it keeps jobs in the order of their moments and calls those due."""

from __future__ import annotations

import logging
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any

from apscheduler.executors.base import BaseExecutor  # type: ignore[import-untyped]
from apscheduler.schedulers.base import BaseScheduler  # type: ignore[import-untyped]
from apscheduler.triggers.base import BaseTrigger  # type: ignore[import-untyped]

__all__ = ["JobScheduler"]


class JobScheduler(BaseScheduler):  # type: ignore[misc]
    """APScheduler without a thread of its own: somebody calls `process_jobs`."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """Call `wake` when a job was added or moved, so that `process_jobs` should be called early."""
        self._wake = wake
        quiet = _Quiet(logging.getLogger("iocflow.schedule.apscheduler"), {})
        super().__init__(timezone=UTC, logger=quiet, executors={"default": _Direct()})

    def put(
        self, id: str, first: datetime, call: Callable[[datetime], None], after: Callable[[datetime], datetime | None]
    ) -> None:
        """Call `call` with the moment `first` once that has come, and then with each one that `after` tells.

        `after` gets a moment and returns a later one, None at the end. It must be quick, as `call`: both are called in
        `process_jobs`.
        """
        # No misfire_grace_time: how late is too late is decided when a tick begins, not when it is queued.
        options = {"id": id, "next_run_time": first, "misfire_grace_time": None, "coalesce": True}
        self.add_job(_call, _Trigger(after), args=(call,), replace_existing=True, **options)

    def move(self, id: str, to: datetime) -> None:
        """Let a job's next moment be another one."""
        self.modify_job(id, next_run_time=to)

    def next_moment(self, id: str) -> datetime | None:
        """Return a job's next moment, UTC; None when there is no such job any more."""
        job = self.get_job(id)
        return job.next_run_time.astimezone(UTC) if job else None

    def process_jobs(self) -> float | None:
        """Call what is due; return the seconds until the next job is, None without jobs."""
        wait: float | None = self._process_jobs()
        return wait

    def wakeup(self) -> None:
        """Tell that a job was added or moved; APScheduler's own hook."""
        self._wake()

    def shutdown(self, wait: bool = False) -> None:
        """Forget every job."""
        super().shutdown(wait)


def _call(call: Callable[[datetime], None], *moments: datetime) -> None:
    """Call; APScheduler checks a job's arguments when it is added, and the moment is not known then."""
    call(moments[-1].astimezone(UTC))


class _Trigger(BaseTrigger):  # type: ignore[misc]
    """Tells a job's next moment, never one that has passed: a clock set far ahead costs one call, not millions."""

    def __init__(self, after: Callable[[datetime], datetime | None]) -> None:
        self._after = after

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """Return the first moment that lies after both."""
        return self._after(max(previous_fire_time or now, now))


class _Direct(BaseExecutor):  # type: ignore[misc]
    """Calls a job at once, in the calling thread, and counts no instances: all that a job does is to queue a tick."""

    def submit_job(self, job: Any, run_times: list[datetime]) -> None:
        """Call the job with the moment that is due."""
        self._do_submit_job(job, run_times)

    def _do_submit_job(self, job: Any, run_times: list[datetime]) -> None:
        job.func(*job.args, run_times[-1])


class _Quiet(logging.LoggerAdapter[logging.Logger]):
    """Turns APScheduler's remarks on each job it adds into debug records."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Leave the message as it is."""
        return msg, kwargs

    def info(self, msg: object, *args: Any, **kwargs: Any) -> None:
        """Log for those who want all details."""
        self.debug(msg, *args, **kwargs)
