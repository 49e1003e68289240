"""How runs end, in the words of a store."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from iocflow.plan import End
from iocflow.run import Outcome, RunFinished
from iocflow.store.contract import Claimed, Ending

if TYPE_CHECKING:
    from iocflow.durable.worker.strand import Strand

UNWIND = {"cancel": "CANCELLED", "timeout": "TIMEOUT"}
"""With which outcome a run is unwound, by what is asked of it."""

DOUBTFUL = ("begun", "memo", "doubt")
"""The kinds of a last record after which nobody knows whether the step took place."""

_WORDS = {
    "COMPLETED": ("completed", "ok"),
    "STOPPED": ("completed", "stopped"),
    "FAILED": ("failed", "error"),
    "CANCELLED": ("cancelled", "cancelled"),
    "TIMEOUT": ("failed", "timeout"),
}


def finished(strand: Strand, end: End) -> Ending:
    """Return the ending of a run whose main strand ended; log its error, and tell the observers."""
    held = strand.held
    state, outcome = _WORDS[end["outcome"]]
    live = error = None
    if end["error"] is not None:
        strand.log_once(end["error"], logging.ERROR, "%s failed", held.job.processor.name)
        error = json.dumps({**end["error"], "raises": end["raises"]})
        live = held.errors.live(end["error"])
    if outcome == "error" and held.job.durable.on_failure == "incident":
        state = "suspended"
    final = Outcome.__members__.get(end["outcome"], Outcome.FAILED)
    strand.tell(RunFinished, final, live, strand.idle, held.clock.now())
    return ended(held.claimed, state, outcome, strand.context.stop_reason if outcome == "stopped" else "", error)


def ended(claimed: Claimed, state: Any, outcome: str, reason: str = "", error: str | None = None) -> Ending:
    """Return how a claimed run ends."""
    return Ending(claimed.id, claimed.group, state, outcome, reason, error)


def too_late(claimed: Claimed, now: float) -> Ending | None:
    """Return the end of a run that could not begin in time, as behind another one of its group; else None."""
    if claimed.n == 0 and claimed.ask is None:
        if claimed.deadline is not None and claimed.deadline <= now:
            return ended(claimed, "failed", "timeout", "the deadline has passed")
        if claimed.start_by is not None and claimed.start_by <= now:
            return ended(claimed, "failed", "expired", "was not started in time")
    return None


def in_doubt(strand: Strand, found: Ending | None) -> Ending:
    """Return the ending of a run with a step whose outcome nobody knows; `found` names those found in it before."""
    held, path = strand.held, strand.command.get("path")
    rows = [row for row in held.store.history(held.claimed.id) if (row.kind, row.thread) == ("begun", strand.thread)]
    began = datetime.fromtimestamp(rows[-1].began or rows[-1].at, UTC).isoformat(timespec="seconds")
    step = f"a worker died while {path} was under way (key {strand.step_key(strand.command)}, begun {began})"
    before = f"{found.reason}; " if found is not None else "in doubt, and not to be repeated unasked: "
    return suspended(held.claimed, before + step, "in_doubt")


def suspended(claimed: Claimed, reason: str, outcome: str) -> Ending:
    """Return the ending of a run that a person has to look at.

    `outcome` is `in_doubt`, `unreadable` (what the store has of it does not fit the code), or `interrupted`.
    """
    return ended(claimed, "suspended", outcome, reason)
