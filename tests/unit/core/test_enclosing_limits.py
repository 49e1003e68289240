"""A time limit of a composite holds where the engine itself has control: between steps, items and attempts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from behaviour.parts import Asking
from unit.core.conftest import Wire

from iocflow import (
    CONTINUE,
    Decision,
    ForEachProcessor,
    OnError,
    ParallelSplitProcessor,
    ProcessContext,
    Processor,
    Retry,
    RetryingErrorHandler,
    SequenceProcessor,
    StepFailed,
    StepStarted,
    activity,
)


class Work(ProcessContext):
    items: tuple[int, ...] = (1, 2, 3, 4, 5)
    item: int = 0
    done: int = 0
    cleaned: bool = False


def slow(context: Work) -> None:
    time.sleep(0.05)
    context.done += 1


def broken(context: Work) -> None:
    raise ConnectionError("no route")


def clean(context: Work) -> None:
    context.cleaned = True


def halt(context: Work) -> None:
    context.stop_process("no credit")


def test_no_item_begins_after_the_limit() -> None:
    """A for-each whose time is over fails with a TimeoutError before its next item."""
    each = ForEachProcessor("items", slow, as_="item", context=Work, name="each")
    run = SequenceProcessor([activity(each, time_limit=0.08)], context=Work).launch()
    assert isinstance(run.error, TimeoutError)
    assert str(run.error) == "the time limit of each is over: each/slow did not begin"
    assert run.context.done in (1, 2)


def test_a_retry_waits_no_longer_than_the_limit() -> None:
    """The pause between two attempts ends with the limit around them, and no attempt begins after it."""
    retried = activity(broken, on_error=RetryingErrorHandler(attempts=2, delay=60))
    inner = SequenceProcessor([retried], context=Work, name="inner")
    began = time.monotonic()
    run = SequenceProcessor([activity(inner, time_limit=0.05)], context=Work).launch()
    assert isinstance(run.error, TimeoutError)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("delay", [60, 0])
@pytest.mark.parametrize("composite", [False, True])
def test_an_attempt_that_the_limit_kept_from_beginning_does_not_count(
    wire: Wire, delay: float, *, composite: bool
) -> None:
    """The rows tell of the attempts that were made, and the failure of the last one stays as the cause."""
    made: list[StepStarted | StepFailed] = []
    path = "inner/part/broken" if composite else "inner/broken"

    def slowly(context: Work, error: Exception) -> Decision:
        time.sleep(0.06)
        return Retry(delay)

    retried = activity(nested(broken, name="part") if composite else broken, on_error=Asking(slowly))
    kept = [lambda event: made.append(event) if isinstance(event, StepStarted | StepFailed) else None]
    run = wire(activity(nested(retried), time_limit=0.1 if delay else 0.05), context=Work, observers=kept).launch()
    assert [row.attempts for row in run.steps] == ([1, 0, 1, 1] if composite else [1, 1])
    assert isinstance(run.error, TimeoutError)
    assert isinstance(run.error.__cause__, ConnectionError)
    assert [(event.activity, event.attempt) for event in made if isinstance(event, StepStarted)] == [(path, 1)]
    assert {event.attempt for event in made} == {1}


def test_a_step_that_the_limit_kept_from_beginning_has_no_attempt(wire: Wire) -> None:
    """The row of a step whose time was over before its first attempt says that there was none."""
    run = wire(activity(nested(slow, broken), time_limit=0.02), context=Work).launch()
    assert [(row.activity, row.attempts) for row in run.steps] == [("inner/slow", 1), ("inner/broken", 0), ("inner", 1)]


def test_a_step_s_own_limit_does_not_cut_the_pause_before_its_next_attempt() -> None:
    """A limit is for one attempt: it neither shortens the delay nor spoils the attempt that follows."""
    handler = RetryingErrorHandler(attempts=3, delay=0.03)
    run = SequenceProcessor([activity(broken, on_error=handler, time_limit=0.02)], context=Work).launch()
    assert isinstance(run.error, ConnectionError)
    assert run.steps[0].attempts == 3
    assert run.steps[0].ended.timestamp() - run.steps[0].started.timestamp() >= 0.06


def test_finally_runs_though_the_time_is_over() -> None:
    """What a `finally` cleans up is cleaned up after a limit around it has passed."""
    inner = SequenceProcessor([slow, slow], context=Work, name="inner", finally_=[clean])
    run = SequenceProcessor([activity(inner, time_limit=0.02)], context=Work).launch()
    assert isinstance(run.error, TimeoutError)
    assert (run.context.done, run.context.cleaned) == (1, True)


def test_the_stop_reason_of_a_branch_is_the_run_s() -> None:
    """Who stops a run from inside of a branch is heard as one in a sequence is."""
    split = ParallelSplitProcessor({"a": halt, "b": clean}, context=Work)
    run = SequenceProcessor([split, slow], context=Work).launch()
    assert (run.outcome.name, run.stop_reason) == ("STOPPED", "no credit")


# Nobody inside is asked.


def nested(*steps: Any, **options: Any) -> Processor[Any]:
    return SequenceProcessor(steps, context=Work, **{"name": "inner", **options})


def each(body: Any, **options: Any) -> Processor[Any]:
    return ForEachProcessor("items", body, as_="item", context=Work, **{"name": "each", **options})


def split(**branches: Any) -> Processor[Any]:
    return ParallelSplitProcessor(branches, context=Work, name="split")


def fails_late(context: Work) -> None:
    time.sleep(0.03)
    raise ConnectionError("no route")


async def hangs(context: Work) -> None:
    await asyncio.sleep(60)


def needs_time(context: Work) -> None:
    time.sleep(0.03)
    context.done += 1


def executes(*steps: Any) -> Any:
    """An activity that runs a processor of its own on its context."""
    part = nested(*steps, name="part", on_error=Asking(lambda *_: Retry()))
    return activity(part.execute, name="executes")


COMPOSITES: dict[str, Callable[..., Processor[Any]]] = {
    "nested": lambda *steps, on_error: nested(*steps, on_error=on_error),
    "nested twice": lambda *steps, on_error: nested(nested(*steps, name="deep", on_error=on_error), on_error=on_error),
    "branches": lambda *steps, on_error: split(left=steps, right=activity(slow, on_error=on_error)),
    "nested branches": lambda *steps, on_error: nested(split(left=nested(*steps), right=[slow]), on_error=on_error),
    "items": lambda *steps, on_error: each(steps, may_fail="100%", on_error=on_error, failed="lost"),
    "items at once": lambda *steps, on_error: each(steps, may_fail=5, parallel=2, on_error=on_error, failed="lost"),
    "nested items": lambda *steps, on_error: nested(each(nested(*steps), may_fail=5, failed="lost"), on_error=on_error),
    "items that execute": lambda *steps, on_error: each(executes(*steps), may_fail=5, on_error=on_error),
}


@pytest.mark.parametrize("composite", COMPOSITES)
@pytest.mark.parametrize("step", [fails_late, hangs, needs_time])
@pytest.mark.parametrize("decision", [Retry(), Retry(0.5), CONTINUE])
def test_once_a_limit_is_over_nobody_inside_of_it_is_asked(
    wire: Wire, composite: str, step: Any, decision: Decision
) -> None:
    """Not in a busy loop, and not once: the limit's own step fails with a TimeoutError, for its handlers to decide."""
    asked: list[str] = []
    late: list[tuple[str, Exception]] = []

    def ask(context: Any, error: Exception) -> Decision:
        asked.append(context.step.activity)
        return decision

    def time_out(context: Any, error: Exception) -> Decision:
        late.append((context.step.activity, error))
        return CONTINUE

    inside = Asking(ask)
    steps = [activity(step, on_error=inside)] * 2
    whole = COMPOSITES[composite](*steps, on_error=inside)
    limited = activity(whole, time_limit=0.02, on_error=OnError(TimeoutError, Asking(time_out)))
    run = wire(limited, clean, context=Work).launch()
    ((path, error),) = late
    assert (asked, path) == ([], whole.name)
    assert str(error).startswith(f"the time limit of {whole.name} is over: ")
    assert (run.outcome.name, run.context.cleaned, getattr(run.context, "lost", [])) == ("COMPLETED", True, [])
    assert (run.steps[-2].outcome.name, run.steps[-2].error) == ("HANDLED", error)
    assert all(row.attempts <= 1 for row in run.steps)


