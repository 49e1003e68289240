"""The two clocks that the daemon reads: the one on the wall, which can be set, and the one that only goes on."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Tells the time; tests bring their own."""

    def now(self) -> datetime:
        """Return the wall clock's time, UTC."""

    def monotonic(self) -> float:
        """Return seconds since some moment; they never go back, whatever is done to the wall clock."""


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """Return the wall clock's time, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the seconds of the machine's monotonic clock, which may stand still while the machine is suspended."""
        return time.monotonic()
