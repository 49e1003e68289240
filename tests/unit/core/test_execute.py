"""A processor that an activity runs in the middle of its own work."""

from __future__ import annotations

from typing import Any

from behaviour.parts import Box, BrokenError, add, fail, fail_twice, stop, yes
from unit.core.conftest import Wire
from unit.core.kit import inner

from iocflow import (
    CONTINUE,
    FAIL,
    Activity,
    Processor,
    RetryingErrorHandler,
    Run,
    SequenceProcessor,
    activity,
)


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
