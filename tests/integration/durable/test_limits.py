"""The time limit of a step that has others inside: it counts from when that began, whoever goes on with the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iocflow import CONTINUE, ParallelSplitProcessor, ProcessContext, RetryingErrorHandler, SequenceProcessor, activity
from tests.integration.durable.house import House

LATER = RetryingErrorHandler(attempts=9, delay=60.0)


class Work(ProcessContext):
    """A context that counts."""

    seed_data: int | None
    n: int = 0
    cleaned: int = 0


class Failing:
    """An activity that fails, and notes what was left of the time."""

    def __init__(self) -> None:
        self.left: list[float] = []
        self.mended = False

    def __call__(self, context: Work) -> None:
        left = context.step.remaining()
        assert left is not None
        self.left.append(left)
        if not self.mended:
            raise ValueError("no")


@pytest.fixture
def failing() -> Failing:
    return Failing()


def add(context: Work) -> None:
    context.n += 1


def clean(context: Work) -> None:
    context.cleaned += 1


def wait(context: Work) -> None:
    context.step.wait_for("approved")


def sequence(*steps: Any, name: str = "inner", **options: Any) -> Any:
    return SequenceProcessor(steps, context=Work, name=name, **options)


def split(step: Any) -> Any:
    return ParallelSplitProcessor({"a": step, "b": add}, context=Work, name="inner")


AROUND: dict[str, Callable[[Any], Any]] = {
    "a sequence": lambda step: sequence(step, finally_=[clean]),
    "behind a step": lambda step: sequence(add, step, finally_=[clean]),
    "deep inside": lambda step: sequence(sequence(add, step, name="deep", finally_=[clean])),
    "a split": split,
    "a sequence of a split": lambda step: sequence(add, split(step)),
    "a split of a sequence": lambda step: split(sequence(add, step, name="a")),
}
"""What has a time limit, around a step."""


@pytest.mark.parametrize("what", AROUND)
def test_a_limit_goes_on_while_a_run_sleeps(house: House, failing: Failing, what: str) -> None:
    """A run that sleeps between attempts wakes with what is left of the limits around it, and at their end at last."""
    step = activity(failing, name="failing", on_error=LATER)
    house.sequence(add, activity(AROUND[what](step), name="limited", time_limit=150.0, on_error=CONTINUE), context=Work)
    run = house.submit()
    for seconds in (61, 61, 29):
        house.work()
        assert house.state(run) == "waiting"
        house.kit.advance(seconds)
    house.work()
    assert house.state(run) == "completed"
    first, second, third = failing.left
    assert 140 < first <= 150
    assert first - second >= 61
    assert second - third >= 61
    (row,) = [row for row in house.client.history(run) if (row.kind, row.name) == ("step", "limited")]
    assert row.error is not None
    assert (row.outcome, row.error["type"]) == ("HANDLED", "TimeoutError")
    assert "time limit of limited is over" in row.error["message"]


@pytest.mark.parametrize("what", AROUND)
def test_a_limit_ends_a_wait(house: House, what: str) -> None:
    """A run that waits for a signal is woken when a time limit around the wait is over; that ends it."""
    limited = activity(AROUND[what](wait), name="limited", time_limit=150.0, on_error=CONTINUE)
    house.sequence(limited, context=Work)
    run = house.submit()
    house.work()
    assert house.state(run) == "waiting"
    house.kit.advance(100)
    house.work()
    assert house.state(run) == "waiting"
    house.kit.advance(51)
    house.work()
    assert house.state(run) == "completed"
    assert house.trail(run).endswith("limited HANDLED")


@pytest.mark.parametrize("what", AROUND)
def test_a_limit_goes_on_with_another_worker(house: House, failing: Failing, what: str) -> None:
    """When a worker dies, the one that takes over does not give what is under way more time."""
    step = activity(failing, name="failing", on_error=LATER)
    house.sequence(activity(AROUND[what](step), name="limited", time_limit=150.0, on_error=CONTINUE), context=Work)
    run = house.submit()
    dying = house.worker(lease=30.0, tick=1000.0)
    house.until(run, "waiting")
    house.outlast(dying)
    house.kit.advance(60)
    house.worker()
    first, second = house.eventually(lambda: failing.left if len(failing.left) > 1 else None)
    assert first - second >= 60


def test_each_attempt_has_the_whole_limit(house: House, failing: Failing) -> None:
    """When the step with the limit is tried again as a whole, also later, it has all of its time again."""
    failing_inside = activity(sequence(add, activity(failing, name="failing")), time_limit=150.0, on_error=LATER)
    house.sequence(failing_inside, context=Work)
    house.submit()
    for _ in range(3):
        house.work()
        house.kit.advance(61)
    assert len(failing.left) == 3
    assert all(140 < left <= 150 for left in failing.left)


@pytest.mark.parametrize("what", AROUND)
def test_a_limit_that_is_over_begins_anew_with_a_retry(house: House, failing: Failing, what: str) -> None:
    """An operator's retry gives a step whose time limit was over all of the time again; what is left goes on else."""
    step = activity(failing, name="failing", on_error=LATER)
    house.sequence(activity(AROUND[what](step), name="limited", time_limit=100.0), context=Work)
    run = house.submit()
    house.work()
    house.kit.advance(101)
    house.work()
    assert house.state(run) == "failed"
    house.kit.advance(100)
    failing.mended = True
    assert house.client.retry(run)
    house.work()
    assert house.state(run) == "completed"
    assert failing.left[-1] > 90
