"""How a launch ended, for whoever has to tell its origin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from iocflow.launch.contract import Acknowledgement, acknowledgement_of
from iocflow.launch.texts import error_text
from iocflow.run import Outcome, Run, StepOutcome

__all__ = ["Ended", "failing_activity"]


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
        """The path of the activity that failed the run; empty when the seed was refused, or the run was interrupted."""
        return "" if self.run is None else failing_activity(self.run)

    @property
    def reason(self) -> str:
        """Why it failed: the error's class and message; empty without an error."""
        return "" if self.error is None else error_text(self.error)


def failing_activity(run: Run[Any]) -> str:
    """Return the path of the activity that failed a run: the innermost one with the error that ended it.

    Others may have failed before, in a nesting that an outer handler forgave, or after, in a `finally`. Empty when
    none did, and when the run did not fail.
    """
    if run.error is None:
        return ""
    failed = [row for row in run.steps if row.outcome is StepOutcome.FAILED]
    causes = [*_causes(run.error), *_causes(run.error.__cause__)]  # a handler may raise another one
    path = ""
    for row in reversed([row for row in failed if any(row.error is one for one in causes)] or failed):
        if not path or row.activity.startswith(f"{path}/"):
            path = row.activity
    return path


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and the parts of a group."""
    if error is not None:
        yield error
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _causes(part)
