"""How a launch ended, for whoever has to tell its origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iocflow.launch.contract import Acknowledgement, acknowledgement_of
from iocflow.launch.texts import error_text
from iocflow.run import Outcome, Run, StepOutcome

__all__ = ["Ended"]


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a launch.

    Attributes:
        run_id: The id that the launch asked for.
        outcome: How the run ended; FAILED also when there was no run because launching raised.
        error: What made it fail, else None.
        run: The run; None when the processor raised instead of returning one.
        untried: Whether there is no run because its store could not take it; it may be tried again.
    """

    run_id: str
    outcome: Outcome
    error: BaseException | None = None
    run: Run[Any] | None = None
    untried: bool = False

    @property
    def acknowledgement(self) -> Acknowledgement:
        """What the origin is told.

        A run that is recorded in a store under an id of its own is dealt with, however it ended: launched again, it is
        the same run, and whoever looks after the store sees to it.
        """
        if self.run is not None and self.run.id != self.run_id:
            return Acknowledgement.DONE
        return Acknowledgement.RETURNED if self.untried else acknowledgement_of(self.outcome)

    @property
    def refused(self) -> bool:
        """Whether it failed before any activity ran: no context could be made, say, or the seed does not fit it."""
        begun = self.run is not None and bool(self.run.steps)
        return self.outcome is Outcome.FAILED and not self.untried and not begun

    @property
    def failing_activity(self) -> str:
        """The path of the activity that failed first; empty when the seed was refused, or the run was interrupted."""
        rows = self.run.steps if self.run else ()
        return next((row.activity for row in rows if row.outcome is StepOutcome.FAILED), "")

    @property
    def reason(self) -> str:
        """Why it failed: the error's class and message; empty without an error."""
        return "" if self.error is None else error_text(self.error)