def test_an_attempt_that_ran_into_a_limit_is_told_to_observers() -> None:
    """Each attempt that failed is an event, also when nobody was asked about it."""
    events: list[Any] = []
    inner = nested(activity(fails_late, on_error=Asking(lambda *_: Retry())))
    SequenceProcessor([activity(inner, time_limit=0.02)], context=Work, observers=[events.append]).launch()
    (failed,) = [event for event in events if isinstance(event, StepFailed)]
    assert (failed.activity, failed.attempt, failed.decision) == ("inner/fails-late", 1, "fail")


def test_the_outermost_limit_that_is_over_counts(wire: Wire) -> None:
    """When two have ended, no handler between them is asked."""
    asked: list[str] = []
    handler = Asking(lambda context, error: asked.append(context.step.activity))
    deep = activity(nested(fails_late, name="deep"), time_limit=0.02, on_error=handler)
    run = wire(activity(nested(deep), time_limit=0.01), on_error=handler, context=Work).launch()
    assert asked == ["inner"]
    assert str(run.error) == "the time limit of inner is over: no route"
    asked.clear()
    run = wire(activity(nested(deep), time_limit=60), on_error=handler, context=Work).launch()
    assert asked == ["inner/deep"]


def test_a_limit_of_one_item_is_that_item_s(wire: Wire) -> None:
    """An item whose own limit ends has failed as by any error: so many may, and the next one has all of its time."""

    def late_at_two(context: Any) -> None:
        context.done += 1
        time.sleep(0.03 if context.item == 2 else 0)

    body = activity(nested(late_at_two, late_at_two), time_limit=0.02)
    for mode in ({}, {"parallel": 2}):
        run = wire(each(body, may_fail=1, failed="lost", **mode), context=Work).launch()
        assert (run.outcome.name, run.context.lost) == ("COMPLETED", [2])


def test_an_error_before_the_limit_s_end_is_not_the_limit_s(wire: Wire) -> None:
    """Handlers that are asked in time decide as always, and the time that they take is the limit's."""
    asked: list[str] = []

    def slowly(context: Any, error: Exception) -> Decision:
        asked.append(context.step.activity)
        time.sleep(0.05)
        return Retry()

    inner = nested(activity(broken, on_error=Asking(slowly)), on_error=Asking(slowly))
    run = wire(activity(inner, time_limit=0.04), context=Work).launch()
    assert asked == ["inner/broken"]
    assert str(run.error) == "the time limit of inner is over: inner/broken did not begin"
