"""`Performer` as engines use it that store what they do: waits, infos of their own, branches one by one."""

from __future__ import annotations

from typing import Any

import pytest
from behaviour.parts import Box, add, fail
from unit.core.kit import Steering, each, inner, setting, split, value

from iocflow import Activity, AsyncRunner, IocflowError, Processor, SequenceProcessor, StepFailed, StepInfo, activity
from iocflow.advance import advance, start
from iocflow.context import fields_of
from iocflow.errors import RunSignal
from iocflow.perform import Performer
from iocflow.plan import Command, Position


class OwnInfo(StepInfo):
    """What an engine lends that can wait."""

    def following(self) -> OwnInfo:
        return OwnInfo(self.run_id, self.processor, self.scheduled_for)

    def wait_for(self, name: str, *, timeout: float | None = None) -> Any:
        raise RunSignal(name, timeout)


class Approve(Activity[Box]):
    """Waits, however general the errors are that it catches."""

    def execute(self, context: Box) -> None:
        try:
            context.step.wait_for("approval", timeout=5)
        except Exception:  # noqa: BLE001 - as user code does
            context.left += 1


def performer_of(processor: Processor[Any], context: Any = None) -> Performer:
    """A performer for a run of the processor."""
    context = processor.new_context() if context is None else context
    info = OwnInfo("run-1", processor.name)
    return Performer(processor.plan, processor.parts, AsyncRunner(), context, info, "key-1")


def main(*steps: Any, **options: Any) -> Processor[Any]:
    return SequenceProcessor(steps, **{"context": Box, "name": "main", **options})


def first(processor: Processor[Any]) -> tuple[Command, Position]:
    return advance(processor.plan, start(processor.plan), None)


def test_a_signal_is_a_wait_and_no_error() -> None:
    """No `except Exception` catches it, no handler is asked, and interceptors see it pass."""
    seen: list[str] = []

    def watch(step: StepInfo, context: Any, proceed: Any) -> Any:
        try:
            return proceed()
        except RunSignal as signal:
            seen.append(signal.name)
            raise

    processor = main(Approve(), interceptors=[Steering(watch)])
    performer = performer_of(processor)
    command, position = first(processor)
    with performer.at_work():
        reply = performer.perform(command, None)
    assert reply == {"wait": {"name": "approval", "timeout": 5}, "stop": False}
    assert seen == ["approval"]
    command, position = advance(processor.plan, position, reply)
    performer.follow({}, reply, command, position)
    assert performer.rows == []


def test_awaited_code_can_wait() -> None:
    """The signal comes through from the loop's thread."""

    async def approve(context: Box) -> None:
        await value(None)
        context.step.wait_for("approval")

    processor = main(approve)
    performer = performer_of(processor)
    with performer.at_work(), performer.runner:
        reply = performer.perform(first(processor)[0], None)
    assert reply["wait"] == {"name": "approval", "timeout": None}


def test_a_stop_before_a_wait_is_not_lost() -> None:
    """What the attempt asked for is in the reply, and so in the position."""

    def stop_and_wait(context: Box) -> None:
        context.stop_process("enough")
        context.step.wait_for("approval")

    processor = main(stop_and_wait)
    performer = performer_of(processor)
    with performer.at_work():
        assert performer.perform(first(processor)[0], None)["stop"] is True


def test_only_an_activity_can_wait() -> None:
    """In a handler a wait is that handler's error."""

    class Asks:
        def handle_error(self, context: Any, error: Exception) -> None:
            context.step.wait_for("approval")

    processor = main(activity(fail, on_error=Asks()))
    performer = performer_of(processor)
    with performer.at_work():
        command, position = first(processor)
        command, position = advance(processor.plan, position, performer.perform(command, None))
        reply = performer.perform(command, None)
    assert "only an activity's `execute` can wait" in reply["error"]["message"]


def test_an_inline_run_cannot_wait(caplog: pytest.LogCaptureFixture) -> None:
    """It says what a run needs that can."""
    with pytest.raises(IocflowError, match="only a durable run can wait, as for 'approval': set `durable: true`"):
        main(lambda context: context.step.wait_for("approval")).do_activities()


