"""The bound on attempts, of processors, branches and items."""

from __future__ import annotations

from typing import Any

from behaviour.parts import Asking, Box, BrokenError, add, fail, fill, go_left
from unit.core.conftest import Wire
from unit.core.kit import each, inner, nothing

from iocflow import (
    CONTINUE,
    FAIL,
    ExclusiveChoiceProcessor,
    Outcome,
    ParallelSplitProcessor,
    Retry,
    activity,
)


def test_the_bound_is_a_thousand_by_default() -> None:
    """A loop ends after a thousand activities with StepLimitError, and says what to look at."""
    choice = ExclusiveChoiceProcessor({"a": "b", "b": "a"}, {"a": add, "b": add}, context=Box, name="main")
    run = choice.launch()
    assert len(run.steps) == run.context.n == 1_000
    assert type(run.error).__name__ == "StepLimitError"
    assert str(run.error) == "a: more than 1000 attempts; see max_steps"


def test_attempts_count_against_the_bound(wire: Wire) -> None:
    """Retries are attempts: a retry for ever ends, none of that processor's handlers is asked about the bound."""
    asked: list[str] = []

    def again(context: Any, error: Exception) -> Any:
        asked.append(type(error).__name__)
        return Retry()

    run = wire(add, fail, on_error=Asking(again), max_steps=10).launch()
    assert asked == ["BrokenError"] * 9
    assert (run.steps[-1].attempts, type(run.error).__name__) == (9, "StepLimitError")


def test_handlers_outside_are_asked_about_a_bound_inside(wire: Wire) -> None:
    """For the outer processor it is an error of that activity like others."""
    loop = ExclusiveChoiceProcessor({"a": "a"}, {"a": add}, context=Box, name="loop", max_steps=3, on_error=FAIL)
    asked: list[str] = []

    def ask(context: Any, error: Exception) -> Any:
        asked.append(type(error).__name__)
        return CONTINUE

    run = wire(loop, go_left, on_error=Asking(ask)).do_activities()
    assert asked == ["StepLimitError"]
    assert (run.context.n, run.context.left) == (3, 1)


def test_each_item_and_branch_has_its_own_bound(wire: Wire) -> None:
    """More items than the bound are fine; a composite counts as one."""

    def many(context: Box) -> None:
        context.items = tuple(range(20))

    for options in ({}, {"parallel": 4}):
        run = wire(many, each(nothing, max_steps=1, **options), max_steps=2).do_activities()
        assert run.outcome is Outcome.COMPLETED
    branches = {name: [nothing, nothing] for name in "abcde"}
    one = ParallelSplitProcessor(branches, context=Box, max_steps=1)
    assert wire(one, inner(nothing, nothing, nothing), max_steps=2).do_activities().outcome is Outcome.COMPLETED


def test_an_item_that_is_tried_too_often_fails_alone(wire: Wire) -> None:
    """The bound of an item is its own: the others go on, as far as items may fail."""

    def refuse(context: Box) -> None:
        if context.item == 2:
            raise BrokenError("two")

    for options in ({}, {"parallel": 2}):
        body = activity(refuse, on_error=Asking(lambda context, error: Retry()))
        run = wire(fill, each(body, max_steps=4, may_fail=1, failed="lost", **options)).do_activities()
        assert run.context.lost == [2]
        assert [step.attempts for step in run.steps if step.activity == "each/refuse"] == [1, 4, 1]
