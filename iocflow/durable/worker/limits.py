"""The time limits around a place: they count from when their steps began, whichever worker goes on from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iocflow.durable.clock import StoreClock
from iocflow.plan import Frame

if TYPE_CHECKING:
    from iocflow.durable.worker.held import Held

Limits = dict[str, tuple[tuple[int, ...], float]]
"""When the time limit of a step is over, by its path, on the clock of `time.monotonic`, and of which attempt it is."""


def stored(limits: Limits, stack: Sequence[Frame], clock: StoreClock) -> dict[str, Any]:
    """Return the limits of the steps that `stack` is within, on the store's clock; the innermost step begins anew."""
    around = {frame["path"][:-1] for frame in stack}
    return {path: (attempt, clock.at(end)) for path, (attempt, end) in limits.items() if path in around}


def taken_up(limits: Mapping[str, Any], held: Held) -> Limits:
    """Return limits that were stored; one that was over when an operator had the run go on begins anew."""
    retried = 0.0
    if any(end <= held.clock.now() for _, end in limits.values()):
        entries = held.store.history(held.claimed.id)
        retried = max((entry.at for entry in entries if entry.kind == "retry"), default=0.0)
    return {
        path: (tuple(attempt), held.clock.monotonic(end)) for path, (attempt, end) in limits.items() if end > retried
    }
