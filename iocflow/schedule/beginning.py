"""From where on a launcher fires: from its start, or, over a store, behind what is dealt with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from iocflow.schedule.timing import Timing
from iocflow.store.launchers import Standing

__all__ = ["INSTANT", "beginning", "moment_of"]

INSTANT = timedelta(microseconds=1)
"""The shortest time: a timing tells moments after a given one."""


def moment_of(seconds: float) -> datetime:
    """Return a moment that a store keeps as seconds since the epoch."""
    return datetime.fromtimestamp(seconds, UTC)


def beginning(timing: Timing, standing: Standing | None, now: datetime) -> tuple[Timing, datetime]:
    """Return the timing of a launcher that starts now, and since when its firings are to be fired."""
    if standing is None:
        return timing.starting(now), now
    if standing.upto is None:
        return timing.starting(now), min(moment_of(standing.since), now)
    upto = moment_of(standing.upto)
    going_on = timing.starting(upto)
    after = going_on.after(upto)
    if after is not None and upto - now > after - upto:  # a clock had been set far ahead
        return timing.starting(now), now
    return going_on, upto + INSTANT
