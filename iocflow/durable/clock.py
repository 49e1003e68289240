"""The store's clock, as a worker knows it between two commits."""

from __future__ import annotations

import time


class StoreClock:
    """Follows the store's clock by the monotonic one; no decision is taken by this machine's own time of day.

    Attributes:
        shift: Seconds to add to this machine's time of day.
    """

    def __init__(self, now: float) -> None:
        """Take the store's present time, in seconds since the epoch."""
        self.set(now)

    def set(self, now: float) -> None:
        """Take the store's present time anew."""
        self._offset = now - time.monotonic()
        self.shift = now - time.time()

    def now(self) -> float:
        """Return the store's time."""
        return time.monotonic() + self._offset

    def at(self, monotonic: float) -> float:
        """Return the store's time at a time of `time.monotonic`."""
        return monotonic + self._offset

    def monotonic(self, at: float) -> float:
        """Return a time of the store on the clock of `time.monotonic`."""
        return at - self._offset