def test_a_run_inside_of_an_activity_waits_as_that_activity() -> None:
    """A processor's `execute` is part of the activity that calls it: what waits within leaves that activity."""

    def outer(context: Box) -> Any:
        info = context.step
        return main(lambda inside: info.wait_for("approval"), observers=[lambda event: None]).execute(context)

    processor = main(outer)
    performer = performer_of(processor)
    with performer.at_work():
        reply = performer.perform(first(processor)[0], None)
    assert reply["wait"]["name"] == "approval"


def test_an_info_of_its_own_stays() -> None:
    """Every step, and every handler, of an engine's run is lent what `following` of its first info makes."""
    seen: list[StepInfo] = []
    processor = main(inner(lambda context: seen.append(context.step)), lambda context: seen.append(context.step))
    performer = performer_of(processor)
    command, position = first(processor)
    with performer.at_work():
        while command["do"] != "end":
            command, position = advance(processor.plan, position, performer.perform(command, None))
    assert [(type(info), info.idempotency_key) for info in seen] == [
        (OwnInfo, "key-1/inner/lambda#1.1"),
        (OwnInfo, "key-1/lambda-2#2"),
    ]


def test_preparing_ahead_keeps_a_memo() -> None:
    """An engine that goes on with a step puts its memo back before it performs the command."""
    seen: list[object] = []
    processor = main(lambda context: seen.append(context.step.memo["sent"]))
    performer = performer_of(processor)
    command, _ = first(processor)
    with performer.at_work():
        performer.prepare(command, None)
        performer.info.memo["sent"] = 3
        assert performer.info.idempotency_key == performer.step_key(command)
        performer.perform(command, None)
    assert seen == [3]


def test_branches_can_be_run_one_by_one() -> None:
    """Each on a performer of its own; the parent keeps what they changed, and joins it."""
    processor = main(split(l=setting(left=2), r=setting(right=3)))
    parent = performer_of(processor)
    command, position = first(processor)
    with parent.at_work():
        ends = []
        for i, child in enumerate(command["children"]):
            branch = performer_of(processor, parent.fork(command, i))
            before = fields_of(branch.context)
            with branch.at_work():
                moved = child
                do, _ = advance(processor.plan, moved, None)
                while do["do"] != "end":
                    do, moved = advance(processor.plan, moved, branch.perform(do, None))
            ends.append(do["end"])
            parent.keep(command, i, before, branch.context, stopped=False)
        command, position = advance(processor.plan, position, {"ends": ends})
        command, position = advance(processor.plan, position, parent.perform(command, None))
    assert command["end"]["outcome"] == "COMPLETED"
    assert (parent.context.left, parent.context.right) == (2, 3)


def test_following_tells_of_failed_attempts_and_rows() -> None:
    """A failure that nobody is asked about is told, then its row, as inline."""
    events: list[Any] = []
    processor = main(fail, observers=[events.append])
    performer = performer_of(processor)
    command, position = first(processor)
    with performer.at_work():
        limit = performer.time_limit(command, position)
        reply = performer.perform(command, limit)
        after, position = advance(processor.plan, position, reply)
        performer.follow(command, reply, after, position)
    assert [type(event).__name__ for event in events] == ["StepStarted", "StepFailed", "StepFinished"]
    assert [event.decision for event in events if isinstance(event, StepFailed)] == ["fail"]
    assert [row.outcome.name for row in performer.rows] == ["FAILED"]


def test_waiting_does_not_count_for_a_time_limit() -> None:
    """An attempt that is made again after a wait has all of its time."""
    processor = main(activity(Approve(), time_limit=60), each(add))
    performer = performer_of(processor)
    command, position = first(processor)
    begun = performer.time_limit(command, position)
    command, position = advance(processor.plan, position, {"wait": {"name": "approval", "timeout": None}})
    assert performer.time_limit(command, position) is None
    command, position = advance(processor.plan, position, {})
    again = performer.time_limit(command, position)
    assert begun is not None
    assert again is not None
    assert again > begun
