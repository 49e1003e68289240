"""Observers watch, interceptors steer."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from behaviour.parts import Asking, Box, BrokenError, add, fail, fail_twice, fill, idle, stop, yes
from unit.core.kit import Steering, inner

from iocflow import (
    CONTINUE,
    STOP,
    ExclusiveChoiceProcessor,
    ForEachProcessor,
    GoTo,
    ParallelSplitProcessor,
    Processor,
    RetryingErrorHandler,
    RunFinished,
    RunStarted,
    SequenceProcessor,
    StepFailed,
    StepFinished,
    StepInfo,
    StepStarted,
    activity,
)

Events = list[Any]


def gist(event: Any) -> str:
    """An event in a few words."""
    match event:
        case RunStarted():
            return "started"
        case StepStarted():
            return f"{event.activity} {event.attempt}"
        case StepFailed():
            return f"{event.activity} {event.attempt} failed: {event.decision}"
        case StepFinished():
            return f"{event.step.activity} {event.step.outcome.name}"
    return f"finished {event.outcome.name}"


def observed(*steps: Any, **options: Any) -> tuple[Processor[Any], list[str]]:
    """A sequence, and the gists of its events."""
    seen: list[str] = []
    observers = [lambda event: seen.append(gist(event))]
    return SequenceProcessor(steps, **{"context": Box, "name": "main", "observers": observers, **options}), seen


# Observers.

EVENTS: dict[str, tuple[Callable[[], tuple[Processor[Any], list[str]]], str]] = {
    "success": (lambda: observed(add, yes), "started, add 1, add DONE, yes 1, yes DONE, finished COMPLETED"),
    "nothing": (observed, "started, finished COMPLETED"),
    "stop": (lambda: observed(stop, add), "started, stop 1, stop STOPPED, finished STOPPED"),
    "no handler": (
        lambda: observed(fail, add),
        "started, fail 1, fail 1 failed: fail, fail FAILED, finished FAILED",
    ),
    "handled": (
        lambda: observed(activity(fail, on_error=CONTINUE)),
        "started, fail 1, fail 1 failed: continue, fail HANDLED, finished COMPLETED",
    ),
    "retried": (
        lambda: observed(fail_twice, on_error=RetryingErrorHandler(3)),
        "started, fail-twice 1, fail-twice 1 failed: retry, fail-twice 2, fail-twice 2 failed: retry, fail-twice 3, "
        "fail-twice DONE, finished COMPLETED",
    ),
    "GoTo": (
        lambda: observed(fail, add, on_error=GoTo("add")),
        "started, fail 1, fail 1 failed: goto, fail HANDLED, add 1, add DONE, finished COMPLETED",
    ),
    "a broken handler": (
        lambda: observed(fail, on_error=Asking(lambda context, error: 1 / 0)),  # type: ignore[arg-type,return-value]
        "started, fail 1, fail 1 failed: raise, fail FAILED, finished FAILED",
    ),
    "nested": (
        lambda: observed(inner(fail, finally_=[add]), on_error=STOP),
        "started, inner/fail 1, inner/fail 1 failed: fail, inner/fail FAILED, inner/add 1, inner/add DONE, "
        "inner 1 failed: stop, inner STOPPED, finished STOPPED",
    ),
    "for-each": (
        lambda: observed(fill, ForEachProcessor("items", add, as_="item", context=Box, name="each")),
        "started, fill 1, fill DONE, " + "each/add 1, each/add DONE, " * 3 + "each DONE, finished COMPLETED",
    ),
    "finally": (
        lambda: observed(add, finally_=[fail]),
        "started, add 1, add DONE, fail 1, fail 1 failed: fail, fail FAILED, finished FAILED",
    ),
}


@pytest.mark.parametrize("case", EVENTS)
def test_the_order_of_events(case: str) -> None:
    """Every attempt begins and ends in order, between the run's beginning and its end."""
    build, expected = EVENTS[case]
    processor, seen = build()
    processor.launch()
    assert ", ".join(seen) == expected


def test_events_of_a_seed_that_does_not_fit() -> None:
    """A run without any activity begins and ends as others do."""
    processor, seen = observed(add)
    processor.launch("many")
    assert seen == ["started", "finished FAILED"]
    processor, seen = observed(add, on_error=STOP)
    processor.launch("many")
    assert seen == ["started", "main 1 failed: stop", "finished STOPPED"]


