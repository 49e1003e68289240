"""A time limit of a composite holds where the engine itself has control: between steps, items and attempts."""

from __future__ import annotations

import time

from iocflow import (
    ForEachProcessor,
    ParallelSplitProcessor,
    ProcessContext,
    RetryingErrorHandler,
    SequenceProcessor,
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
    assert "each/slow did not begin" in str(run.error)
    assert run.context.done == 2


def test_a_retry_waits_no_longer_than_the_limit() -> None:
    """The pause between two attempts ends with the limit around them, and no attempt begins after it."""
    retried = activity(broken, on_error=RetryingErrorHandler(attempts=2, delay=60))
    inner = SequenceProcessor([retried], context=Work, name="inner")
    began = time.monotonic()
    run = SequenceProcessor([activity(inner, time_limit=0.05)], context=Work).launch()
    assert isinstance(run.error, TimeoutError)
    assert time.monotonic() - began < 30


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
