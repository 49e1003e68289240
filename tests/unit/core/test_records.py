"""What a run leaves: outcome, trail, times, errors; and the two ways to start one."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from behaviour.parts import Asking, Box, BrokenError, add, fail, fail_twice, fill, idle, stop, yes
from unit.core.conftest import Wire
from unit.core.kit import each, inner, split

from iocflow import (
    CONTINUE,
    FAIL,
    LoggingErrorHandler,
    Outcome,
    RetryingErrorHandler,
    StepOutcome,
    activity,
)


def nap(context: Any) -> None:
    time.sleep(0.004)


# Times.


def test_times_are_in_order(wire: Wire) -> None:
    """Each step starts when the one before has ended, within the run, in UTC, and takes its time."""
    before = datetime.now(UTC)
    run = wire(nap, nap, activity(fail, on_error=CONTINUE), nap).do_activities()
    after = datetime.now(UTC)
    assert before - timedelta(milliseconds=1) <= run.started <= run.steps[0].started
    assert run.steps[-1].ended == run.ended <= after
    assert all(step.started <= step.ended for step in run.steps)
    assert all(one.ended <= two.started for one, two in pairwise(run.steps))
    assert all(step.ended - step.started >= timedelta(milliseconds=3) for step in run.steps if step.activity == "nap")
    assert run.started.tzinfo is UTC


def test_a_composite_encloses_its_parts(wire: Wire) -> None:
    """Its row follows those of its parts, and its time encloses theirs, however it is nested and how often it runs."""
    steps = [inner(nap, inner(nap, nap)), split(left=nap, right=[nap, nap]), fill, each(nap), each([nap], parallel=2)]
    run = wire(*steps, activity(inner(nap, fail), on_error=[RetryingErrorHandler(2), CONTINUE])).do_activities()
    open_rows: list[Any] = []
    for step in run.steps:
        parts = [part for part in open_rows if part.activity.startswith(f"{step.activity}/")]
        for part in parts:
            assert step.started <= part.started <= part.ended <= step.ended
            open_rows.remove(part)
        open_rows.append(step)
    assert [step.activity.count("/") for step in open_rows] == [0] * 6


def test_attempts_and_delays_belong_to_the_step(wire: Wire) -> None:
    """A step's time goes from its first attempt to the end of its last one, its handlers and delays included."""
    handler = RetryingErrorHandler(3, delay=0.01)
    run = wire(
        activity(fail_twice, on_error=handler), activity(inner(fail), on_error=[handler, CONTINUE])
    ).do_activities()
    assert (run.steps[0].attempts, run.steps[-1].attempts) == (3, 3)
    assert all(run.steps[i].ended - run.steps[i].started >= timedelta(seconds=0.02) for i in (0, -1))


