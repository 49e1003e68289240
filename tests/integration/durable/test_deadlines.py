"""Deadlines, whoever notices first that one has passed: the worker, between or in steps, or the store."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from iocflow import CONTINUE, ParallelSplitProcessor, ProcessContext, SequenceProcessor, activity
from iocflow.durable.worker.held import Held
from iocflow.durable.worker.worker import Worker
from tests.integration.durable.house import House

SOON = 1.0
"""Seconds until a deadline that is to pass while a test looks on; a run has begun by then."""

FIRST = pytest.mark.parametrize("tick", [1000.0, 0.005], ids=["worker-first", "store-first"])
"""With a long tick nobody sweeps, so that the worker notices first; with a short one it is the store."""


class Work(ProcessContext):
    """A context that counts."""

    seed_data: int | None
    n: int = 0
    right: int = 0
    cleaned: int = 0


def add(context: Work) -> None:
    context.n += 1


def clean(context: Work) -> None:
    context.cleaned += 1


async def hang(context: Work) -> None:
    context.n += 100
    await asyncio.sleep(20)


def fail_late(context: Work) -> None:
    context.n += 100
    while not context.step.cancelled:
        time.sleep(0.002)
    raise ValueError("too late")


def nested(*steps: Any, name: str = "inner", **options: Any) -> Any:
    return SequenceProcessor(steps, context=Work, name=name, **options)


def journal(house: House, run: int) -> list[tuple[str, str, str]]:
    """Return the journal of a run in short, but for mere places; what was dropped is told at any time."""
    rows = [(row.kind, row.name, row.outcome) for row in house.client.history(run) if row.kind != "mark"]
    return [row for row in rows if row[0] != "fenced_out"] + [row for row in rows if row[0] == "fenced_out"]


def past(held: Held) -> bool:
    """Return whether a run's deadline has passed, whatever little the worker's clock was off."""
    return held.claimed.deadline is not None and held.claimed.deadline + 0.5 < held.clock.now()


def timed_out(house: House, run: int) -> list[tuple[str, str, str]]:
    """Return the journal of a run that was timed out."""
    status = house.wait(run)
    assert (status.state, status.outcome, status.reason) == ("failed", "timeout", "the deadline has passed")
    return journal(house, run)


BETWEEN: dict[str, tuple[Callable[[], tuple[Any, ...]], dict[str, Any], list[str]]] = {
    "plain": (lambda: (add, add), {}, ["add"]),
    "finally": (lambda: (add, add), {"finally_": [clean]}, ["add", "clean"]),
    "handled": (lambda: (add, add), {"finally_": [clean], "on_error": CONTINUE}, ["add", "clean"]),
    "nested": (
        lambda: (activity(nested(add, add, finally_=[clean]), on_error=CONTINUE), add),
        {"finally_": [add]},
        ["inner/add", "inner/clean", "add"],
    ),
    "transactional": (
        lambda: (add, activity(add, mode="transactional", time_limit=5.0)),
        {"finally_": [clean]},
        ["add", "clean"],
    ),
    "in doubt": (lambda: (add, activity(add, on_lost="incident")), {"finally_": [clean]}, ["add", "clean"]),
}
"""What a run does whose deadline passes between its first two steps, and what it then has done."""


@FIRST
@pytest.mark.parametrize("on_failure", ["failed", "incident"])
@pytest.mark.parametrize("what", BETWEEN)
def test_a_deadline_between_two_steps(
    house: House, what: str, on_failure: str, tick: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No step begins after the deadline: the run is timed out, and nothing in its journal says who noticed."""
    make, options, done = BETWEEN[what]
    house.sequence(*make(), context=Work, durable={"on_failure": on_failure}, **options)
    run = house.submit(deadline=SOON)
    do, slept = Worker._do, threading.Event()

    def dawdle(worker: Worker, one: Any) -> None:
        if house.trail(run) and not slept.is_set():
            slept.set()
            house.eventually(lambda: past(one.held) if tick > 1 else one.held.revoked)
        do(worker, one)

    monkeypatch.setattr(Worker, "_do", dawdle)
    house.worker(tick=tick)
    steps = [("step", name, "DONE") for name in done]
    assert timed_out(house, run) == [
        ("submitted", "job", ""), steps[0], ("timeout", "", ""), *steps[1:], ("ended", "", "timeout"),
    ]  # fmt: skip


IN: dict[str, tuple[Callable[[], tuple[Any, ...]], list[str], str]] = {
    "async": (lambda: (add, hang, add), ["add"], "hang"),
    "the first": (lambda: (hang, add), [], "hang"),
    "an error": (lambda: (add, fail_late, add), ["add"], "fail-late"),
    "an error that would be handled": (
        lambda: (add, activity(fail_late, on_error=CONTINUE), add),
        ["add"],
        "fail-late",
    ),
    "transactional": (
        lambda: (add, activity(fail_late, mode="transactional", time_limit=5.0), add),
        ["add"],
        "fail-late",
    ),
    "nested": (lambda: (activity(nested(add, hang), on_error=CONTINUE), add), ["inner/add"], "inner/hang, inner"),
}
"""What a run does in one of whose steps its deadline passes, what it has done by then, and what it did in vain."""


