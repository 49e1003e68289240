"""Observers, interceptors, async activities, logging, and what is no error, in durable runs."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from iocflow import (
    CONTINUE,
    ParallelSplitProcessor,
    ProcessContext,
    RetryingErrorHandler,
    RunFinished,
    RunLogFilter,
    RunStarted,
    SequenceProcessor,
    StepFailed,
    StepFinished,
    StepStarted,
    activity,
)
from tests.integration.durable.house import House, Ledger


class Work(ProcessContext):
    """A context that counts."""

    seed_data: int = 0
    n: int = 0
    right: int = 0
    cleaned: int = 0


def add(context: Work) -> None:
    context.n += 1


def clean(context: Work) -> None:
    context.cleaned += 1


def wait(context: Work) -> None:
    context.step.wait_for("approved")


def told(event: Any) -> str:
    """Return an event in short."""
    match event:
        case RunStarted():
            return "run"
        case StepStarted():
            return f"{event.activity} {event.attempt}"
        case StepFailed():
            return f"{event.activity} failed, {event.decision}"
        case StepFinished():
            return f"{event.step.activity} {event.step.outcome.name}"
        case RunFinished():
            return f"end {event.outcome.name}"
    raise AssertionError(event)


def test_observers(house: House) -> None:
    """Observers get the events of a durable run in order, with the store's id of the run; a rest is no event."""
    events: list[Any] = []

    def fail_once(context: Work) -> None:
        if context.step.attempt == 1:
            raise ValueError("again")

    house.sequence(
        add,
        activity(fail_once, on_error=RetryingErrorHandler(attempts=2, delay=60.0)),
        wait,
        context=Work,
        observers=[events.append],
    )
    run = house.submit()
    house.work()
    house.kit.advance(61)
    house.work()
    house.client.signal(run, "approved")
    house.work()
    assert house.state(run) == "completed"
    assert [told(event) for event in events] == [
        "run",
        "add 1",
        "add DONE",
        "fail-once 1",
        "fail-once failed, retry",
        "fail-once 2",
        "fail-once DONE",
        "wait 1",
        "wait 1",
        "wait DONE",
        "end COMPLETED",
    ]
    assert {event.run_id for event in events} == {str(run)}


def test_the_quick_path_tells_the_same(house: House) -> None:
    """An observer that is added changes nothing of the trail of a plain sequence."""
    house.sequence(add, add, context=Work)
    plain = house.submit()
    house.work()
    house.sequence(add, add, context=Work, observers=[lambda event: None])
    observed = house.submit()
    house.work()
    assert house.trail(plain) == house.trail(observed) == "add, add"
    assert house.kinds(plain) == house.kinds(observed)


def test_an_observer_that_fails(house: House) -> None:
    """What an observer raises is logged, and dropped."""

    def fail(event: Any) -> None:
        raise ValueError("the observer")

    house.sequence(add, context=Work, observers=[fail])
    run = house.submit()
    house.work()
    assert house.state(run) == "completed"


def test_interceptors(house: House) -> None:
    """Interceptors wrap every attempt, the first outermost; they may skip an activity, or put a result in its place."""
    around: list[str] = []

    class Noting:
        def __init__(self, name: str) -> None:
            self.name = name

        def around_step(self, step: Any, context: Any, proceed: Any) -> Any:
            around.append(f"{self.name} {step.activity} {step.attempt}")
            return None if self.name == "inner" and step.activity == "skipped" else proceed()

    house.sequence(
        add, activity(add, name="skipped"), add, context=Work, interceptors=[Noting("outer"), Noting("inner")]
    )
    run = house.submit()
    house.work()
    assert (house.state(run), house.context(run).n) == ("completed", 2)
    assert around == [f"{who} {what} 1" for what in ("add", "skipped", "add") for who in ("outer", "inner")]


def test_an_interceptor_lets_a_wait_pass(house: House) -> None:
    """An activity that waits leaves through its interceptors; what they catch as `Exception` is not that."""

    class Catching:
        def around_step(self, step: Any, context: Any, proceed: Any) -> Any:
            try:
                return proceed()
            except Exception as error:
                raise AssertionError("a wait is no error") from error

    house.sequence(wait, context=Work, interceptors=[Catching()])
    run = house.submit()
    house.work()
    house.client.signal(run, "approved")
    house.work()
    assert house.state(run) == "completed"


