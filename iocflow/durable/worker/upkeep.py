"""What any worker does for the whole store now and then."""

from __future__ import annotations

import logging
import math
import time

from iocflow.durable.settings import WorkerSettings
from iocflow.store.contract import Store

_LOGGER = logging.getLogger("iocflow.durable")
_PURGE_EVERY = 3600.0
_PURGE_AT_ONCE = 1000


class Upkeep:
    """Sweeps each tick, and purges each hour; done by every worker, so that it is done by any."""

    def __init__(self, store: Store, settings: WorkerSettings) -> None:
        """Begin with everything due."""
        self._store, self._settings = store, settings
        self._swept = self._purged = -math.inf

    def do(self, worker: int) -> None:
        """Do what is due, as the worker of that id, which does not take over from itself.

        Raises:
            StoreError: The store does not answer; what was due stays due.
        """
        now = time.monotonic()
        if now - self._swept >= self._settings.tick:
            found = self._store.sweep(deliveries=self._settings.deliveries, by=worker)
            self._swept = now
            if found.workers:
                text = "workers that died: %s; of their runs, taken over: %s, suspended as poison: %s"
                _LOGGER.warning(text, found.workers, found.lost, found.poisoned)
        if now - self._purged >= _PURGE_EVERY and self._purge() < _PURGE_AT_ONCE:
            self._purged = now

    def _purge(self) -> int:
        return self._store.purge(self._store.now() - self._settings.retention, limit=_PURGE_AT_ONCE)
