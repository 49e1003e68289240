"""What a run leaves: outcome, trail, times, errors; and the two ways to start one."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from behaviour.parts import Asking, Box, BrokenError, add, fail, fail_twice, fill, go_left, idle, stop, yes
from unit.core.conftest import Wire

from iocflow import (
    CONTINUE,
    FAIL,
    Activity,
    ExclusiveChoiceProcessor,
    ForEachProcessor,
    LoggingErrorHandler,
    Outcome,
    ParallelSplitProcessor,
    Processor,
    Retry,
    RetryingErrorHandler,
    Run,
    SequenceProcessor,
    StepOutcome,
    activity,
)


def nap(context: Any) -> None:
    time.sleep(0.004)


def inner(*steps: Any, **options: Any) -> Processor[Any]:
    return SequenceProcessor(steps, **{"context": Box, "name": "inner", **options})


def each(body: Any, **options: Any) -> Processor[Any]:
    return ForEachProcessor("items", body, as_="item", context=Box, name="each", **options)


def split(**branches: Any) -> Processor[Any]:
    return ParallelSplitProcessor(branches, context=Box, name="split")


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


# The bound on attempts.


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


def nothing(context: Any) -> None:
    """Change nothing."""


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


# A processor as an activity of one's own.


class Delegating(Activity[Box]):
    """Runs a processor in the middle of its own work."""

    def __init__(self, part: Processor[Box]) -> None:
        self.part = part

    def execute(self, context: Box) -> Any:
        before = context.step
        context.step.memo["kept"] = True
        result = self.part.execute(context)
        assert context.step is before
        assert context.step.memo == {"kept": True}
        context.left += 1
        return result


def test_execute_runs_on_the_context_that_is_there(wire: Wire) -> None:
    """An activity may call it: same context, no trail of its own, and `step` is its own again afterwards."""
    run = wire(Delegating(inner(add, yes, add)), add).do_activities()
    assert (run.context.n, run.context.left) == (3, 1)
    assert [step.activity for step in run.steps] == ["delegating", "add"]


def test_execute_belongs_to_the_run_around_it(wire: Wire) -> None:
    """Run id and time limit are those of the activity, and keys stay the same over its attempts."""
    seen: list[tuple[str, str, float]] = []

    def look(context: Box) -> None:
        seen.append((context.step.run_id, context.step.idempotency_key, context.step.remaining() or 0))

    def flaky(context: Box) -> None:
        fail_twice(context)

    steps = activity(Delegating(inner(look, look)), time_limit=60), flaky
    wire(activity(Delegating(inner(*steps)), on_error=RetryingErrorHandler(3))).launch(run_id="r1")
    again = activity(SequenceProcessor([*steps], context=Box), on_error=RetryingErrorHandler(3))
    wire(again).launch(run_id="r2")
    assert {run_id for run_id, _, _ in seen} == {"r1", "r2"}
    assert all(0 < remaining <= 60 for _, _, remaining in seen)
    assert len({key for _, key, _ in seen}) == 4


def test_keys_inside_of_execute_are_distinct(wire: Wire) -> None:
    """An activity may run a processor many times: each time it has other keys, and the same in the next attempt."""
    keys: list[str] = []
    part = inner(lambda context: keys.append(context.step.idempotency_key))

    class Many(Activity[Box]):
        def execute(self, context: Box) -> None:
            for _ in range(3):
                part.execute(context)
            fail_twice(context)

    wire(activity(Many(), on_error=RetryingErrorHandler(3)), Many(), on_error=CONTINUE).do_activities()
    assert keys[:3] == keys[3:6] == keys[6:9]
    assert len(keys) == 12
    assert len(set(keys)) == 6


def test_a_stop_inside_of_execute_stops_the_run(wire: Wire) -> None:
    """STOPPED inside means that the activity asked to stop; a wish from before is not lost."""
    run = wire(Delegating(inner(stop, add)), add).do_activities()
    assert (run.outcome.name, run.stop_reason, run.context.n, run.context.left) == ("STOPPED", "enough", 0, 1)

    class Before(Activity[Box]):
        def execute(self, context: Box) -> Any:
            context.nothing_to_do()
            return inner(add, add).execute(context)

    run = wire(Before(), add).do_activities()
    assert (run.outcome.name, run.idle, run.context.n) == ("STOPPED", True, 2)


def test_execute_raises_what_makes_it_fail(wire: Wire) -> None:
    """Also when a handler inside decided FAIL; the handlers of the activity are asked."""
    run = wire(activity(Delegating(inner(fail, on_error=FAIL)), on_error=CONTINUE), add).do_activities()
    assert [step.outcome.name for step in run.steps] == ["HANDLED", "DONE"]
    assert isinstance(run.steps[0].error, BrokenError)


def test_execute_works_outside_of_a_run() -> None:
    """A test may run a processor on a context that it made."""
    context = Box()
    assert inner(add, add).execute(context) is context
    assert (context.n, context.step.activity) == (2, "")
    inner(stop).execute(context)
    assert context.stopped


def test_execute_hands_a_new_context_on(wire: Wire) -> None:
    """An activity inside may return another context: it is what `execute` returns."""

    def swap(context: Box) -> Box:
        other = Box()
        other.n = 41
        return other

    class Returning(Activity[Box]):
        def execute(self, context: Box) -> Any:
            return inner(swap).execute(context)

    run: Run[Any] = wire(Returning(), add).do_activities()
    assert run.context.n == 42


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