def test_a_clock_that_is_set_back_harms_no_record(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the wall clock jumps backwards in the middle of a step, the step does not end before it started."""
    real, offset = time.time, [0.0]
    monkeypatch.setattr("time.time", lambda: real() - offset[0])
    monkeypatch.setattr("iocflow.processor._now", lambda: real() - offset[0])

    def jump(context: Box) -> None:
        offset[0] += 3600

    run = wire(add, jump, activity(fail, on_error=CONTINUE), inner(jump), add).do_activities()
    assert all(step.started <= step.ended for step in run.steps)
    assert run.started <= run.ended


# Rows.


def test_rows_tell_all_of_a_step(wire: Wire) -> None:
    """Activity, outcome, attempts, error and result; a failure after a named result has none of its own."""
    run = wire(yes, activity(fail, on_error=CONTINUE), fail_twice, fail, on_error=[RetryingErrorHandler(3)]).launch()
    assert [(s.activity, s.outcome, s.attempts, type(s.error).__name__, s.result) for s in run.steps] == [
        ("yes", StepOutcome.DONE, 1, "NoneType", "yes"),
        ("fail", StepOutcome.HANDLED, 1, "BrokenError", None),
        ("fail-twice", StepOutcome.DONE, 3, "NoneType", None),
        ("fail", StepOutcome.FAILED, 3, "BrokenError", None),
    ]
    assert run.steps[-1].error is run.error


def test_a_composites_result_is_its_last_activitys(wire: Wire) -> None:
    """What the last activity inside returned; after a handled failure at the end it is none."""
    run = wire(inner(add, yes), inner(yes, add), inner(yes, activity(fail, on_error=CONTINUE))).do_activities()
    assert [step.result for step in run.steps if "/" not in step.activity] == ["yes", None, None]


def test_the_trail_is_built_once(wire: Wire) -> None:
    """Reading it again gives the same rows, so that going through it by index costs nothing."""
    run = wire(*[add] * 50, activity(fail, on_error=CONTINUE)).do_activities()
    assert run.steps is run.steps
    assert len(run.steps) == 51


def test_finally_is_in_the_trail(wire: Wire) -> None:
    """One row for each activity of it, after the others; none for seed, fork or join."""
    run = wire(split(left=add), finally_=[yes, activity(fail, on_error=CONTINUE)]).do_activities(3)
    assert [(step.activity, step.outcome.name) for step in run.steps] == [
        ("split/left/add", "DONE"),
        ("split/left", "DONE"),
        ("split", "DONE"),
        ("yes", "DONE"),
        ("fail", "HANDLED"),
    ]


def test_a_run_of_nothing(wire: Wire) -> None:
    """Without any activity there are no rows, and the end is the start."""
    run = wire().do_activities()
    assert (run.outcome, run.steps, run.started) == (Outcome.COMPLETED, (), run.ended)


# The run.


def test_the_id_is_made_when_it_is_read(wire: Wire) -> None:
    """It stays the same from then on; `launch` takes one."""
    run = wire(add).do_activities()
    assert run.id == run.id != wire(add).do_activities().id
    assert len(run.id) == 36
    assert wire(add).launch(run_id="mine").id == "mine"


def test_what_a_run_shows_of_itself(wire: Wire) -> None:
    """Processor, stop reason, and one line for people."""
    run = wire(stop).launch(run_id="r1")
    assert (run.processor, run.stop_reason, repr(run)) == ("main", "enough", "<Run r1 of main: STOPPED>")
    assert wire(add).do_activities().stop_reason == ""


def test_raise_for_error(wire: Wire) -> None:
    """It returns the run, or raises what made it fail, each time."""
    run = wire(add).do_activities()
    assert run.raise_for_error() is run
    stopped = wire(stop).do_activities()
    assert stopped.raise_for_error() is stopped
    failed = wire(fail, on_error=FAIL).do_activities()
    for _ in range(2):
        with pytest.raises(BrokenError):
            failed.raise_for_error()


@pytest.mark.parametrize(
    ("options", "raises"),
    [
        ({}, True),
        ({"on_error": Asking(lambda context, error: 1 / 0)}, True),  # type: ignore[arg-type,return-value]
        ({"on_error": FAIL}, False),
        ({"on_error": LoggingErrorHandler()}, False),
        ({"on_error": Asking(lambda context, error: None)}, False),
        ({"finally_": [add]}, True),
    ],
)
def test_do_activities_raises_where_nobody_decided(wire: Wire, options: Any, raises: bool) -> None:
    """Without any handler, or when a handler raised; `launch` never raises for an activity."""
    processor = wire(fail, **options)
    assert processor.launch().outcome is Outcome.FAILED
    if raises:
        with pytest.raises((BrokenError, ZeroDivisionError)):
            processor.do_activities()
    else:
        assert processor.do_activities().outcome is Outcome.FAILED


def test_the_error_of_a_nested_processor_is_raised_where_nobody_decided(wire: Wire) -> None:
    """A handler of the outer one decides for the inner; an inner one that passed leaves it to the outer."""
    with pytest.raises(BrokenError):
        wire(inner(fail)).do_activities()
    with pytest.raises(BrokenError):
        wire(inner(fail, on_error=FAIL)).do_activities()
    assert wire(inner(fail), on_error=FAIL).do_activities().outcome is Outcome.FAILED


def test_idle_runs(wire: Wire) -> None:
    """Only a stop by `nothing_to_do` is idle."""
    assert wire(idle).do_activities().idle
    assert wire(inner(idle), add).do_activities().idle
    assert not wire(stop).do_activities().idle
    assert not wire(add).do_activities().idle


# Faults of the ancestors.


def test_a_default_handler_leaves_a_trace(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    """One that swallows every exception cannot keep it out of the trail and the log."""
    run = wire(fail, add, on_error=CONTINUE).do_activities()
    assert (run.steps[0].outcome.name, type(run.steps[0].error).__name__) == ("HANDLED", "BrokenError")
    assert [type(record.exc_info[1]).__name__ for record in caplog.records if record.exc_info] == ["BrokenError"]


def test_run_state_is_not_keyed_by_thread(wire: Wire) -> None:
    """Two runs in one thread, one inside of the other, keep to their own; so does a run that is seen from many."""
    inside = wire(add, stop)

    def start(context: Box) -> None:
        run = inside.do_activities()
        assert run.outcome is Outcome.STOPPED
        context.left = run.context.n

    run = wire(start, add).do_activities()
    assert (run.outcome, run.context.n, run.context.left) == (Outcome.COMPLETED, 1, 1)
