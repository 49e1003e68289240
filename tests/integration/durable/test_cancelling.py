"""Cancelling: at once where nothing began, else after every `finally`, in whatever state the run is."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from iocflow import (
    CONTINUE,
    ForEachProcessor,
    ParallelSplitProcessor,
    ProcessContext,
    RetryingErrorHandler,
    SequenceProcessor,
    activity,
)
from iocflow.run import Outcome
from tests.integration.durable.house import House


class Work(ProcessContext):
    """A context that counts."""

    seed_data: int = 0
    n: int = 0
    right: int = 0
    cleaned: int = 0
    outer: int = 0
    items: tuple[int, ...] = (1, 2, 3, 4)
    item: int = 0


def add(context: Work) -> None:
    context.n += 1


def clean(context: Work) -> None:
    context.cleaned += 1


def tidy(context: Work) -> None:
    context.outer += 1


def wait(context: Work) -> None:
    context.step.wait_for("approved")


class Gate:
    """An activity that waits until it is let go, or is told to end."""

    def __init__(self) -> None:
        self.entered, self.go_on = threading.Event(), threading.Event()
        self.cancelled: list[bool] = []

    def __call__(self, context: Work) -> None:
        self.entered.set()
        end = time.monotonic() + 20
        while not (self.go_on.is_set() or context.step.cancelled) and time.monotonic() < end:
            time.sleep(0.002)
        self.cancelled.append(context.step.cancelled)
        context.n += 100


@pytest.fixture
def gate() -> Gate:
    return Gate()


def test_queued(house: House) -> None:
    """A run that was not begun is cancelled at once; no activity of it is ever run, nor a `finally`."""
    house.sequence(add, context=Work, finally_=[clean])
    run, other = house.submit(group="G"), house.submit(group="G")
    assert house.client.cancel(run, who="ann", why="a mistake")
    status = house.client.status(run)
    assert (status.state, status.outcome, status.reason) == ("cancelled", "cancelled", "a mistake")
    house.work()
    assert (house.trail(run), house.state(other)) == ("", "completed")
    assert not house.client.cancel(run)
    (entry,) = [entry for entry in house.client.history(run) if entry.kind == "cancel"]
    assert (entry.who, entry.why) == ("ann", "a mistake")


def test_running(house: House, gate: Gate) -> None:
    """A run that is worked on: the activity is told, its result is refused, and `finally` runs."""
    house.sequence(add, activity(gate, name="gate"), add, context=Work, finally_=[clean])
    run = house.submit()
    house.worker()
    gate.entered.wait(20)
    assert house.client.cancel(run, why="no more")
    status = house.wait(run)
    assert (status.state, status.reason) == ("cancelled", "no more")
    assert gate.cancelled == [True]
    assert house.trail(run) == "add, clean"
    assert (house.context(run).n, house.context(run).cleaned) == (1, 1)
    assert house.run(run).outcome is Outcome.INTERRUPTED


def test_running_in_the_first_step(house: House, gate: Gate) -> None:
    """A run that is in its first step has begun: its `finally` runs."""
    house.sequence(activity(gate, name="gate"), add, context=Work, finally_=[clean])
    run = house.submit(seed=3)
    house.worker()
    gate.entered.wait(20)
    assert house.client.cancel(run)
    assert house.wait(run).state == "cancelled"
    assert (house.trail(run), house.context(run).seed_data) == ("clean", 3)


def test_behind_another_run(house: House, gate: Gate) -> None:
    """A run that a worker has in hand behind another one of its group is cancelled at once, and only that."""
    house.sequence(activity(gate, name="gate"), context=Work, finally_=[clean])
    runs = [house.submit(group="G") for _ in range(3)]
    house.worker()
    gate.entered.wait(20)
    assert house.client.cancel(runs[1])
    assert house.state(runs[1]) == "cancelled"
    gate.go_on.set()
    assert house.wait_all(runs) == ["completed", "cancelled", "completed"]
    assert gate.cancelled == [False, False]
    assert house.trail(runs[1]) == ""


def test_waiting(house: House) -> None:
    """A run that waits for a signal is woken for its `finally` alone."""
    house.sequence(add, wait, add, context=Work, finally_=[clean])
    run = house.submit()
    house.work()
    assert house.state(run) == "waiting"
    assert house.client.cancel(run)
    house.work()
    assert house.state(run) == "cancelled"
    assert house.trail(run) == "add, clean"


def test_in_a_retry_delay(house: House) -> None:
    """A run that waits for its next attempt is woken for its `finally`, and its group goes on."""

    def fail(context: Work) -> None:
        if context.seed_data == 1:
            raise ValueError("no")

    retrying = RetryingErrorHandler(attempts=3, delay=3600.0)
    house.sequence(add, activity(fail, on_error=retrying), context=Work, finally_=[clean])
    run, other = house.submit(seed=1, group="G"), house.submit(seed=2, group="G")
    house.work()
    assert house.client.cancel(run)
    house.work()
    assert [house.state(run), house.state(other)] == ["cancelled", "completed"]
    assert house.trail(run) == "add, clean"


def test_suspended(house: House) -> None:
    """A suspended run is cancelled at once, and its group goes on; its `finally` ran when it failed."""

    def fail(context: Work) -> None:
        if context.seed_data == 1:
            raise ValueError("no")

    house.sequence(fail, context=Work, finally_=[clean], durable={"on_failure": "incident"})
    run, other = house.submit(seed=1, group="G"), house.submit(seed=2, group="G")
    house.work()
    assert [house.state(run), house.state(other)] == ["suspended", "queued"]
    assert house.client.cancel(run)
    assert house.state(run) == "cancelled"
    house.work()
    assert house.state(other) == "completed"
    assert house.trail(run) == "fail FAILED, clean"


def test_in_a_nesting(house: House, gate: Gate) -> None:
    """In a nesting every `finally` runs, from the inside out; no handler is asked, and nothing else runs."""
    inner: Any = SequenceProcessor([activity(gate, name="gate"), add], context=Work, name="inner", finally_=[clean])
    house.sequence(add, activity(inner, on_error=CONTINUE), add, context=Work, finally_=[tidy], on_error=CONTINUE)
    run = house.submit()
    house.worker()
    gate.entered.wait(20)
    assert house.client.cancel(run)
    assert house.wait(run).state == "cancelled"
    assert house.trail(run) == "add, inner/clean, tidy"


def test_in_a_split(house: House, gate: Gate) -> None:
    """In a split the branches that are under way are ended with their `finally`, then the run with its own."""
    left: Any = SequenceProcessor([add, activity(gate, name="gate")], context=Work, name="left", finally_=[clean])

    def right(context: Work) -> None:
        context.right += 1

    split: Any = ParallelSplitProcessor({"left": left, "right": right}, context=Work, name="split")
    house.sequence(split, add, context=Work, finally_=[tidy])
    run = house.submit()
    house.worker()
    gate.entered.wait(20)
    house.eventually(lambda: "right" in house.trail(run))
    assert house.client.cancel(run)
    assert house.wait(run).state == "cancelled"
    assert house.trail(run) == "split/left/add, split/left/clean, split/right/right, split/right, tidy"
    context = house.context(run)
    assert (context.n, context.right, context.cleaned, context.outer) == (0, 0, 0, 1)


def test_waiting_in_a_split(house: House) -> None:
    """A branch that waits is ended, too."""
    left: Any = SequenceProcessor([add, wait], context=Work, name="left", finally_=[clean])
    split: Any = ParallelSplitProcessor({"left": left, "right": wait}, context=Work, name="split")
    house.sequence(split, add, context=Work, finally_=[tidy])
    run = house.submit()
    house.work()
    assert house.state(run) == "waiting"
    assert house.client.cancel(run)
    house.work()
    assert house.state(run) == "cancelled"
    assert house.trail(run) == "split/left/add, split/left/clean, tidy"


def test_in_a_parallel_for_each(house: House, gate: Gate) -> None:
    """Of parallel items only those that may be under way are ended with their `finally`; the others never begin."""

    def each(context: Work) -> None:
        if context.item > 1:
            gate(context)

    body: Any = SequenceProcessor([each], context=Work, name="body", finally_=[clean])
    loop: Any = ForEachProcessor("items", body, as_="item", parallel=2, context=Work, name="each")
    house.sequence(loop, context=Work, finally_=[tidy])
    run = house.submit()
    house.worker(threads=4)
    house.eventually(lambda: "each/body," in house.trail(run) + ",")
    gate.entered.wait(20)
    assert house.client.cancel(run)
    assert house.wait(run).state == "cancelled"
    assert house.trail(run).count("each/body/clean") in (2, 3)
    assert house.trail(run).endswith("tidy")


def test_a_finally_that_is_under_way_goes_on(house: House) -> None:
    """A run that is cancelled in its `finally` still does all of it: what was under way is given up, the rest runs."""
    entered, go_on = threading.Event(), threading.Event()

    def slow(context: Work) -> None:
        entered.set()
        go_on.wait(20)

    house.sequence(add, context=Work, finally_=[slow, clean])
    run = house.submit()
    house.worker()
    entered.wait(20)
    assert house.client.cancel(run)
    go_on.set()
    assert house.wait(run).state == "cancelled"
    assert house.context(run).cleaned == 1


def test_cancelled_twice(house: House, gate: Gate) -> None:
    """A second request while the first is pending changes nothing: `finally` runs once."""
    house.sequence(add, activity(gate, name="gate"), context=Work, finally_=[clean])
    run = house.submit()
    house.worker()
    gate.entered.wait(20)
    assert house.client.cancel(run, why="first")
    house.client.cancel(run, why="second")
    assert house.wait(run).reason == "first"
    assert house.context(run).cleaned == 1


def test_a_step_that_is_given_up_does_not_begin_again(house: House, gate: Gate) -> None:
    """Unwinding a step with `on_lost: incident` tells of no other beginning of it."""
    house.sequence(activity(gate, name="gate", on_lost="incident"), add, context=Work, finally_=[clean])
    run = house.submit()
    house.worker()
    gate.entered.wait(20)
    assert house.client.cancel(run)
    assert house.wait(run).state == "cancelled"
    assert house.trail(run) == "clean"
    assert house.kinds(run).count("begun") == 1


def test_unwinding_in_a_split_goes_on_elsewhere(house: House) -> None:
    """When the worker that unwinds branches dies in the middle, another one unwinds the rest, and the run itself."""
    entered, go_on = threading.Event(), threading.Event()

    def stuck(context: Work) -> None:
        if not entered.is_set():
            entered.set()
            go_on.wait(20)

    left: Any = SequenceProcessor([wait], context=Work, name="left", finally_=[clean])
    right: Any = SequenceProcessor([wait], context=Work, name="right", finally_=[stuck])
    split: Any = ParallelSplitProcessor({"left": left, "right": right}, context=Work, name="split")
    house.sequence(split, add, context=Work, finally_=[tidy])
    run = house.submit()
    house.work()
    assert house.client.cancel(run)
    dying = house.worker(lease=30.0, tick=1000.0)
    entered.wait(20)
    house.eventually(lambda: "split/left/clean" in house.trail(run))
    house.outlast(dying)
    house.worker()
    assert house.wait(run).state == "cancelled"
    assert house.trail(run) == "split/left/clean, split/right/stuck, tidy"
    go_on.set()