def test_what_events_tell() -> None:
    """Run, processor and time are in each of them; a failure tells its exception, the end outcome and error."""
    events: Events = []
    before = time.time()
    run = SequenceProcessor([add, fail], context=Box, name="main", observers=[events.append]).launch(run_id="r1")
    assert all((event.run_id, event.processor) == ("r1", "main") for event in events)
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert before <= events[0].at <= events[-1].at <= time.time()
    failed = next(event for event in events if isinstance(event, StepFailed))
    assert failed.error is run.error is events[-1].error
    assert [event.step for event in events if isinstance(event, StepFinished)] == list(run.steps)
    assert events[-1].idle is False
    with pytest.raises(dataclasses.FrozenInstanceError):
        failed.decision = "retry"


def test_an_idle_run_is_told() -> None:
    """A poll that found nothing is idle at its end; a run that failed after it asked for that is not."""
    events: Events = []
    run = SequenceProcessor([idle], context=Box, observers=[events.append]).do_activities()
    assert run.idle is events[-1].idle is True
    run = SequenceProcessor([idle], finally_=[fail], context=Box, observers=[events.append]).launch()
    assert (run.outcome.name, run.idle, events[-1].idle) == ("FAILED", False, False)
    assert SequenceProcessor([idle], context=Box).do_activities().idle is True
    assert SequenceProcessor([add], finally_=[idle], context=Box).do_activities().idle is False


def test_a_failing_observer_is_logged_and_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """It changes nothing for the run or for the other observers, and what it raised is in the log."""
    events: Events = []

    def broken(event: Any) -> None:
        raise LookupError("watch out")

    run = SequenceProcessor([add, add], context=Box, observers=[broken, events.append]).do_activities()
    assert run.outcome.name == "COMPLETED"
    assert len(events) == len(caplog.records) == 6
    assert {record.getMessage() for record in caplog.records} == {
        f"an observer failed on {name}" for name in ("RunStarted", "StepStarted", "StepFinished", "RunFinished")
    }


def test_observers_are_called_in_the_thread_of_the_activity() -> None:
    """Events of a branch come from the branch's thread, so that an observer can keep a span in a context variable."""
    threads: dict[str, set[int]] = {}

    def observe(event: Any) -> None:
        if isinstance(event, StepStarted | StepFinished):
            name = event.activity if isinstance(event, StepStarted) else event.step.activity
            threads.setdefault(name, set()).add(threading.get_ident())

    here = {}
    branches = {name: [lambda context, name=name: here.__setitem__(name, threading.get_ident())] for name in "ab"}
    ParallelSplitProcessor(branches, context=Box, observers=[observe]).do_activities()
    assert threads["a/lambda"] == {here["a"]}
    assert threads["b/lambda-2"] == {here["b"]}


@pytest.mark.parametrize(
    ("step", "seed", "outcome"),
    [
        (add, None, "COMPLETED"),
        (stop, None, "STOPPED"),
        (fail, None, "FAILED"),
        (add, "many", "FAILED"),
    ],
)
def test_run_finished_in_every_case(step: Any, seed: Any, outcome: str) -> None:
    """Whatever happens, the last event is RunFinished, and there is one."""
    for options in ({}, {"finally_": [fail]}, {"on_error": Asking(lambda context, error: 1 / 0)}):  # type: ignore[arg-type,return-value]
        events: Events = []
        SequenceProcessor([step], context=Box, observers=[events.append], **options).launch(seed)  # type: ignore[arg-type]
        assert [isinstance(event, RunFinished) for event in events].index(True) == len(events) - 1
        assert events[-1].outcome.name == (outcome if "finally_" not in options or seed else "FAILED")


# Interceptors.


