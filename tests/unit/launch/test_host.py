"""Performing a launch: what the run is given, and how its end is counted, logged and acknowledged."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from iocflow.context import ProcessContext
from iocflow.launch import Acknowledgement, Launch, acknowledgement_of
from iocflow.launch.clock import SystemClock
from iocflow.launch.ended import Ended
from iocflow.launch.host import DaemonHost
from iocflow.launch.pool import Progress
from iocflow.parallel_split import ParallelSplitProcessor
from iocflow.run import Outcome, Run
from iocflow.sequence import SequenceProcessor
from iocflow.store.errors import StoreLostError

Process = Callable[..., SequenceProcessor[Any]]


@dataclass
class Fare:
    """A seed with a field of a type."""

    drop: int


class Typed(ProcessContext):
    """A context with such a seed."""

    seed_data: Fare


def perform(host: DaemonHost, processor: Any, seed: object = None, **more: Any) -> Ended:
    """Perform a launch of launcher `x` here and now."""
    return host.perform(Launch(processor, "x", seed, **more), Progress("x", processor.name, SystemClock()))


def counts(host: DaemonHost) -> dict[str, int]:
    """Return what was counted, without noughts."""
    return {name: number for name, number in host.counters("x").as_dict().items() if number}


def test_a_launch_hands_everything_over(host: DaemonHost, process: Process) -> None:
    """The run has the seed, the id, the moment and the key of its launch."""
    seen: list[object] = []

    def act(context: ProcessContext) -> None:
        step = context.step
        seen.extend((context.seed_data, step.run_id, step.scheduled_for, step.idempotency_key))

    moment = datetime(2026, 1, 1, tzinfo=UTC)
    ended = perform(host, process(act), {"a": 1}, run_id="r1", scheduled_for=moment, idempotency_key="k")
    assert seen == [{"a": 1}, "r1", moment, "k/act#1"]
    assert (ended.run_id, ended.outcome, ended.reason) == ("r1", Outcome.COMPLETED, "")
    assert ended.run is not None
    assert ended.run.id == "r1"


def stop(context: ProcessContext) -> None:
    context.stop_process("enough")


def fail(context: ProcessContext) -> None:
    raise ValueError("no such fare")


def leave(context: ProcessContext) -> None:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("act", "count", "outcome", "acknowledgement", "level"),
    [
        (lambda context: None, "completed", Outcome.COMPLETED, Acknowledgement.DONE, logging.INFO),
        (stop, "stopped", Outcome.STOPPED, Acknowledgement.DONE, logging.INFO),
        (ProcessContext.nothing_to_do, "nothing_found", Outcome.STOPPED, Acknowledgement.DONE, logging.DEBUG),
        (fail, "failed", Outcome.FAILED, Acknowledgement.DEAD, logging.WARNING),
        (leave, "interrupted", Outcome.INTERRUPTED, Acknowledgement.DEAD, logging.WARNING),
    ],
)
def test_ends(
    host: DaemonHost,
    process: Process,
    caplog: pytest.LogCaptureFixture,
    act: Callable[[ProcessContext], None],
    count: str,
    outcome: Outcome,
    acknowledgement: Acknowledgement,
    level: int,
) -> None:
    """Each end of a run has its counter, its log level, and its answer to the origin."""
    caplog.set_level(logging.DEBUG, "iocflow.launch")
    ended = perform(host, process(act), 1, message_id="m1")
    assert (ended.outcome, ended.acknowledgement) == (outcome, acknowledgement)
    assert counts(host) == {"started": 1, count: 1}
    (record,) = (one for one in caplog.records if one.name == "iocflow.launch")
    assert record.levelno == level
    told = vars(record)
    assert (told["launcher"], told["processor"], told["run_id"]) == ("x", "p", ended.run_id)
    assert (told["message_id"], told["outcome"]) == ("m1", outcome.name)


async def leave_later(context: ProcessContext) -> None:
    raise SystemExit(3)


@pytest.mark.parametrize("act", [leave, leave_later])
def test_an_interruption_is_told_with_its_reason(
    host: DaemonHost, process: Process, caplog: pytest.LogCaptureFixture, act: Callable[[ProcessContext], None]
) -> None:
    """What ended a run although it is no error is in the log, which nothing else tells, and in the reason."""
    branches: Any = ParallelSplitProcessor({"a": act, "b": stop}, context=ProcessContext, name="split")
    for processor in (process(act), process(process(act)), branches):
        caplog.clear()
        ended = perform(host, processor)
        assert (ended.outcome, ended.reason) == (Outcome.INTERRUPTED, "SystemExit: 3")
        (record,) = (one for one in caplog.records if one.name == "iocflow.launch")
        assert record.exc_info is not None
        assert record.exc_info[1] is ended.error


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        ({}, "run r1 of p ended COMPLETED"),
        ({"message_id": "17"}, "run r1 of p for event 17 ended COMPLETED"),
        ({"message_id": "a.json#0f", "event": "a.json"}, "run r1 of p for event a.json#0f ended COMPLETED"),
        ({"message_id": "17\n", "event": "a.json"}, "run r1 of p for event a.json (17\\n) ended COMPLETED"),
    ],
)
def test_the_end_tells_run_and_event(
    host: DaemonHost, process: Process, caplog: pytest.LogCaptureFixture, origin: dict[str, str], said: str
) -> None:
    """The line about the end of a run says which run it was and which event it came from."""
    caplog.set_level(logging.INFO, "iocflow.launch")
    perform(host, process(lambda context: None), 1, run_id="r1", **origin)
    assert caplog.messages[0].startswith(f"x: {said} after ")


def test_the_failing_activity_and_the_reason(host: DaemonHost, process: Process) -> None:
    """A failed run tells which activity failed first, by its path, and why."""
    inner = process(fail, name="inner")
    ended = perform(host, process(inner, name="outer"), 1)
    assert (ended.failing_activity, ended.reason) == ("inner/fail", "ValueError: no such fare")


def test_a_seed_of_the_wrong_shape(host: DaemonHost) -> None:
    """A seed that does not fit fails the run before any activity, and the reason names the field."""
    processor = SequenceProcessor([stop], context=Typed, name="typed")
    ended = perform(host, processor, {"drop": "much"})
    assert (ended.outcome, ended.failing_activity) == (Outcome.FAILED, "")
    assert ended.reason.startswith("SeedError: ")
    assert "drop" in ended.reason


def test_a_processor_that_cannot_be_launched(host: DaemonHost, caplog: pytest.LogCaptureFixture) -> None:
    """A launch that raises where it should return a run counts as failed, and is logged with its traceback."""

    class Broken:
        name = "broken"

        def launch(self, seed_data: object = None, **options: object) -> Run[Any]:
            raise TypeError("no such option")

    ended = perform(host, Broken())
    assert (ended.outcome, ended.acknowledgement) == (Outcome.FAILED, Acknowledgement.DEAD)
    assert counts(host) == {"started": 1, "failed": 1}
    assert "no such option" in caplog.text


def test_every_outcome_has_an_acknowledgement() -> None:
    """No outcome is left without an answer to the origin."""
    done = {one for one in Outcome if acknowledgement_of(one) is Acknowledgement.DONE}
    assert done == {Outcome.COMPLETED, Outcome.STOPPED, Outcome.SUBMITTED}


class Engine:
    """Takes the runs that are entrusted to it as a store does, unless it is in trouble."""

    def __init__(self, trouble: Exception | None = None) -> None:
        self.trouble = trouble

    def launch(self, processor: Any, seed: object, **asked: object) -> Run[Any]:
        if self.trouble is not None:
            raise self.trouble
        run: Run[Any] = Run()
        run.of, run.id, run.outcome, run.ticks = processor, "17", Outcome.SUBMITTED, [0.0]
        run.context = processor.new_context()
        return run


def test_a_durable_run_is_handed_over(host: DaemonHost, process: Process, caplog: pytest.LogCaptureFixture) -> None:
    """A run that was submitted is counted as that, told by the id that it has in its store, and dealt with."""
    caplog.set_level(logging.INFO, "iocflow.launch")
    processor = process(fail)
    processor.entrust(Engine())
    ended = perform(host, processor, 1)
    assert (ended.outcome, ended.acknowledgement) == (Outcome.SUBMITTED, Acknowledgement.DONE)
    assert counts(host) == {"started": 1, "submitted": 1}
    assert caplog.messages[-1].startswith("x: run 17 of p was submitted after 0.")
    assert vars(caplog.records[-1])["run_id"] == "17"


def test_a_store_in_trouble(host: DaemonHost, process: Process, caplog: pytest.LogCaptureFixture) -> None:
    """What the store could not take counts as a trouble, and its origin is told to bring it again."""
    processor = process(fail)
    processor.entrust(Engine(StoreLostError("the server is gone")))
    ended = perform(host, processor, 1)
    assert ended.acknowledgement is Acknowledgement.RETURNED
    assert counts(host) == {"started": 1, "errors": 1}
    assert "could not be submitted (StoreLostError: the server is gone)" in caplog.messages[-1]


def test_a_service_is_made_once(host: DaemonHost) -> None:
    """Launchers that ask for the same kind of service share one, which is started."""

    class Service:
        started = 0

        def __init__(self, lent: object) -> None:
            self.lent = lent

        def start(self) -> None:
            Service.started += 1

        def stop(self) -> None: ...

        def heartbeat(self) -> None: ...

        def trouble(self) -> str:
            return ""

    first = host.service(Service)
    assert host.service(Service) is first
    assert first.lent is host
    assert Service.started == 1
    assert host.services == (first,)
