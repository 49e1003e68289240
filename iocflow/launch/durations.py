"""How long the runs of each processor took, as a histogram."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["BOUNDS", "Durations", "Histogram"]

BOUNDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
"""The upper bounds of the buckets, in seconds; what is above the last one has a bucket of its own."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """How long runs took.

    Attributes:
        counts: How many lie in each bucket: above the bound before it, and not above its own.
        total: All of them together, in seconds.
    """

    counts: tuple[int, ...]
    total: float


class Durations:
    """Counts runs that were done in this process by processor and duration; any thread may add one."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._counts: dict[str, list[int]] = {}
        self._totals: dict[str, float] = {}

    def add(self, processor: str, seconds: float) -> None:
        """Count a run."""
        with self._lock:
            counts = self._counts.setdefault(processor, [0] * (len(BOUNDS) + 1))
            counts[bisect.bisect_left(BOUNDS, seconds)] += 1
            self._totals[processor] = self._totals.get(processor, 0.0) + seconds

    def histograms(self) -> Mapping[str, Histogram]:
        """Return what was counted, by processor."""
        with self._lock:
            return {name: Histogram(tuple(counts), self._totals[name]) for name, counts in self._counts.items()}
