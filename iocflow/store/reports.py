"""What a store tells of runs: their state, their journal, and what the doctor finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

State = Literal["queued", "running", "waiting", "suspended", "completed", "failed", "cancelled"]
"""The state of a run; the last three are closed."""


class Waiting(NamedTuple):
    """What one thread of control of a run waits for.

    Attributes:
        signal: The name of the signal; empty when it only waits for a time, as before another attempt.
        until: When the wait ends anyway; None when only the signal ends it.
        activity: The path of what goes on then.
        thread: The thread of control: empty, or the numbers of branches and items, as in `0.2`.
    """

    signal: str
    until: float | None
    activity: str
    thread: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """A run as its submitter and operators see it; times are UTC seconds since the epoch.

    Attributes:
        outcome: `ok`, `stopped`, `error`, `timeout`, `expired`, `cancelled`; empty while the run is open.
        reason: Why it was suspended, cancelled, or asked to stop.
        error: The error's record, if there is one.
        activity: The path of the last activity that was recorded; where a run waits, or was suspended because workers
            died, of the one that is under way.
        spent: Seconds from the submission to the end, or to now.
        steps: How many rows of its trail are recorded.
        waits: What a waiting run waits for.
    """

    id: int
    submitter: str
    number: str
    processor: str
    state: State
    outcome: str
    reason: str
    error: Mapping[str, Any] | None
    group: str | None
    priority: int
    deliveries: int
    submitted: float
    started: float | None
    ended: float | None
    deadline: float | None
    not_before: float | None
    activity: str
    spent: float
    steps: int
    waits: tuple[Waiting, ...] = ()


class Entry(NamedTuple):
    """One entry of a run's journal, numbered from 1 without gaps."""

    number: int
    at: float
    kind: str
    thread: str
    name: str
    began: float | None
    outcome: str
    attempts: int
    error: Mapping[str, Any] | None
    result: str | None
    who: str
    why: str


class Violation(NamedTuple):
    """An invariant that does not hold: its name, and the evidence."""

    invariant: str
    what: str
