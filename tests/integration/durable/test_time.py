"""Time: deadlines in every state, starts that come too late, limits of attempts, and the clock of the store."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from iocflow import CONTINUE, ParallelSplitProcessor, ProcessContext, RetryingErrorHandler, SequenceProcessor, activity
from iocflow.durable.errors import SubmitError
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


def test_t1(house: House, gate: Gate) -> None:
    """T1: the deadline passes while a leased step runs: it is told to stop, its result is refused, `finally` runs."""
    house.sequence(add, add, activity(gate, name="gate"), add, context=Work, finally_=[clean])
    run = house.submit(deadline=600.0)
    house.worker()
    gate.entered.wait(20)
    house.kit.advance(601)
    status = house.wait(run)
    assert (status.state, status.outcome) == ("failed", "timeout")
    assert status.spent >= 600
    assert gate.cancelled == [True]
    context = house.context(run)
    assert (context.n, context.cleaned) == (2, 1)
    assert house.trail(run) == "add, add, clean"
    house.eventually(lambda: "fenced_out" in house.kinds(run))
    kinds = [kind for kind in house.kinds(run) if kind not in ("mark", "fenced_out")]
    assert kinds == ["submitted", "step", "step", "timeout", "step", "ended"]


def test_t1_with_another_worker(house: House, gate: Gate) -> None:
    """T1: the step that does not heed it loses its run to another worker, who ends it; the late result is refused."""

    def deaf(context: Work) -> None:
        gate.entered.set()
        gate.go_on.wait(20)
        context.n += 100

    house.sequence(add, deaf, add, context=Work, finally_=[clean])
    run = house.submit(deadline=600.0)
    busy = house.worker(threads=1, tick=1000.0)
    gate.entered.wait(20)
    house.kit.advance(601)
    house.worker()
    status = house.wait(run)
    assert (status.state, status.outcome) == ("failed", "timeout")
    gate.go_on.set()
    other = house.submit()
    assert house.wait(other).state == "completed"
    assert busy.stop(20)
    context = house.context(run)
    assert (context.n, context.cleaned) == (1, 1)
    assert house.trail(run) == "add, clean"
    assert "fenced_out" in house.kinds(run)


def test_t3(house: House, gate: Gate) -> None:
    """T3: a message whose `start_by` passes while it is worked on counts as done."""
    house.sequence(activity(gate, name="gate"), add, context=Work)
    run = house.submit(start_by=60.0)
    house.worker()
    gate.entered.wait(20)
    house.kit.advance(120)
    time.sleep(0.05)
    gate.go_on.set()
    status = house.wait(run)
    assert (status.state, status.outcome) == ("completed", "ok")
    assert gate.cancelled == [False]


def test_start_by(house: House) -> None:
    """A message that nobody took up in time has failed as expired, and is never begun."""
    house.sequence(add, context=Work)
    run, other = house.submit(start_by=60.0, group="G"), house.submit(group="G")
    house.kit.advance(61)
    house.work()
    status = house.client.status(run)
    assert (status.state, status.outcome, status.started) == ("failed", "expired", None)
    assert house.trail(run) == ""
    assert house.state(other) == "completed"


def test_t4(house: House) -> None:
    """T4: no worker lived for an hour, and the deadline was at ten minutes: the run is timed out, never started."""
    ledger = Ledger()
    house.sequence(ledger.note, context=Work, finally_=[clean])
    run = house.submit(deadline="10m")
    house.kit.advance(3600)
    house.work()
    status = house.client.status(run)
    assert (status.state, status.outcome, status.started) == ("failed", "timeout", None)
    assert ledger.calls == []
    assert house.kinds(run) == ["submitted", "ended"]


def test_a_deadline_in_the_first_step(house: House, gate: Gate) -> None:
    """A run whose very first step is given up has begun: its `finally` runs, on the context with the seed."""
    house.sequence(activity(gate, name="gate"), context=Work, finally_=[clean])
    run = house.submit(seed=7, deadline=60.0)
    house.worker()
    gate.entered.wait(20)
    house.kit.advance(61)
    assert house.wait(run).outcome == "timeout"
    assert house.trail(run) == "clean"
    context = house.context(run)
    assert (context.seed_data, context.n, context.cleaned) == (7, 0, 1)


def test_a_deadline_passes_behind_another_run(house: House, gate: Gate) -> None:
    """A run that is in hand, but waits behind another one of its group, is timed out without being begun."""
    house.sequence(activity(gate, name="gate"), context=Work, finally_=[clean])
    first, second = house.submit(group="G"), house.submit(group="G", deadline=60.0)
    house.worker(threads=1)
    gate.entered.wait(20)
    house.kit.advance(61)
    status = house.wait(second)
    assert (status.outcome, status.started) == ("timeout", None)
    assert house.trail(second) == ""
    gate.go_on.set()
    assert house.wait(first).outcome == "ok"


def test_a_start_comes_too_late_behind_another_run(house: House, gate: Gate) -> None:
    """A run that is in hand, but waits behind another one of its group beyond its `start_by`, is never begun."""
    house.sequence(activity(gate, name="gate"), context=Work)
    first, second = house.submit(group="G"), house.submit(group="G", start_by=60.0)
    house.worker(threads=1)
    gate.entered.wait(20)
    house.kit.advance(61)
    gate.go_on.set()
    status = house.wait(second)
    assert (status.outcome, status.started) == ("expired", None)
    assert house.wait(first).outcome == "ok"


def test_a_deadline_of_a_waiting_run(house: House) -> None:
    """The deadline of a run that waits for a signal: it is woken for its `finally`, and nothing else of it runs."""

    def wait(context: Work) -> None:
        context.n += 100
        context.step.wait_for("approved")

    house.sequence(add, wait, add, context=Work, finally_=[clean])
    run = house.submit(deadline=60.0)
    house.work()
    assert house.state(run) == "waiting"
    house.kit.advance(61)
    house.work()
    status = house.client.status(run)
    assert (status.state, status.outcome) == ("failed", "timeout")
    assert house.context(run).cleaned == 1
    assert house.trail(run) == "add, clean"
    assert not house.client.signal(run, "approved")


def test_a_deadline_in_a_retry_delay(house: House) -> None:
    """The deadline comes before the next attempt: that is not made, and the group goes on."""

    def fail(context: Work) -> None:
        if context.seed_data == 1:
            raise ValueError("no")

    retrying = RetryingErrorHandler(attempts=3, delay=3600.0)
    house.sequence(activity(fail, on_error=retrying), context=Work, finally_=[clean])
    run, other = house.submit(seed=1, group="G", deadline=60.0), house.submit(seed=2, group="G")
    house.work()
    assert [house.state(run), house.state(other)] == ["waiting", "queued"]
    house.kit.advance(61)
    house.work()
    assert house.client.status(run).outcome == "timeout"
    assert house.context(run).cleaned == 1
    assert house.state(other) == "completed"


def test_t7(house: House) -> None:
    """T7: a run was suspended for an hour with half an hour to go: when it is resumed, it is timed out."""

    def fail(context: Work) -> None:
        raise ValueError("no")

    house.sequence(add, fail, context=Work, finally_=[clean], durable={"on_failure": "incident"})
    run = house.submit(deadline="30m")
    house.work()
    house.kit.advance(3600)
    house.work()
    assert house.state(run) == "suspended"
    assert house.client.retry(run)
    house.work()
    status = house.client.status(run)
    assert (status.state, status.outcome) == ("failed", "timeout")
    assert house.trail(run) == "add, fail FAILED, clean, clean"


def test_a_deadline_in_a_split(house: House, gate: Gate) -> None:
    """The deadline of a run whose branches are under way: every branch's `finally` runs, then the outer one."""

    def right(context: Work) -> None:
        context.right += 1

    left: Any = SequenceProcessor([activity(gate, name="gate")], context=Work, name="left", finally_=[clean])
    split: Any = ParallelSplitProcessor({"left": left, "right": right}, context=Work, name="split")
    house.sequence(split, add, context=Work, finally_=[add])
    run = house.submit(deadline=60.0)
    house.worker()
    gate.entered.wait(20)
    house.eventually(lambda: "right" in house.trail(run))
    house.kit.advance(61)
    assert house.wait(run).outcome == "timeout"
    assert gate.cancelled == [True]
    assert house.trail(run) == "split/left/clean, split/right/right, split/right, add"


