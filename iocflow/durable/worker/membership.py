"""Who a worker is to the store: registered under an id, alive as long as it shows it, and anew when it was given up."""

from __future__ import annotations

import itertools
import logging
import os
import platform
import threading
import time

from iocflow.durable.clock import StoreClock
from iocflow.store.contract import Store
from iocflow.store.errors import StoreError

_LOGGER = logging.getLogger("iocflow.durable")

BACKOFF = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Seconds between tries while the store does not answer; the last one from then on."""


class Membership:
    """A worker's registration, and what is known of how the store answers.

    Attributes:
        id: The worker's number, its fencing token.
        seen: When it showed life last, as `time.monotonic` has it.
        ended: Set when the worker stops, which ends all waiting.
    """

    def __init__(self, store: Store, lease: float, clock: StoreClock) -> None:
        """Take the store, the lease in seconds, and the clock to set."""
        self._store, self._lease, self._clock = store, lease, clock
        self.id, self.seen = 0, 0.0
        self.ended = threading.Event()
        self._restarts = self._fulls = 0
        self._troubles: dict[str, str] = {}

    @property
    def trouble(self) -> str:
        """What keeps the worker from working: the store does not answer, or is full; empty when all is well."""
        return "; ".join(dict.fromkeys([*self._troubles.values()]))

    def register(self) -> None:
        """Become a new worker.

        Raises:
            StoreError: The store does not answer.
        """
        self.id = self._store.register(self._lease, platform.node(), os.getpid())
        self._clock.set(self._store.now())
        self.seen = time.monotonic()

    def renew(self, *, fenced: bool) -> bool:
        """Register anew, after giving up the present registration unless it is `fenced`; return whether that was done.

        It waits before, ever longer, when nothing was recorded since the last time, and until the store answers.
        """
        self._restarts += 1
        for delay in itertools.chain(BACKOFF[self._restarts - 1 :], itertools.repeat(BACKOFF[-1])):
            if self._restarts > 1 and self.ended.wait(delay):
                return False
            try:
                if not fenced:
                    self._store.retire(self.id)
                    fenced = True
                self.register()
            except StoreError as error:
                self._silent("commit", error)
                self._restarts += 1
            else:
                self.answered("commit")
                return True
        raise AssertionError("the delays never end")

    def beat(self) -> frozenset[int]:
        """Show life when a third of the lease has passed without; return the runs that were taken from this worker.

        Raises:
            FencedError: It was taken for dead.
        """
        if time.monotonic() - self.seen <= self._lease / 3:
            return frozenset()
        taken = self._store.beat(self.id, lease=self._lease)
        self.seen = time.monotonic()
        return taken

    def committed(self, *, much: bool) -> None:
        """Note a commit, which showed life; `much` says that it recorded something."""
        self.seen = time.monotonic()
        self._restarts, self._fulls = 0 if much else self._restarts, 0
        self.answered("commit")

    # What the store answers, in commits and in what the watch asks.

    def unanswered(self, error: StoreError) -> None:
        """Note that the watch got no answer, and wait a while."""
        self._silent("watch", error)
        self.ended.wait(BACKOFF[1])

    def full(self, error: StoreError) -> None:
        """Note that the store is full, and wait, ever longer."""
        self._troubles["commit"] = str(error)
        delay = BACKOFF[2:][min(self._fulls, 2)]
        self._fulls += 1
        _LOGGER.error("%s; nothing is lost, the next try is in %g s", error, delay)
        self.ended.wait(delay)

    def answered(self, where: str) -> None:
        """Note that the store answers."""
        self._troubles.pop(where, None)

    def _silent(self, where: str, error: StoreError) -> None:
        self._troubles[where] = str(error)
        _LOGGER.warning("the store does not answer: %s", error)
