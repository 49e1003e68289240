"""Where runs stand: what waiting ones wait for, in which thread of control, and with what poisonous ones killed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from iocflow import ParallelSplitProcessor, ProcessContext, RetryingErrorHandler, SequenceProcessor, activity
from iocflow.store.contract import RunStatus
from tests.integration.durable.house import House

LEASE = 30.0
LATER = RetryingErrorHandler(attempts=3, delay=100.0)


class Work(ProcessContext):
    """A context that counts."""

    seed_data: int | None
    n: int = 0


class Deadly:
    """An activity that does not come back while the test lasts: its worker is taken for dead."""

    def __init__(self) -> None:
        self.entered, self.over = threading.Event(), threading.Event()

    def __call__(self, context: Work) -> None:
        self.entered.set()
        self.over.wait(20)


@pytest.fixture
def deadly() -> Iterator[Deadly]:
    deadly = Deadly()
    yield deadly
    deadly.over.set()


def add(context: Work) -> None:
    context.n += 1


def wait(context: Work) -> None:
    context.step.wait_for("approved")


def wait_shortly(context: Work) -> None:
    context.step.wait_for("answer", timeout=50.0)


def fail(context: Work) -> None:
    raise ValueError("no")


def sequence(*steps: Any, name: str) -> Any:
    return SequenceProcessor(steps, context=Work, name=name)


def split(name: str = "split", **branches: Any) -> Any:
    return ParallelSplitProcessor(branches, context=Work, name=name)


def waits(house: House, run: int) -> list[tuple[str, str, str, int | None]]:
    """Return what a run waits for, with the seconds till then, rounded up to tens; the lists say the same."""
    status, now = house.client.status(run), house.store.now()
    (listed,) = [one for one in house.store.runs() if one.id == run]
    assert (listed.waits, listed.activity) == (status.waits, status.activity)
    assert status.activity == ", ".join(dict.fromkeys(one.activity for one in status.waits))
    tens = [None if one.until is None else -int((now - one.until) // 10) * 10 for one in status.waits]
    return [(one.thread, one.activity, one.signal, until) for one, until in zip(status.waits, tens, strict=True)]


def poisoned(house: House, run: int, seen: Callable[[], Any], threads: int = 1) -> RunStatus:
    """Return a run that killed its worker, once it is suspended for that; `seen` says when it was up to that."""
    worker = house.worker(lease=LEASE, tick=1000.0, threads=threads)  # one that hangs takes nothing up any more
    house.eventually(lambda: seen() and not worker._pending)
    with worker._lead:
        house.kit.advance(LEASE + 1)
        house.eventually(lambda: house.store.sweep(deliveries=1).poisoned == 1)  # not while its own sweep is at it
    return house.client.status(run)


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([wait], ("", "wait", "approved", None)),
        ([add, wait], ("", "wait", "approved", None)),
        ([add, wait_shortly, add], ("", "wait-shortly", "answer", 50)),
        ([add, activity(fail, on_error=LATER)], ("", "fail", "", 100)),
        ([sequence(add, wait, name="inner")], ("", "inner/wait", "approved", None)),
        ([activity(sequence(add, wait, name="inner"), time_limit=70.0)], ("", "inner/wait", "approved", 70)),
        ([activity(sequence(add, fail, name="inner"), on_error=LATER)], ("", "inner/add", "", 100)),
    ],
)
def test_a_run_waits_at_one_place(house: House, steps: list[Any], found: tuple[Any, ...]) -> None:
    """A run that waits for a signal, until some time or not, or for its next attempt, says which, and where."""
    house.sequence(*steps, context=Work)
    run = house.submit()
    house.work()
    assert house.state(run) == "waiting"
    assert waits(house, run) == [found]
    house.kit.advance(20)
    assert [row[3] for row in waits(house, run)] == [found[3] and found[3] - 20]


def test_a_run_that_goes_on_waits_for_nothing(house: House) -> None:
    """What a run waited for is not told of any more when it was answered, nor when the run is over."""
    house.sequence(wait, wait_shortly, context=Work)
    run = house.submit()
    house.work()
    house.client.signal(run, "approved")
    assert (house.state(run), house.client.status(run).waits) == ("queued", ())
    house.work()
    assert waits(house, run) == [("", "wait-shortly", "answer", 50)]
    house.client.cancel(run)
    house.work()
    assert (house.state(run), house.client.status(run).waits) == ("cancelled", ())


def test_each_run_stands_at_its_own_place(house: House) -> None:
    """Of several runs in one list each waits for its own, though they share a plan; others have none."""

    def some(context: Work) -> None:
        context.step.wait_for(f"answer {context.seed_data}")

    house.sequence(add, some, context=Work)
    house.sequence(add, context=Work, name="other")
    runs = [house.submit(seed=i) for i in range(3)]
    house.submit("other")
    house.work()
    house.submit("other")
    found = [[one.signal for one in status.waits] for status in house.store.runs()]
    assert found == [["answer 0"], ["answer 1"], ["answer 2"], [], []]
    assert [status.id for status in house.store.runs(states=["waiting"]) if status.waits] == runs


def test_branches_wait_each_at_its_own_place(house: House) -> None:
    """Of branches, also of those of branches, each tells what it waits for; one that is over, or forked, does not."""
    inner = split("inner", a=wait_shortly, b=sequence(add, activity(fail, on_error=LATER), name="b"), c=add)
    house.sequence(add, split(left=wait, right=add, deep=sequence(add, inner, name="deep")), context=Work)
    run = house.submit()
    house.work()
    assert sorted(waits(house, run)) == [
        ("0", "split/left/wait", "approved", None),
        ("2.0", "split/deep/inner/a/wait-shortly", "answer", 50),
        ("2.1", "split/deep/inner/b/fail", "", 100),
    ]
    house.client.signal(run, "approved")
    house.work()
    assert [row[0] for row in sorted(waits(house, run))] == ["2.0", "2.1"]
    house.kit.advance(51)
    house.work()
    assert [row[0] for row in waits(house, run)] == ["2.1"]


def test_branches_of_earlier_forks_do_not_wait(house: House) -> None:
    """What an earlier split, or an earlier attempt of it, left behind is not where a run stands."""
    first = activity(split("first", a=wait_shortly, b=add), on_error=LATER)
    house.sequence(first, add, split("second", a=wait, b=add), context=Work)
    run = house.submit()
    house.work()
    assert waits(house, run) == [("0", "first/a/wait-shortly", "answer", 50)]
    house.kit.advance(51)
    house.work()
    assert waits(house, run) == [("", "first", "", 100)]  # the whole is tried again later
    house.kit.advance(101)
    house.work()
    assert waits(house, run) == [("0", "first/a/wait-shortly", "answer", 50)]
    house.client.signal(run, "answer", 1)
    house.work()
    assert waits(house, run) == [("0", "second/a/wait", "approved", None)]


@pytest.mark.parametrize("inside", [False, True])
def test_poison_is_named(house: House, deadly: Deadly, inside: bool) -> None:
    """A run that killed its workers tells with which activity, and that it waits for nothing."""
    step = activity(deadly, name="deadly")
    house.sequence(add, sequence(add, step, name="inner") if inside else step, context=Work)
    run = house.submit()
    status = poisoned(house, run, deadly.entered.is_set)
    assert (status.state, status.reason, status.waits) == ("suspended", "poison", ())
    assert status.activity == ("inner/deadly" if inside else "deadly")
    (listed,) = house.store.runs(states=["suspended"])
    assert listed.activity == status.activity


def test_poison_before_the_first_record(house: House, deadly: Deadly) -> None:
    """A run that killed its worker in its first step names that, also when it killed another one after a retry."""
    house.sequence(activity(deadly, name="deadly"), context=Work)
    run = house.submit()
    status = poisoned(house, run, deadly.entered.is_set)
    assert (status.reason, status.activity) == ("poison", "deadly")
    assert house.client.retry(run)
    deadly.entered.clear()
    status = poisoned(house, run, deadly.entered.is_set)  # now there is a record, of the start alone
    assert (status.reason, status.activity) == ("poison", "deadly")


def test_poison_in_branches(house: House, deadly: Deadly) -> None:
    """Of a poisonous run with branches those are named that were under way or waited, and none that is over."""
    house.sequence(
        split(left=sequence(add, activity(deadly, name="deadly"), name="left"), right=add, wait=wait), context=Work
    )
    run = house.submit()
    status = poisoned(house, run, lambda: deadly.entered.is_set() and "split/right/add" in house.trail(run), threads=4)
    assert (status.reason, status.waits) == ("poison", ())
    assert sorted(status.activity.split(", ")) == ["split/left/deadly", "split/wait/wait"]


def test_another_suspension_is_told_as_it_is(house: House) -> None:
    """A run that is suspended for another reason names the activity that failed, not one that it would go on with."""
    house.sequence(add, fail, add, context=Work, durable={"on_failure": "incident"})
    run = house.submit()
    house.work()
    status = house.client.status(run)
    assert (status.state, status.activity, status.waits) == ("suspended", "fail", ())
