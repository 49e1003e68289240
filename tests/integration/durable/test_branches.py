"""Branches and parallel items in durable runs: rests, retries and doubts in one of them while others go on."""

from __future__ import annotations

import threading
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
from tests.integration.durable.house import House, Ledger


class Work(ProcessContext):
    """A context that counts."""

    seed_data: int = 0
    n: int = 0
    left: int = 0
    right: int = 0
    answer: int = 0
    answers: list[int]
    items: tuple[int, ...] = (1, 2, 3, 4, 5)
    item: int = 0


def add(context: Work) -> None:
    context.n += 1


def go_left(context: Work) -> None:
    context.left += 1


def go_right(context: Work) -> None:
    context.right += 1


def hear(context: Work) -> None:
    context.answer = context.step.wait_for(f"answer {context.item}")


def split(**branches: Any) -> Any:
    return ParallelSplitProcessor(branches, context=Work, name="split")


def each(body: Any, **options: Any) -> Any:
    return ForEachProcessor("items", body, as_="item", context=Work, name="each", **options)


def sequence(*steps: Any, name: str = "inner", **options: Any) -> Any:
    return SequenceProcessor(steps, context=Work, name=name, **options)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def test_a_delay_in_one_branch(house: House) -> None:
    """One branch waits for its next attempt while the other goes on to its end; the run rests till then."""

    def twice(context: Work) -> None:
        context.left += 1
        if context.step.attempt == 1:
            raise ValueError("again")

    left = activity(twice, on_error=RetryingErrorHandler(attempts=2, delay=60.0))
    house.sequence(split(left=left, right=sequence(go_right, go_right, name="two")), add, context=Work)
    run = house.submit()
    house.work()
    assert house.state(run) == "waiting"
    assert house.trail(run) == "split/right/go-right, split/right/go-right, split/right"
    house.kit.advance(61)
    house.work()
    context = house.context(run)
    assert (context.left, context.right, context.n) == (2, 2, 1)
    assert house.trail(run).startswith("split/left/twice DONE x2, split/left, split/right/go-right")


def test_a_delay_that_ends_while_the_other_branch_works(house: House) -> None:
    """A branch whose delay is over goes on, though the other one is still busy and the run was never let go."""
    order: list[str] = []
    busy, go_on = threading.Event(), threading.Event()

    def twice(context: Work) -> None:
        order.append(f"left {context.step.attempt}")
        if context.step.attempt == 1:
            busy.wait(20)
            raise ValueError("again")
        go_on.set()

    def right(context: Work) -> None:
        busy.set()
        go_on.wait(20)
        order.append("right")

    left = activity(twice, on_error=RetryingErrorHandler(attempts=2, delay=0.05))
    house.sequence(split(left=left, right=right), context=Work)
    run = house.submit()
    house.worker(threads=2)
    assert house.wait(run).state == "completed"
    assert order == ["left 1", "left 2", "right"]


def test_a_delay_in_one_branch_and_a_wait_in_the_other(house: House) -> None:
    """One branch waits for its next attempt, the other one for a signal; either may come first."""

    def twice(context: Work) -> None:
        context.left += 1
        if context.step.attempt == 1:
            raise ValueError("again")

    left = activity(twice, on_error=RetryingErrorHandler(attempts=2, delay=60.0))
    house.sequence(split(left=left, right=hear), context=Work)
    first, second = house.submit(group="first"), house.submit(group="second")
    house.work()
    house.client.signal(first, "answer 0", 1)
    house.work()
    assert house.trail(first) == "split/right/hear, split/right"
    house.kit.advance(61)
    house.work()
    assert [house.state(first), house.state(second)] == ["completed", "waiting"]
    house.client.signal(second, "answer 0", 2)
    house.work()
    assert house.state(second) == "completed"
    for run, answer in ((first, 1), (second, 2)):
        context = house.context(run)
        assert (context.left, context.answer) == (2, answer)


