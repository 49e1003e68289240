"""What a run leaves: the run, its steps, and the events that observers get while it goes on."""

from __future__ import annotations

import functools
import logging
import uuid
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Generic, Protocol, Self, TypeVar

from iocflow.context import Lender, ProcessContext, StepInfo

C = TypeVar("C", bound=ProcessContext)


class Outcome(Enum):
    """How a run ended: COMPENSATED when its effects were undone, SUBMITTED when it was only handed to its store."""

    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"
    COMPENSATED = "compensated"
    INTERRUPTED = "interrupted"
    SUBMITTED = "submitted"


class StepOutcome(Enum):
    """How a step ended: HANDLED is a failure that a handler dealt with, STOPPED a step that asked the run to stop."""

    DONE = "done"
    HANDLED = "handled"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the trail: an activity that was executed, all of its attempts together.

    Attributes:
        activity: Its path, as in `fare-drop/send-message`; a composite's own row follows those of its parts.
        attempts: How often it ran.
        started: The start of the first attempt, UTC.
        ended: The end of the last attempt and its handlers, UTC.
        error: The last attempt's error, also when it was handled.
        result: The named result that it returned.
    """

    activity: str
    outcome: StepOutcome
    attempts: int
    started: datetime
    ended: datetime
    error: Exception | None = None
    result: str | None = None


class Named(Protocol):
    """What a run needs to know of its processor; `names` are the activities of a plain sequence."""

    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name."""


class Run(Generic[C]):
    """The record of one run of a processor; the engine makes it, attribute by attribute, which costs half of a
    constructor: at least `of`, `context` and `ticks`.

    Attributes:
        of: The processor.
        outcome: How it ended; INTERRUPTED until then.
        context: The context as the run left it.
        error: What made the run fail, else None.
        idle: Whether a poll found nothing to do.
        raises: Whether `do_activities` raises the error: nobody was there to handle it.
        seeding: Whether the seed is being set, before the plain part.
        rows: The trail, but for its plain part.
        ticks: When the run began, in seconds since the epoch, and each activity of its plain part ended: kept as
            numbers until somebody reads `steps`.
    """

    outcome: Outcome = Outcome.INTERRUPTED
    error: Exception | None = None
    idle: bool = False
    scheduled_for: datetime | None = None
    idempotency_key: str = ""
    raises: bool = False
    seeding: bool = False
    rows: Sequence[Step] = ()
    _id: str = ""
    _info: StepInfo | None = None

    of: Named
    context: C
    ticks: list[float]

    @property
    def processor(self) -> str:
        """The processor's name."""
        return self.of.name

    @property
    def id(self) -> str:
        """The run's id, made when it is first read."""
        if not self._id:
            self._id = str(uuid.uuid4())
        return self._id

    @id.setter
    def id(self, id: str) -> None:
        self._id = id

    @property
    def stop_reason(self) -> str:
        """Why the run was asked to stop."""
        return self.context.stop_reason

    @property
    def started(self) -> datetime:
        """When the run began, UTC."""
        return utc(self.ticks[0])

    @property
    def ended(self) -> datetime:
        """When its last step ended, UTC; its start when it has no step."""
        return max([self.started, *(step.ended for step in self.steps)])

    @functools.cached_property
    def steps(self) -> tuple[Step, ...]:
        """The trail: a row for each activity that was executed, in the order in which they ended."""
        times = [utc(tick) for tick in self.ticks]
        # The clock may have been set back meanwhile: nothing ends before it starts.
        plain = zip(self.of.names, times, times[1:], strict=False)
        return (*(Step(name, StepOutcome.DONE, 1, a, max(a, b)) for name, a, b in plain), *self.rows)

    def raise_for_error(self) -> Self:
        """Return the run, or raise what made it fail."""
        if self.error is not None:
            raise self.error
        return self

    def lend(self) -> StepInfo:
        """Return the info of the step that a plain sequence runs now."""
        at = len(self.ticks) - 1
        name = self.of.names[at] if at < len(self.of.names) and not self.seeding else ""
        key = f"{self.idempotency_key or self.id}/{name}#{at + 1}" if name else ""
        if self._info is None or self._info.idempotency_key != key:
            self._info = StepInfo(self.id, self.processor, self.scheduled_for)
            self._info.activity, self._info.idempotency_key = name, key
        return self._info

    def __repr__(self) -> str:
        """Return the gist."""
        return f"<Run {self.id} of {self.processor}: {self.outcome.name}>"


def utc(seconds: float) -> datetime:
    """Return the time that is so many seconds after the epoch."""
    return datetime.fromtimestamp(seconds, UTC)


@dataclass(frozen=True, slots=True)
class OfRun:
    """What all events begin with: whose they are."""

    run_id: str
    processor: str


@dataclass(frozen=True, slots=True)
class RunStarted(OfRun):
    """A run began; `at` is in seconds since the epoch, as in all events."""

    at: float


@dataclass(frozen=True, slots=True)
class StepStarted(OfRun):
    """An attempt of an activity begins."""

    activity: str
    attempt: int
    at: float


@dataclass(frozen=True, slots=True)
class StepFailed(OfRun):
    """An attempt failed, and was decided: `retry`, `continue`, `stop`, `goto`, `fail`, or `raise` (by the handler)."""

    activity: str
    attempt: int
    error: Exception
    decision: str
    at: float


@dataclass(frozen=True, slots=True)
class StepFinished(OfRun):
    """A row was added to the trail."""

    step: Step
    at: float


@dataclass(frozen=True, slots=True)
class RunFinished(OfRun):
    """A run ended, in whatever way."""

    outcome: Outcome
    error: BaseException | None
    idle: bool
    at: float


RunEvent = RunStarted | StepStarted | StepFailed | StepFinished | RunFinished
"""What an observer is given."""


current: ContextVar[Lender | None] = ContextVar("iocflow_current", default=None)
"""What the thread or task runs now; those that are started with a copy of the context see it too."""


class RunLogFilter(logging.Filter):
    """Adds `run_id`, `processor`, `activity` and `attempt` to the records of a log handler; empty outside a run."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields and let the record pass."""
        lender = current.get()
        step = lender.lend() if lender else StepInfo()
        for name in ("run_id", "processor", "activity", "attempt"):
            if not hasattr(record, name):
                setattr(record, name, getattr(step, name))
        return True
