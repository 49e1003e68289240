"""A worker as a daemon has it beside its launchers."""

from __future__ import annotations

import logging
import time

from iocflow.durable.worker.worker import Worker

__all__ = ["WorkerCompanion"]

_LOGGER = logging.getLogger("iocflow.durable")


class WorkerCompanion:
    """Starts and stops a worker as `iocflow.launch.launcher.Companion` says."""

    name = "worker"

    def __init__(self, worker: Worker) -> None:
        """Take a worker that is not started yet."""
        self._worker = worker
        self._started = False

    def start(self) -> None:
        """Begin to work.

        Raises:
            StoreError: The store does not answer.
        """
        self._worker.start()
        self._started = True
        settings, jobs = self._worker.settings, sorted(self._worker.jobs)
        _LOGGER.info("worker: %s threads work on runs of %s", settings.threads, ", ".join(jobs) or "no processor")

    def heartbeat(self) -> None:
        """Do nothing: a worker has a thread that looks after it."""

    def trouble(self) -> str:
        """Return what keeps the worker from working; it tries a store that does not answer again and again."""
        trouble = self._worker.trouble
        return trouble and f"worker: {trouble}"

    def stop(self) -> None:
        """Do nothing yet: what is in hand is given back at the end, all at once."""

    def finish(self, deadline: float) -> bool:
        """Take nothing more, let the activities under way end, and give the rest back."""
        return not self._started or self._worker.stop(max(0.0, deadline - time.monotonic()))
