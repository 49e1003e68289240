"""The one launch contract: what a schedule, an event or the command line hands over, and what it is told at the end."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum
from typing import Any, Protocol, runtime_checkable

from iocflow.context import ProcessContext
from iocflow.launch.log_filter import launched_by
from iocflow.run import Outcome, Run
from iocflow.wiring.json_floats import fitted

__all__ = ["Acknowledgement", "Launch", "Launchable", "Overlap", "Poller", "acknowledgement_of"]


class Launchable(Protocol):
    """What can be launched: a processor."""

    @property
    def name(self) -> str:
        """The processor's wired id."""

    def launch(
        self,
        seed_data: Any = None,
        *,
        run_id: str = "",
        scheduled_for: datetime | None = None,
        idempotency_key: str = "",
    ) -> Run[Any]:
        """Run once, here and now, or hand the run to its store; a failed activity is in the run and never raised."""


@runtime_checkable
class Poller(Protocol):
    """A bean that looks for work, outside any run.

    `poll` is called once a tick. Each seed that it yields starts one run, and the next one is asked for only when that
    run has ended, whatever its outcome. A generator is therefore resumed behind its `yield` exactly then, which is
    where it moves its cursor: a crash in between repeats that seed and loses none. When no run could begin with a seed,
    so that no activity ran, a `SeedError` is raised in the generator at its `yield`: the seed does not fit the
    processor, or is None, which is no seed; or no context could be made, say, and the error's cause tells why. One that
    catches it can leave the seed where it is and go on with the next. When the daemon stops, the generator is resumed
    behind the seed whose run has ended, and closed at its next `yield`. What `poll` raises, that error and `SystemExit`
    included, ends the tick; it is logged and counted, and the next tick polls again.
    """

    def poll(self) -> Iterable[object]:
        """Yield the seeds of the runs to start, none when there is nothing to do."""


class Overlap(StrEnum):
    """What becomes of a launch while an earlier one of the same launcher is still in hand.

    Attributes:
        SKIP: It is dropped and counted.
        QUEUE_ONE: One is kept and started when the earlier one has ended; more are dropped and counted.
        ALLOW: It runs beside the earlier one.
    """

    SKIP = "skip"
    QUEUE_ONE = "queue-one"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class Launch:
    """One wish to run a processor, from whichever side it comes.

    Attributes:
        processor: What is to run.
        launcher: Who wants it: a launcher's name, or `command line`.
        seed: The seed data.
        run_id: The id that the run will have.
        scheduled_for: The moment it was meant for, UTC; None when it was not scheduled.
        idempotency_key: The same for the same cause, also when it is launched again after a crash; may be empty.
        overlap: What becomes of it while an earlier launch of the same launcher is in hand.
        message_id: The id of the event that it comes from, else empty.
        event: What its source calls that event, fit to be logged, else empty.
    """

    processor: Launchable
    launcher: str
    seed: object = None
    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    scheduled_for: datetime | None = None
    idempotency_key: str = ""
    overlap: Overlap = Overlap.ALLOW
    message_id: str = ""
    event: str = ""

    def perform(self) -> Run[Any]:
        """Run the processor in the calling thread and return its run."""
        with launched_by(self.launcher, self.message_id):
            return self.processor.launch(
                fitted(self.seed, getattr(self.processor, "context_type", ProcessContext)),
                run_id=self.run_id,
                scheduled_for=self.scheduled_for,
                idempotency_key=self.idempotency_key,
            )


class Acknowledgement(Enum):
    """What the origin of a launch is told.

    Attributes:
        DONE: It is dealt with; never bring it again.
        DEAD: It was tried and failed; keep it aside with the reason.
        RETURNED: It was not tried; bring it again.
    """

    DONE = "done"
    DEAD = "dead"
    RETURNED = "returned"


def acknowledgement_of(outcome: Outcome) -> Acknowledgement:
    """Return what the origin of a run with that outcome is told.

    A durable run is dealt with when it is in its store. A run that an activity interrupted (it raised `SystemExit`,
    say) counts as failed: brought again, it would do the same for ever.
    """
    return Acknowledgement.DONE if outcome in _DEALT_WITH else Acknowledgement.DEAD


_DEALT_WITH = (Outcome.COMPLETED, Outcome.STOPPED, Outcome.SUBMITTED)