def test_items_that_wait(house: House) -> None:
    """Parallel items wait for a signal each; no more of them are under way than may be, and results are in order."""
    house.sequence(each([go_left, hear], parallel=2, collect={"answers": "answer"}), context=Work)
    run = house.submit()
    house.work()
    for item in (5, 4, 3, 2, 1):  # those of items that have not begun wait for them
        assert house.state(run) == "waiting"
        house.client.signal(run, f"answer {item}", item * 10)
        house.work()
    assert house.state(run) == "completed"
    assert house.context(run).answers == [10, 20, 30, 40, 50]


def test_items_in_order_that_wait(house: House) -> None:
    """Items that run one after the other wait one after the other; a signal that comes early waits for its item."""
    house.sequence(each(hear, collect={"answers": "answer"}), context=Work)
    run = house.submit()
    for item in (2, 4, 5):
        house.client.signal(run, f"answer {item}", item * 10)
    house.work()
    for item in (1, 3):
        assert house.state(run) == "waiting"
        house.client.signal(run, f"answer {item}", item * 10)
        house.work()
    assert house.context(run).answers == [10, 20, 30, 40, 50]


def test_a_split_in_a_split(house: House) -> None:
    """Branches of branches wait and join; each is told apart in the trail."""
    inner: Any = ParallelSplitProcessor({"a": hear, "b": [go_left, go_left]}, context=Work, name="deep")
    house.sequence(split(left=inner, right=go_right), add, context=Work)
    run = house.submit()
    house.work()
    assert house.state(run) == "waiting"
    house.client.signal(run, "answer 0", 5)
    house.work()
    context = house.context(run)
    assert (context.answer, context.left, context.right, context.n) == (5, 2, 1, 1)
    assert house.trail(run) == (
        "split/left/a/hear, split/left/a, split/left/b/go-left, split/left/b/go-left, split/left/b, split/left,"
        " split/right/go-right, split/right, split, add"
    )


def test_a_retry_of_one_branch(house: House, ledger: Ledger) -> None:
    """An operator's retry of a run that failed in one branch repeats that branch's step, and nothing that was done."""
    broken = [True]

    def left(context: Work) -> None:
        ledger.note(context, "left")
        context.left += 1

    def flaky(context: Work) -> None:
        ledger.note(context, "flaky")
        if broken[0]:
            raise ValueError("broken")
        context.left += 1

    def right(context: Work) -> None:
        ledger.note(context, "right")
        context.right += 1

    house.sequence(add, split(left=sequence(left, flaky), right=right), add, context=Work)
    run = house.submit()
    house.work(threads=1)
    assert house.state(run) == "failed"
    broken[0] = False
    assert house.client.retry(run)
    house.work()
    assert house.state(run) == "completed"
    assert sorted(ledger.whats) == ["flaky", "flaky", "left", "right"]
    context = house.context(run)
    assert (context.n, context.left, context.right) == (2, 2, 1)


def test_a_failing_join(house: House) -> None:
    """Two branches that change one field differently fail the split, whose handler is asked, in durable runs, too."""
    house.sequence(activity(split(left=add, right=[add, add]), on_error=CONTINUE), add, context=Work)
    run = house.submit()
    house.work()
    assert house.state(run) == "completed"
    assert house.trail(run).endswith("split HANDLED, add")
    assert house.context(run).n == 1


def test_a_context_that_cannot_be_forked(house: House) -> None:
    """A context that cannot be forked fails its branch, as inline; it does not suspend the run."""

    class Stubborn(Work):
        def fork(self, **options: Any) -> Any:
            raise TypeError("never")

    branches: Any = ParallelSplitProcessor({"left": add, "right": add}, context=Stubborn, name="split")
    house.sequence(activity(branches, on_error=CONTINUE), add, context=Stubborn)
    run = house.submit()
    house.work()
    assert (house.state(run), house.trail(run)) == ("completed", "split HANDLED, add")


def test_an_error_of_a_branch_is_told_in_the_group(house: House) -> None:
    """The record of a split's failure has those of its branches."""

    def fail(context: Work) -> None:
        raise ValueError("left is broken")

    house.sequence(split(left=fail, right=go_right), context=Work)
    run = house.submit()
    house.work()
    status = house.client.status(run)
    assert status.error is not None
    assert status.error["type"] == "ExceptionGroup"
    assert [one["message"] for one in status.error["errors"]] == ["left is broken"]
    error = house.run(run).error
    assert isinstance(error, ExceptionGroup)