def test_t5(house: House) -> None:
    """T5: attempts that hang are ended by their own limit, and all of them by that of the step around them."""
    began: list[float] = []

    async def hang(context: Work) -> None:
        began.append(time.monotonic())
        await asyncio.sleep(20)

    attempts = activity(hang, time_limit=0.2, on_error=RetryingErrorHandler(attempts=4))
    inner: Any = SequenceProcessor([attempts], context=Work, name="inner")
    house.sequence(activity(inner, time_limit=0.5, on_error=CONTINUE), add, context=Work)
    run = house.submit()
    house.worker()
    assert house.wait(run).state == "completed"
    assert house.trail(run).endswith("inner HANDLED, add")
    assert 2 <= len(began) <= 3
    assert began[1] - began[0] >= 0.1  # the limit counts from before the activity, which may begin late
    (row,) = [entry for entry in house.client.history(run) if entry.name == "inner/hang" and entry.kind == "step"]
    assert row.error is not None
    assert (row.outcome, row.error["type"]) == ("FAILED", "TimeoutError")
    assert row.at - house.client.status(run).submitted >= 0.5


def test_a_limit_around_a_split_holds_in_its_branches(house: House) -> None:
    """The time limit of a split is that of what its branches do."""
    left: list[float | None] = []

    def look(context: Work) -> None:
        left.append(context.step.remaining())

    split: Any = ParallelSplitProcessor({"left": look, "right": look}, context=Work, name="split")
    house.sequence(activity(split, time_limit=50.0), context=Work)
    house.submit()
    house.work()
    assert len(left) == 2
    assert all(one is not None and 0 < one <= 50 for one in left)


def test_the_deadline_is_what_remains(house: House) -> None:
    """`context.step.remaining()` counts down to the run's deadline, on the clock of the store."""
    left: list[float | None] = []

    def look(context: Work) -> None:
        left.append(context.step.remaining())

    house.sequence(look, context=Work)
    house.submit(deadline="1h")
    house.kit.advance(1800)
    house.work()
    assert left[0] is not None
    assert 1790 < left[0] <= 1800


def test_deadlines_of_the_wiring(house: House) -> None:
    """The wiring may say how long runs have: a time, or the field of the seed that has it."""
    house.sequence(add, context=Work, durable={"deadline": "10m"})
    run = house.submit()
    status = house.client.status(run)
    assert status.deadline is not None
    assert 599 < status.deadline - status.submitted < 601


@pytest.mark.parametrize("name", ["deadline", "not_before", "start_by"])
def test_times_that_cannot_be(house: House, name: str) -> None:
    """What is no time is refused at submit, and the message names it."""
    house.sequence(add, context=Work)
    with pytest.raises(SubmitError, match=name):
        house.submit(**{name: "soon"})