def test_async_activities(house: House) -> None:
    """Awaitables are awaited, a time limit cancels them, and they may wait for signals, too."""
    cancelled: list[str] = []

    async def later(context: Work) -> None:
        await asyncio.sleep(0)
        context.n += 1

    async def hang(context: Work) -> None:
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            cancelled.append("hang")
            raise

    async def hear(context: Work) -> None:
        await asyncio.sleep(0)
        context.right = context.step.wait_for("approved")

    house.sequence(later, activity(hang, time_limit=0.05, on_error=CONTINUE), hear, later, context=Work)
    run = house.submit()
    house.work()
    assert house.state(run) == "waiting"
    house.client.signal(run, "approved", 7)
    house.work()
    assert house.trail(run) == "later, hang HANDLED, hear, later"
    assert (house.context(run).n, house.context(run).right, cancelled) == (2, 7, ["hang"])


def test_async_activities_of_many_runs(house: House) -> None:
    """Many runs with async activities share one loop, and each has its own context."""

    async def add_later(context: Work) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
            context.n += context.seed_data

    house.sequence(add_later, add_later, context=Work)
    runs = [house.submit(seed=i) for i in range(40)]
    house.work(threads=8)
    assert [house.context(run).n for run in runs] == [6 * i for i in range(40)]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_what_is_no_error(house: House, interruption: type[BaseException]) -> None:
    """KeyboardInterrupt and SystemExit of an activity ask no handler: that run is suspended, the worker goes on."""
    ledger = Ledger()

    class Asked:
        def handle_error(self, context: Any, error: Exception) -> Any:
            ledger.note(context, "asked")
            return CONTINUE

    def leave(context: Work) -> None:
        if not ledger.whats:
            ledger.note(context, "left")
            raise interruption("enough")

    house.sequence(add, activity(leave, on_error=Asked()), add, context=Work, finally_=[clean])
    run, other = house.submit(), house.submit()
    house.work(threads=1)
    states = {one: house.state(one) for one in (run, other)}
    assert sorted(states.values()) == ["completed", "suspended"]
    (suspended,) = [one for one, state in states.items() if state == "suspended"]
    assert interruption.__name__ in house.client.status(suspended).reason
    assert [one.outcome for one in house.client.history(suspended) if one.kind == "suspended"] == ["interrupted"]
    assert ledger.whats == ["left"]
    assert house.trail(suspended) == "add"
    assert house.client.retry(suspended)
    house.work()
    assert house.trail(suspended) == "add, leave, add, clean"


def test_a_stop_of_an_activity(house: House) -> None:
    """A run that was asked to stop has completed, as stopped, with the reason."""

    def stop(context: Work) -> None:
        context.stop_process("nothing new")

    house.sequence(add, stop, add, context=Work, finally_=[clean])
    run = house.submit()
    house.work()
    status = house.client.status(run)
    assert (status.state, status.outcome, status.reason) == ("completed", "stopped", "nothing new")
    assert house.trail(run) == "add, stop STOPPED, clean"


def test_log_records_carry_the_run(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """What an activity logs carries the id of its run, its processor and the activity, in branches, too."""

    def speak(context: Work) -> None:
        logging.getLogger("spoken").warning("spoke")

    split: Any = ParallelSplitProcessor({"left": speak, "right": speak}, context=Work, name="split")
    house.sequence(speak, split, context=Work)
    run = house.submit()
    caplog.handler.addFilter(RunLogFilter())
    house.work()
    found = {
        (record.run_id, record.processor, record.activity)  # type: ignore[attr-defined]
        for record in caplog.records
        if record.name == "spoken"
    }
    assert found == {(str(run), "job", path) for path in ("speak", "split/left/speak", "split/right/speak")}


def test_a_failure_is_logged_once(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """Each failure is in the log once, however deep it happened, and though the run rested meanwhile."""

    def fail(context: Work) -> None:
        raise ValueError("only once")

    inner: Any = SequenceProcessor([fail], context=Work, name="inner")
    retrying = RetryingErrorHandler(attempts=2, delay=60.0)
    house.sequence(activity(inner, on_error=retrying), context=Work)
    run = house.submit()
    house.work()
    house.kit.advance(61)
    house.work()
    assert house.state(run) == "failed"
    logged = [record for record in caplog.records if record.exc_info and record.name == "iocflow"]
    assert len(logged) == 2, [record.getMessage() for record in logged]


def test_the_idempotency_key(house: House) -> None:
    """The key of a step begins with submitter and number: the same for each attempt, another one for each step."""
    ledger = Ledger()

    def note(context: Work) -> None:
        ledger.note(context, context.step.attempt)
        if context.step.attempt == 1 and context.seed_data == 0:
            raise ValueError("again")

    house.sequence(activity(note, on_error=RetryingErrorHandler(attempts=2)), note, context=Work)
    for i in range(2):
        house.submit(seed=i, submitter="ACME", number=f"PO-{i}")
    house.work(threads=1)
    keys = [key for key, _ in ledger.calls]
    assert len(keys) == 5
    assert sorted(set(keys)) == [f"ACME/PO-{i}/note#{step}" for i in range(2) for step in (1, 2)]