@FIRST
@pytest.mark.parametrize("finally_", [[], [clean]])
@pytest.mark.parametrize("what", IN)
def test_a_deadline_in_a_step(house: House, what: str, finally_: list[Any], tick: float) -> None:
    """A step that the deadline cuts off is told of as dropped, whoever noticed; `finally` is run, and told of."""
    make, done, vain = IN[what]
    house.sequence(*make(), context=Work, finally_=finally_)
    house.worker(tick=tick)
    run = house.submit(deadline=SOON)
    timed_out(house, run)
    house.eventually(lambda: "fenced_out" in house.kinds(run))
    rows = timed_out(house, run)
    cleaned = [("step", "clean", "DONE")] if finally_ else []
    assert rows[:-1] == [
        ("submitted", "job", ""), *[("step", name, "DONE") for name in done], ("timeout", "", ""), *cleaned,
        ("ended", "", "timeout"),
    ]  # fmt: skip
    assert rows[-1] in [("fenced_out", vain, ""), ("fenced_out", vain.removesuffix(", inner"), "")]
    assert house.context(run).n == len(done)


@FIRST
def test_a_deadline_in_a_branch(house: House, tick: float) -> None:
    """One branch is over, one is cut off, one fails late: each `finally` is run, then the outer one."""

    def right(context: Work) -> None:
        context.right += 1

    split: Any = ParallelSplitProcessor(
        {"left": nested(hang, name="left", finally_=[clean]), "late": nested(fail_late, name="late"), "right": right},
        context=Work,
        name="split",
    )
    house.sequence(split, add, context=Work, finally_=[clean])
    house.worker(tick=tick)
    run = house.submit(deadline=SOON)
    timed_out(house, run)
    assert house.trail(run) == "split/left/clean, split/right/right, split/right, clean"
    kinds = [kind for kind in house.kinds(run) if kind not in ("mark", "fenced_out")]
    assert kinds == ["submitted", "step", "step", "timeout", "step", "step", "ended"]


def test_a_finally_that_the_deadline_cuts_off_is_told_of(house: House) -> None:
    """A `finally` that is under way at the deadline is given up like any step, and the journal says which it was."""
    entered = threading.Event()

    def slow(context: Work) -> None:
        entered.set()
        while not context.step.cancelled:
            time.sleep(0.002)

    house.sequence(add, context=Work, finally_=[slow, clean])
    run = house.submit(deadline=60.0)
    house.worker()
    entered.wait(20)
    house.kit.advance(61)
    timed_out(house, run)
    house.eventually(lambda: "fenced_out" in house.kinds(run))
    assert timed_out(house, run) == [
        ("submitted", "job", ""), ("step", "add", "DONE"), ("timeout", "", ""), ("step", "clean", "DONE"),
        ("ended", "", "timeout"), ("fenced_out", "slow", ""),
    ]  # fmt: skip


def test_a_slow_clock_of_the_store(house: House) -> None:
    """A worker whose clock is ahead waits until the store says so, too: the run is timed out once, and not before."""
    house.sequence(add, hang, context=Work, finally_=[clean])
    house.worker()
    run = house.submit(deadline=SOON)
    house.eventually(lambda: house.trail(run))
    house.kit.advance(-2 * SOON)
    timed_out(house, run)
    status = house.client.status(run)
    assert status.ended is not None
    assert status.deadline is not None
    assert status.ended >= status.deadline
    assert house.kinds(run).count("timeout") == 1


@pytest.mark.parametrize("ask", ["cancel", "timeout"])
def test_a_finally_with_parts(house: House, ask: str) -> None:
    """Processors in a `finally`, also with branches, are run whole when the run is cancelled or timed out."""
    deep = nested(nested(add, add, name="y"), add, name="x")
    split: Any = ParallelSplitProcessor(
        {"a": nested(clean, name="a", finally_=[add]), "b": add}, context=Work, name="s"
    )

    def wait(context: Work) -> None:
        context.step.wait_for("never")

    house.sequence(wait, context=Work, finally_=[deep, activity(split, name="s"), clean])
    run = house.submit(deadline=60.0)
    house.work()
    if ask == "cancel":
        assert house.client.cancel(run)
    else:
        house.kit.advance(61)
    house.work()
    assert house.client.status(run).outcome == {"cancel": "cancelled", "timeout": "timeout"}[ask]
    assert sorted(house.trail(run).split(", ")) == [
        "clean", "s", "s/a", "s/a/add", "s/a/clean", "s/b", "s/b/add", "x", "x/add", "x/y", "x/y/add", "x/y/add",
    ]  # fmt: skip