class Noting:
    """Notes what passes, and lets it pass."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self.notes = name, notes

    def around_step(self, step: StepInfo, context: Any, proceed: Callable[[], Any]) -> Any:
        self.notes.append(f"{self.name} before {step.activity} {step.attempt}")
        try:
            return proceed()
        finally:
            self.notes.append(f"{self.name} after")


def test_the_first_interceptor_is_outermost() -> None:
    """They wrap every attempt in wired order, those of nested processors and of `finally` too."""
    notes: list[str] = []
    interceptors = [Noting("one", notes), Noting("two", notes)]
    steps = [activity(fail_twice, on_error=RetryingErrorHandler(3)), inner(add)]
    SequenceProcessor(steps, context=Box, interceptors=interceptors, finally_=[yes]).do_activities()
    around = [note for note in notes if note.startswith("one before")]
    expected = ["fail-twice 1", "fail-twice 2", "fail-twice 3", "inner/add 1", "yes 1"]
    assert around == [f"one before {one}" for one in expected]
    assert notes[:4] == ["one before fail-twice 1", "two before fail-twice 1", "two after", "one after"]


def test_what_an_interceptor_returns_replaces_the_result() -> None:
    """A named result, a context or None, in the place of what the activity returned."""
    other = Box()
    other.n = 41
    swap = Steering(lambda step, context, proceed: {"yes": "no"}.get(proceed(), other))
    run = SequenceProcessor([yes, add, add], context=Box, interceptors=[swap]).do_activities()
    assert run.steps[0].result == "no"
    assert run.context is other
    routes: dict[str, Any] = {"a": {"no": "b", "else": "end"}, "b": "end"}
    swap = Steering(lambda step, context, proceed: "no" if proceed() == "yes" else None)
    choice = ExclusiveChoiceProcessor(routes, {"a": yes, "b": add}, context=Box, interceptors=[swap])
    assert [step.activity for step in choice.do_activities().steps] == ["a", "b"]


@pytest.mark.parametrize("result", [7, object(), lambda: None])
def test_what_an_interceptor_may_not_return(result: Any) -> None:
    """Anything else is a TypeError of the activity, as if it had returned it."""
    wrong = Steering(lambda step, context, proceed: result)
    run = SequenceProcessor([add], context=Box, interceptors=[wrong]).launch()
    assert isinstance(run.error, TypeError)
    assert "add returned a " in str(run.error)


def test_an_interceptor_sees_the_awaited_result() -> None:
    """`proceed()` gives what the coroutine gave; a `before` and `after` really lie around it."""
    seen: list[object] = []

    async def later(context: Box) -> str:
        await asyncio.sleep(0)
        seen.append("inside")
        return "awaited"

    steer = Steering(lambda step, context, proceed: seen.append(proceed()))
    SequenceProcessor([later], context=Box, interceptors=[steer]).do_activities()
    assert seen == ["inside", "awaited"]


def test_an_interceptor_may_leave_the_activity_out() -> None:
    """Without `proceed` the activity does not run, and the run goes on: a cache."""
    skip = Steering(lambda step, context, proceed: "cached" if step.activity == "add" else proceed())
    run = SequenceProcessor([add, yes], context=Box, interceptors=[skip]).do_activities()
    assert (run.context.n, [step.result for step in run.steps]) == (0, ["cached", "yes"])


def test_what_an_interceptor_raises_counts() -> None:
    """It is the attempt's error: handlers are asked, a retry runs it again, it is in the trail."""

    def steer(step: StepInfo, context: Any, proceed: Callable[[], Any]) -> Any:
        if step.attempt < 3:
            raise LookupError("not now")
        return proceed()

    run = SequenceProcessor(
        [activity(add, on_error=RetryingErrorHandler(3))], context=Box, interceptors=[Steering(steer)]
    ).do_activities()
    assert (run.context.n, run.steps[0].attempts) == (1, 3)
    run = SequenceProcessor([add], context=Box, interceptors=[Steering(steer)]).launch()
    assert isinstance(run.error, LookupError)


def test_an_interceptor_may_swallow_an_error() -> None:
    """It stands inside of the error handling: what it catches never happened."""

    def steer(step: StepInfo, context: Any, proceed: Callable[[], Any]) -> Any:
        try:
            return proceed()
        except BrokenError:
            return "caught"

    run = SequenceProcessor([fail, add], context=Box, interceptors=[Steering(steer)]).do_activities()
    assert [(step.outcome.name, step.result) for step in run.steps] == [("DONE", "caught"), ("DONE", None)]


def test_hooks_of_the_application_stand_outside() -> None:
    """`hooked` adds an application's hooks around the processor's own."""
    notes: list[str] = []
    processor = SequenceProcessor([add], context=Box, interceptors=[Noting("own", notes)])
    processor.hooked([lambda event: notes.append(type(event).__name__)], [Noting("app", notes)])
    processor.do_activities()
    assert [note for note in notes if "before" in note] == ["app before add 1", "own before add 1"]
    assert notes[0] == "RunStarted"
