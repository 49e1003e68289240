"""Mistakes in activities, handlers and around runs that a type checker finds; a line with `expect` is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from iocflow import (
    CONTINUE,
    Activity,
    AsyncRunner,
    Decision,
    ErrorHandler,
    GoTo,
    Interceptor,
    OnError,
    ProcessContext,
    Result,
    Retry,
    RetryingErrorHandler,
    Run,
    RunEvent,
    RunFinished,
    SequenceProcessor,
    StepInfo,
    StepStarted,
    activity,
)


class Order(ProcessContext):
    """The context of these programs."""

    number: int
    note: str | None = None


class Invoice(ProcessContext):
    """Another one."""

    total: float


def ship(context: Order) -> None:
    """Use fields."""
    context.number += 1
    context.note = "shipped"
    context.number = "one"  # expect
    context.nmber = 2  # expect
    print(context.nmber)  # expect
    context.stop_process(reason=3)  # expect
    context.next_activity = "bill"
    context.next_activity = 3  # expect
    context.step.memo["sent"] = True
    context.step.attempt = "first"  # expect
    print(context.step.remaning())  # expect


def read(context: Order) -> None:
    """Read a field that may be None."""
    print(context.note.upper())  # expect
    if context.note is not None:
        print(context.note.upper())


processor = SequenceProcessor([ship, read], context=Order)
run = processor.do_activities({"number": 1})
number: int = run.context.number
text: str = run.context.number  # expect
print(run.context.nmber)  # expect
print(run.outcom)  # expect
if run.outcome == "COMPLETED":  # expect
    print("never")
run.raise_for_error().context.number.bit_length()
run.raise_for_error().context.number.upper()  # expect
for step in run.steps:
    seconds: float = (step.ended - step.started).total_seconds()
    attempts: str = step.attempts  # expect
invoices: Run[Invoice] = processor.do_activities()  # expect
processor.do_activities({}, {})  # expect
processor.do_activites()  # expect
processor.launch(run_id="r1", idempotency_key="k")
processor.launch(scheduled_for="now")  # expect
processor.execute(Order())
processor.execute(Invoice())  # expect


async def wait() -> int:
    """Await a run."""
    done = await processor.do_activities_async()
    later = processor.do_activities_async()
    print(later.context)  # expect
    await later
    return done.context.number


# Activities.


class Right(Activity[Order]):
    """Overrides as it should."""

    def execute(self, context: Order) -> Result:
        """Return what may be returned."""
        return "yes" if context.number else context


class Wider(Activity[Order]):
    """Takes more than it must, and returns less than it may."""

    async def execute(self, context: ProcessContext) -> None:
        """Do nothing."""


class WrongContext(Activity[Order]):
    """Takes another context."""

    def execute(self, context: Invoice) -> None:  # expect
        """Do nothing."""


class WrongResult(Activity[Order]):
    """Returns what no activity may."""

    def execute(self, context: Order) -> int:  # expect
        """Do nothing."""
        return 1


class WrongLater(Activity[Order]):
    """Returns what no activity may, later."""

    async def execute(self, context: Order) -> int:  # expect
        """Do nothing."""
        return 1


class MoreParameters(Activity[Order]):
    """Wants more than the engine gives."""

    def execute(self, context: Order, again: bool) -> None:  # expect
        """Do nothing."""


class Unfinished(Activity[Order]):
    """Has no `execute`."""


Unfinished()  # expect
Right().name = "right"
Right().name = 7  # expect
Right().error_handler = CONTINUE  # expect
Right().error_handler = RetryingErrorHandler()


# Handlers and decisions.


class Handler(ErrorHandler):
    """Decides."""

    def handle_error(self, context: Any, error: Exception) -> Decision | None:
        """Return a decision."""
        return Retry(delay=1.5) if context.step.attempt < 3 else GoTo("ship")


class WrongHandler(ErrorHandler):
    """Answers with a word."""

    def handle_error(self, context: Any, error: Exception) -> str:  # expect
        """Return no decision."""
        return "retry"


class Structural:
    """Has what a handler needs."""

    def handle_error(self, context: Any, error: Exception) -> Decision:
        """Return a decision."""
        return CONTINUE


class NoHandler:
    """Has another method."""

    def handle(self, error: Exception) -> Decision:
        """Return a decision."""
        return CONTINUE


class WordHandler:
    """Answers with a word."""

    def handle_error(self, context: Any, error: Exception) -> str:
        """Return no decision."""
        return "retry"


SequenceProcessor([ship], context=Order, on_error=Handler())
SequenceProcessor([ship], context=Order, on_error=[Handler(), Structural(), CONTINUE, Retry(1)])
SequenceProcessor([ship], context=Order, on_error=NoHandler())  # expect
SequenceProcessor([ship], context=Order, on_error=WordHandler())  # expect
SequenceProcessor([ship], context=Order, on_error="retry")  # expect
SequenceProcessor([ship], context=Order, on_error=[Handler(), NoHandler()])  # expect
SequenceProcessor([ship], context=Order, on_error=Handler)  # expect
SequenceProcessor([activity(ship, on_error=Structural())], context=Order)
SequenceProcessor([activity(ship, on_error=NoHandler())], context=Order)  # expect
OnError(LookupError, CONTINUE)
OnError([OSError, LookupError], Handler())
OnError("LookupError", CONTINUE)  # expect
OnError(KeyboardInterrupt, CONTINUE)  # expect
OnError(LookupError, "continue")  # expect
Retry("soon")  # expect
GoTo(3)  # expect
GoTo()  # expect
RetryingErrorHandler(attempts=3, delay=0.5, growth=2, max_delay=60, jitter=0.1)
RetryingErrorHandler(attempts="3")  # expect
RetryingErrorHandler(retries=3)  # expect


# Hooks.


class Timing:
    """An interceptor."""

    def around_step(self, step: StepInfo, context: Any, proceed: Callable[[], Any]) -> Any:
        """Let it pass."""
        return proceed()


class Forgetful:
    """Takes no `proceed`."""

    def around_step(self, step: StepInfo, context: Any) -> None:
        """Leave the activity out."""


def observe(event: RunEvent) -> None:
    """Tell kinds of events apart."""
    if isinstance(event, StepStarted):
        print(event.activity)
    elif isinstance(event, RunFinished):
        print(event.outcome.name, event.attempt)  # expect
    print(event.run_id, event.activity)  # expect


timing: Interceptor = Timing()
forgetful: Interceptor = Forgetful()  # expect
processor.hooked([observe], [timing], AsyncRunner())
processor.hooked([timing], [])  # expect
