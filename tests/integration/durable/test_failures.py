"""Failures: attempts and their delays, incidents, and what an operator does about a run that failed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from iocflow import CONTINUE, FAIL, ProcessContext, RetryingErrorHandler, SequenceProcessor, activity
from iocflow.errors import RecordedError
from tests.integration.durable.house import House, Ledger


class Work(ProcessContext):
    """A context that counts."""

    seed_data: int = 0
    n: int = 0
    cleaned: int = 0


class World:
    """What activities share with the test: whether they fail."""

    def __init__(self) -> None:
        self.broken = True


def add(context: Work) -> None:
    context.n += 1


def clean(context: Work) -> None:
    context.cleaned += 1


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def ten_in_a_group(house: House, ledger: Ledger, world: World) -> tuple[list[int], list[int]]:
    """Submit ten runs in one group, the seventh of which fails, and one in each of 99 others; return both."""

    def handle(context: Work) -> None:
        ledger.note(context, context.seed_data)
        if context.seed_data == 7 and world.broken:
            raise ValueError("seven is broken")

    wired = activity(handle, on_error=RetryingErrorHandler(attempts=5))
    house.sequence(wired, context=Work, durable={"on_failure": "incident"})
    group = [house.submit(seed=i, group="G") for i in range(1, 11)]
    return group, [house.submit(seed=100 + i, group=f"g{i}") for i in range(99)]


def test_q1(house: House, ledger: Ledger, world: World) -> None:
    """Q1: a run that fails for good is tried five times and is an incident; its group waits, 99 others finish."""
    group, others = ten_in_a_group(house, ledger, world)
    house.work()
    assert [house.state(run) for run in group] == ["completed"] * 6 + ["suspended"] + ["queued"] * 3
    assert [house.state(run) for run in others] == ["completed"] * 99
    assert ledger.whats.count(7) == 5
    assert len({key for key, what in ledger.calls if what == 7}) == 1
    ((run, held_up),) = house.kit.sql("select run, held_up from v_incidents")
    assert (run, held_up) == (group[6], 3)
    status = house.client.status(group[6])
    assert status.error is not None
    assert (status.error["type"], status.error["message"]) == ("ValueError", "seven is broken")
    assert house.trail(group[6]) == "handle FAILED x5"
    assert house.kinds(group[6]) == ["submitted", *["attempt"] * 4, "step", "suspended"]


def test_q2_resume(house: House, ledger: Ledger, world: World) -> None:
    """Q2: after the cause is mended the suspended run goes on, and those behind it follow in order."""
    group, _ = ten_in_a_group(house, ledger, world)
    house.work()
    world.broken = False
    assert house.client.retry(group[6], who="ann", why="mended")
    house.work()
    assert [house.state(run) for run in group] == ["completed"] * 10
    assert [what for what in ledger.whats if what < 100] == [1, 2, 3, 4, 5, 6, *[7] * 6, 8, 9, 10]
    assert house.kit.sql("select run from v_incidents") == []
    (entry,) = [entry for entry in house.client.history(group[6]) if entry.kind == "retry"]
    assert (entry.who, entry.why) == ("ann", "mended")


def test_q2_skip(house: House, ledger: Ledger, world: World) -> None:
    """Q2: the suspended run is given up as failed, and those behind it follow in order."""
    group, _ = ten_in_a_group(house, ledger, world)
    house.work()
    assert house.client.drop(group[6], who="ann", why="skipped")
    house.work()
    assert [house.state(run) for run in group] == ["completed"] * 6 + ["failed"] + ["completed"] * 3
    assert [what for what in ledger.whats if what < 100] == [1, 2, 3, 4, 5, 6, *[7] * 5, 8, 9, 10]
    assert house.client.status(group[6]).reason == "skipped"
    assert not house.client.drop(group[6])


def test_a_failure_lets_the_group_go_on(house: House) -> None:
    """`on_failure: failed`, the default: the run has failed, and its group goes on with the next."""

    def handle(context: Work) -> None:
        if context.seed_data == 1:
            raise ValueError("one is broken")

    house.sequence(handle, context=Work)
    runs = [house.submit(seed=i, group="G") for i in (1, 2)]
    house.work()
    assert [house.state(run) for run in runs] == ["failed", "completed"]
    assert house.client.status(runs[0]).outcome == "error"
    failed = house.run(runs[0])
    assert isinstance(failed.error, RecordedError)
    assert (failed.error.type, str(failed.error), failed.raises) == ("ValueError", "one is broken", True)


def test_an_incident_tells_of_both_errors(house: House) -> None:
    """An incident keeps the error of a handler together with that of the activity."""

    class Breaking:
        def handle_error(self, context: Any, error: Exception) -> Any:
            raise LookupError("the handler, too")

    def fail(context: Work) -> None:
        raise ValueError("the activity")

    house.sequence(activity(fail, on_error=Breaking()), context=Work, durable={"on_failure": "incident"})
    run = house.submit()
    house.work()
    status = house.client.status(run)
    assert status.state == "suspended"
    assert status.error is not None
    assert (status.error["type"], status.error["cause"]) == ("LookupError", "ValueError: the activity")


def test_a_retry_delay_keeps_the_group(house: House, ledger: Ledger) -> None:
    """Between its attempts a run holds no thread, but its group: the next run of it begins after the last attempt."""

    def handle(context: Work) -> None:
        ledger.note(context, (context.seed_data, context.step.attempt))
        context.n += 1
        if context.seed_data == 1 and context.step.attempt < 3:
            raise ValueError("not yet")

    house.sequence(activity(handle, on_error=RetryingErrorHandler(attempts=3, delay=60.0)), context=Work)
    runs = [house.submit(seed=i, group="G") for i in (1, 2)]
    other = house.submit(seed=3, group="other")
    house.work()
    assert [house.state(run) for run in runs] == ["waiting", "queued"]
    assert house.state(other) == "completed"
    house.work()
    assert ledger.whats == [(1, 1), (3, 1)]
    house.kit.advance(61)
    house.work()
    house.kit.advance(61)
    house.work()
    assert ledger.whats == [(1, 1), (3, 1), (1, 2), (1, 3), (2, 1)]
    assert house.trail(runs[0]) == "handle DONE x3"
    assert house.context(runs[0]).n == 3
    assert house.kinds(runs[0]) == ["submitted", "attempt", "attempt", "step", "ended"]
    assert len({key for key, (seed, _) in ledger.calls if seed == 1}) == 1


def test_a_handler_in_another_process_knows_the_error(house: House) -> None:
    """After a delay the next attempt may run elsewhere; rules match a recorded error by the names of its classes."""

    class Sure:
        def handle_error(self, context: Any, error: Exception) -> Any:
            raise AssertionError("the rule before it matches")

    def fail(context: Work) -> None:
        raise KeyError("gone")

    inner: Any = SequenceProcessor([fail], context=Work, name="inner")
    wired = activity(inner, on_error=[RetryingErrorHandler(attempts=2, delay=60.0), CONTINUE])
    house.sequence(wired, add, context=Work)
    run = house.submit()
    house.work()
    house.kit.advance(61)
    house.work()
    assert house.state(run) == "completed"
    assert house.trail(run) == "inner/fail FAILED, inner/fail FAILED, inner HANDLED x2, add"


def test_retry_of_a_failed_run(house: House, ledger: Ledger, world: World) -> None:
    """A failed run goes on from the step that failed: what was done is not repeated, and its `finally` runs again."""

    def flaky(context: Work) -> None:
        ledger.note(context, "flaky")
        context.n += 10
        if world.broken:
            raise ValueError("broken")

    def first(context: Work) -> None:
        ledger.note(context, "first")

    def last(context: Work) -> None:
        ledger.note(context, "finally")
        context.cleaned += 1

    house.sequence(first, add, flaky, add, context=Work, finally_=[last])
    run = house.submit()
    house.work()
    assert house.state(run) == "failed"
    assert house.trail(run) == "first, add, flaky FAILED, last"
    world.broken = False
    assert house.client.retry(run, who="ann", why="mended")
    assert house.state(run) == "queued"
    house.work()
    assert house.state(run) == "completed"
    assert ledger.whats == ["first", "flaky", "finally", "flaky", "finally"]
    assert house.trail(run) == "first, add, flaky FAILED, last, flaky, add, last"
    context = house.context(run)
    assert (context.n, context.cleaned) == (12, 1)
    keys = [key for key, what in ledger.calls if what == "flaky"]
    assert keys[0] == keys[1]


def test_retry_of_a_run_that_failed_at_once(house: House, world: World) -> None:
    """A run whose very first step failed begins again, with its seed."""

    def flaky(context: Work) -> None:
        context.n += context.seed_data
        if world.broken:
            raise ValueError("broken")

    house.sequence(flaky, context=Work)
    run = house.submit(seed=5)
    house.work()
    assert house.state(run) == "failed"
    world.broken = False
    assert house.client.retry(run)
    house.work()
    assert (house.state(run), house.context(run).n) == ("completed", 5)
    assert not house.client.retry(run)


def test_retry_in_a_nesting(house: House, ledger: Ledger, world: World) -> None:
    """The step that failed may stand in a nested processor: its finished neighbours are not repeated either."""

    def one(context: Work) -> None:
        ledger.note(context, "one")

    def flaky(context: Work) -> None:
        ledger.note(context, "flaky")
        if world.broken:
            raise ValueError("broken")

    inner: Any = SequenceProcessor([one, flaky, add], context=Work, name="inner", finally_=[clean])
    house.sequence(one, activity(inner, on_error=FAIL), add, context=Work, durable={"on_failure": "incident"})
    run = house.submit()
    house.work()
    assert house.state(run) == "suspended"
    world.broken = False
    assert house.client.retry(run)
    house.work()
    assert house.state(run) == "completed"
    assert ledger.whats == ["one", "one", "flaky", "flaky"]
    context = house.context(run)
    assert (context.n, context.cleaned) == (2, 1)


@pytest.mark.parametrize("delay", [timedelta(), timedelta(milliseconds=30)], ids=["at once", "later"])
@pytest.mark.parametrize("on_failure", ["failed", "incident"])
def test_a_retry_gives_all_attempts_anew(house: House, on_failure: str, delay: timedelta) -> None:
    """An operator's retry begins with attempt 1 again, and the trail counts from there."""
    attempts: list[int] = []

    def flaky(context: Work) -> None:
        attempts.append(context.step.attempt)
        raise ValueError("broken")

    again = RetryingErrorHandler(attempts=3, delay=delay)
    house.sequence(add, activity(flaky, on_error=again), context=Work, durable={"on_failure": on_failure})
    run = house.submit()
    house.worker()
    for times in (1, 2):
        house.eventually(lambda: house.state(run) in ("failed", "suspended"))
        assert attempts == [1, 2, 3] * times
        rows = [row.attempts for row in house.client.history(run) if (row.name, row.kind) == ("flaky", "step")]
        assert rows == [3] * times
        if times == 1:
            assert house.client.retry(run)
