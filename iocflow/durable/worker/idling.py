"""Working in this process until there is nothing to do."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from iocflow.durable.worker.worker import Worker
from iocflow.store.errors import StoreLostError

__all__ = ["run_until_idle"]

_LOGGER = logging.getLogger("iocflow.durable")
_LOOK = 0.002
"""Seconds between two looks at whether there is something left."""

_LOOK_AT_OTHERS = 0.05


def run_until_idle(worker: Worker, tell: Callable[[], None] | None = None, *, inherit: bool = False) -> None:
    """Start a worker, and stop it when it has nothing in hand and finds nothing to claim.

    Args:
        worker: A worker that is not started yet.
        tell: Called now and then meanwhile; what it raises ends the work.
        inherit: Whether to wait for runs that other workers have in hand for as long as these may be dead.
    """
    others = _Others(worker)
    worker.start()
    try:
        while not worker.idle() or (inherit and others.may_be_dead()):
            if tell:
                tell()
            time.sleep(_LOOK_AT_OTHERS if others.waited_for else _LOOK)
            if not worker.idle():
                others.waited_for = False
    finally:
        worker.stop()


class _Others:
    """Other workers: when a lease has passed, the runs of the dead were taken over, and what is left has a living one.

    Attributes:
        waited_for: Whether they are.
    """

    def __init__(self, worker: Worker) -> None:
        """Take the worker that would take over."""
        self._store = worker.store
        self._longest = worker.settings.lease + 2 * worker.settings.tick
        self._began = 0.0
        self.waited_for = False

    def may_be_dead(self) -> bool:
        """Return whether they have runs in hand, and may be dead; asked again and again while there is nothing else."""
        try:
            if not self._store.runs(states=["running"], limit=1):
                return False
        except StoreLostError:  # the worker tells of it; what others have is not known until it answers
            if not self.waited_for:
                return True
        if not self.waited_for:
            self._began, self.waited_for = time.monotonic(), True
            _LOGGER.info(
                "other workers have runs in hand: these are taken over within %g s if they died", self._longest
            )
        return time.monotonic() - self._began < self._longest