def test_a_doubt_in_a_branch(house: House, ledger: Ledger) -> None:
    """A step in doubt in one branch suspends the run; once it is answered, the branches go on from where they were."""
    entered, release = threading.Event(), threading.Event()

    def risky(context: Work) -> None:
        ledger.note(context, "risky")
        if len([what for what in ledger.whats if what == "risky"]) == 1:
            entered.set()
            release.wait(20)
        context.left += 1

    house.sequence(split(left=activity(risky, on_lost="incident"), right=sequence(go_right, hear)), add, context=Work)
    run = house.submit()
    lost = house.worker(lease=30.0, tick=1000.0)
    entered.wait(20)
    house.eventually(lambda: house.client.history(run)[-1].name == "split/right/hear")
    house.outlast(lost)
    house.worker()
    status = house.wait(run)
    assert (status.state, "in doubt" in status.reason) == ("suspended", True)
    release.set()
    assert house.client.retry(run, done=True)
    house.until(run, "waiting")
    house.client.signal(run, "answer 0", 7)
    assert house.wait(run).state == "completed"
    context = house.context(run)
    assert (context.left, context.right, context.answer, context.n) == (0, 1, 7, 1)
    assert ledger.whats == ["risky"]
    assert lost.stop(20)


def test_branches_stop_the_run(house: House) -> None:
    """A branch that asks to stop stops the run after the join, with its reason."""

    def stop(context: Work) -> None:
        context.stop_process("enough")

    house.sequence(split(left=stop, right=go_right), add, context=Work)
    run = house.submit()
    house.work()
    status = house.client.status(run)
    assert (status.state, status.outcome, status.reason) == ("completed", "stopped", "enough")
    assert (house.context(run).right, house.context(run).n) == (1, 0)


def test_many_items(house: House) -> None:
    """Two hundred parallel items, sixteen at once, on two workers' threads: each is done once, results in order."""

    def fill(context: Work) -> None:
        context.items = tuple(range(200))

    def double(context: Work) -> None:
        context.answer = context.item * 2

    house.sequence(fill, each([double], parallel=16, collect={"answers": "answer"}), context=Work)
    run = house.submit()
    house.work(threads=8)
    assert house.state(run) == "completed"
    assert house.context(run).answers == [i * 2 for i in range(200)]


@pytest.mark.parametrize("what", ["a split", "parallel items", "a split in a sequence", "a split in a branch"])
@pytest.mark.parametrize("delay", [0.01, 60.0])
def test_a_split_is_tried_again_later(house: House, what: str, delay: float) -> None:
    """Parallel parts that failed are tried again as a whole after a delay, by this worker or another one."""
    began: list[str] = []
    go_on = threading.Event()

    def fail(context: Work) -> None:
        if context.item < 2:
            began.append(context.step.idempotency_key)
            if len(began) < 3:
                raise ValueError("again")
        go_on.set()

    def busy(context: Work) -> None:
        go_on.wait(20 if delay < 1 else 0)
        context.right += 1

    later = RetryingErrorHandler(attempts=3, delay=delay)
    parts: Any = {
        "a split": lambda: activity(split(a=fail, b=go_left), on_error=later),
        "parallel items": lambda: activity(each(fail, parallel=3), on_error=later),
        "a split in a sequence": lambda: activity(sequence(split(a=fail, b=go_left)), on_error=later),
        "a split in a branch": lambda: ParallelSplitProcessor(
            {"deep": sequence(activity(split(a=fail, b=go_left), on_error=later), name="deep"), "busy": busy},
            context=Work,
            name="outer",
        ),
    }[what]()
    house.sequence(add, parts, add, context=Work)
    run = house.submit()
    house.worker()
    if delay > 1:
        for attempt in (1, 2):
            house.eventually(lambda: len(began) >= attempt and house.state(run) == "waiting")  # noqa: B023
            house.kit.advance(61)
    assert house.wait(run).state == "completed"
    assert house.context(run).n == 2
    assert len(began) == 3
