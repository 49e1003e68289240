"""What each launcher did, as numbers."""

from __future__ import annotations

import threading
from enum import StrEnum

__all__ = ["Count", "Counters"]


class Count(StrEnum):
    """What is counted for every launcher.

    Attributes:
        STARTED: Runs that were started; each is counted once more under its end, durable ones as SUBMITTED or ERRORS.
        COMPLETED: Runs that ended COMPLETED.
        STOPPED: Runs that an activity ended early, for a reason.
        NOTHING_FOUND: Runs that called `nothing_to_do()`, and polls that yielded no seed.
        SUBMITTED: Runs that were handed to the store of durable runs, where workers do them.
        FAILED: Runs that ended FAILED.
        INTERRUPTED: Runs that ended by something that is no error, as `SystemExit`.
        SKIPPED_OVERLAP: Ticks dropped because an earlier one was still in hand.
        LATE: Ticks that ran long after their time.
        MISSED: Scheduled times for which nothing ran.
        PAUSED: Scheduled times that were passed over because the launcher was paused.
        REFUSED: Events that could not be read, or have no data, and went to the dead letters without a run; and each
            None that a poll yielded.
        RETURNED: Events that were given back to their source, not run.
        ERRORS: Troubles of the launcher itself: a poll that raised, a source or store that could not be reached.
    """

    STARTED = "started"
    COMPLETED = "completed"
    STOPPED = "stopped"
    NOTHING_FOUND = "nothing_found"
    SUBMITTED = "submitted"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    SKIPPED_OVERLAP = "skipped_overlap"
    LATE = "late"
    MISSED = "missed"
    PAUSED = "paused"
    REFUSED = "refused"
    RETURNED = "returned"
    ERRORS = "errors"


class Counters:
    """The counts of one launcher; any thread may add to them."""

    def __init__(self) -> None:
        """Start at nought."""
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(Count, 0)

    def add(self, count: Count, number: int = 1) -> None:
        """Count `number` more."""
        with self._lock:
            self._counts[count] += number

    def __getitem__(self, count: Count) -> int:
        """Return one count."""
        return self._counts[count]

    def as_dict(self) -> dict[str, int]:
        """Return all counts by name, as they are at one moment."""
        with self._lock:
            return {str(name): number for name, number in self._counts.items()}
