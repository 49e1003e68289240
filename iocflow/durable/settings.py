"""How a worker works."""

from __future__ import annotations

from dataclasses import dataclass

DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How a worker works; times in seconds.

    Attributes:
        threads: How many activities run at once.
        lease: A worker that showed no life for so long is taken for dead, and its runs are taken over.
        tick: How often it looks for dead workers and deadlines.
        deliveries: A run with which so many workers died is suspended as poison.
        window: The most runs in hand.
        retention: How long after their end the contexts of runs are kept; their trail stays.
    """

    threads: int = 8
    lease: float = 30.0
    tick: float = 5.0
    deliveries: int = 5
    window: int = 1024
    retention: float = 30 * DAY
