"""Programs as users write them: a type checker has nothing to say about any line."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol

from iocflow import (
    CONTINUE,
    FAIL,
    PASS,
    STOP,
    Activity,
    AsyncRunner,
    BoundActivity,
    Decision,
    ErrorHandler,
    ExclusiveChoiceProcessor,
    ForEachProcessor,
    GoTo,
    LoggingErrorHandler,
    OnError,
    Outcome,
    ParallelSplitProcessor,
    ProcessContext,
    Processor,
    RaisingErrorHandler,
    Result,
    Retry,
    RetryingErrorHandler,
    Run,
    RunEvent,
    RunFinished,
    RunLogFilter,
    SequenceProcessor,
    Step,
    StepFinished,
    StepInfo,
    StepLike,
    UnsetError,
    activity,
)


@dataclass(frozen=True)
class RateDrop:
    """A seed."""

    route: int
    drop: Decimal


class FareDrop(ProcessContext):
    """A context with plain annotations."""

    seed_data: RateDrop
    recipients: Sequence[str]
    recipient: str
    text: str
    sent: int = 0
    score: float = 0.0


@dataclass
class Counted(ProcessContext):
    """A context that is a dataclass."""

    n: int = 0
    names: list[str] = field(default_factory=list)


class HasText(Protocol):
    """What an activity for many contexts needs of each."""

    text: str


class Shout(Activity[HasText]):
    """Works on every context that has a text."""

    def execute(self, context: HasText) -> None:
        """Change the text."""
        context.text = context.text.upper()


class Stop(Activity[ProcessContext]):
    """Works on every context."""

    def __init__(self, reason: str) -> None:
        """Take a constant."""
        self.reason = reason

    def execute(self, context: ProcessContext) -> None:
        """Ask for a stop."""
        context.stop_process(self.reason)


class Send(Activity[FareDrop]):
    """Has a collaborator, and a handler of its own."""

    error_handler = RetryingErrorHandler(attempts=3, delay=0.5, growth=2)

    def __init__(self, sender: Callable[[str, str], Awaitable[bool]]) -> None:
        """Take the delegate."""
        self.sender = sender

    async def execute(self, context: FareDrop) -> str:
        """Send, and tell what became of it."""
        done = await self.sender(context.recipient, context.text)
        context.step.memo[context.recipient] = done
        return "sent" if done else "refused"


def build(context: FareDrop) -> None:
    """Use the typed seed."""
    context.text = f"{context.seed_data.route}: {context.seed_data.drop.quantize(Decimal('0.01'))}"


def find(context: FareDrop, *, limit: int = 10) -> Result:
    """Have a collaborator by name, and return any result."""
    if limit:
        return "found"
    return context


async def rate(context: FareDrop) -> None:
    """Be awaited."""
    await asyncio.sleep(0)
    context.score = 1


def renew(context: FareDrop) -> FareDrop:
    """Return another context."""
    return FareDrop() if context.sent else context


async def deliver(address: str, text: str) -> bool:
    """Be a delegate."""
    return bool(address and text)


class Escalate(ErrorHandler):
    """Decides by what it sees."""

    def handle_error(self, context: FareDrop, error: Exception) -> Decision | None:
        """Return any decision."""
        if isinstance(error, UnsetError):
            return FAIL
        if context.step.attempt < 3:
            return Retry(timedelta(seconds=context.step.attempt))
        return GoTo("build") if context.sent else None


class EscalateLater(ErrorHandler):
    """Asks somebody, and waits for the answer."""

    async def handle_error(self, context: FareDrop, error: Exception) -> Decision | None:
        """Return any decision."""
        return FAIL if await deliver("ops@example.com", str(error)) else None


class Spans:
    """An interceptor, without deriving from anything."""

    def around_step(
        self, step: StepInfo, context: object, proceed: Callable[[], ProcessContext | str | None]
    ) -> ProcessContext | str | None:
        """Wrap an attempt."""
        logging.info("%s %s %s", step.activity, step.attempt, step.remaining())
        return proceed()


def observe(event: RunEvent) -> None:
    """Watch."""
    if isinstance(event, StepFinished):
        row: Step = event.step
        print(row.activity, row.outcome.name, row.ended - row.started)
    elif isinstance(event, RunFinished):
        print(event.outcome is Outcome.COMPLETED, event.idle, event.at + 1)


def join(context: FareDrop, forks: Mapping[str, FareDrop]) -> None:
    """Bring branches together."""
    context.score = sum(fork.score for fork in forks.values())


class Loud(SequenceProcessor[FareDrop]):
    """A kind of one's own."""

    def supports(self, activity: object) -> bool:
        """Refuse some activities."""
        return super().supports(activity) and not isinstance(activity, Stop)


steps: list[StepLike[FareDrop]] = [build, Shout(), Stop("never")]
steps.append(activity(find, args={"limit": 3}, time_limit=2))
one: BoundActivity[FareDrop] = activity(Send(deliver), name="send", on_error=[PASS, Escalate()], time_limit=1.5)
rated = ExclusiveChoiceProcessor(
    {"rate": {"good": "build", "else": "end"}, "build": "end"}, {"rate": rate, "build": build}, context=FareDrop
)
split = ParallelSplitProcessor({"a": rate, "b": [build, Shout()], "c": rated}, join=join, context=FareDrop)
each = ForEachProcessor("recipients", one, as_="recipient", parallel=4, may_fail="10%", context=FareDrop)
processor: Processor[FareDrop] = SequenceProcessor(
    [*steps, split, each, renew, functools.partial(find, limit=2), lambda context: context.stop_process()],
    context=FareDrop,
    name="fare-drop",
    on_error=[OnError([OSError, TimeoutError], Retry(5)), OnError(LookupError, STOP), LoggingErrorHandler("warning")],
    finally_=[build, activity(Stop("x"), on_error=CONTINUE)],
    observers=[observe, lambda event: print(event.run_id)],
    interceptors=[Spans()],
    max_steps=50,
)
counted = SequenceProcessor([lambda context: None, Stop("enough")], context=lambda: Counted(n=3))
loud = Loud([build], context=FareDrop, on_error=RaisingErrorHandler())


def main() -> None:
    """Run."""
    logging.getLogger().addFilter(RunLogFilter())
    run: Run[FareDrop] = processor.do_activities({"route": 117, "drop": "30.28"})
    print(run.raise_for_error().context.sent + 1, run.id.upper(), run.stop_reason, run.error)
    print(counted.do_activities().context.names.copy(), loud.launch(scheduled_for=datetime.now(UTC)).context.score)
    print(asyncio.run(processor.do_activities_async()).context.text.upper())
    with AsyncRunner() as runner:
        done: bool = runner.run(deliver("a", "b"), timeout=5)
        print(done)
    plan: str = processor.plan_hash
    print(plan, processor.supports(build), [step.name for step in processor.steps])


def test_alone() -> None:
    """Test one activity alone."""
    context = FareDrop()
    context.seed_data = RateDrop(117, Decimal(30))
    build(context)
    assert context.text.startswith("117")
    result: Any = Send(deliver).execute(context)
    assert asyncio.iscoroutine(result)
