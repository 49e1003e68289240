"""A failure is in the log once, whatever is wired; records tell which run they belong to."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from behaviour.parts import Asking, Box, BrokenError, add, fail, fill_with_bad, to_square
from unit.core.conftest import Wire
from unit.core.kit import each, inner, split

from iocflow import (
    CONTINUE,
    FAIL,
    PASS,
    STOP,
    ForEachProcessor,
    GoTo,
    LoggingErrorHandler,
    Processor,
    RaisingErrorHandler,
    Retry,
    RetryingErrorHandler,
    RunLogFilter,
    SequenceProcessor,
    activity,
)
from iocflow.run import Run


def refuse_negative(context: Box) -> None:
    if context.item < 0:
        raise BrokenError(f"{context.item} is negative")


def hopeless(context: Any, error: Exception) -> Any:
    raise LookupError("the handler broke")


def hopeless_with_a_cause(context: Any, error: Exception) -> Any:
    raise LookupError("the handler broke") from OSError("no route")


def errors_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The exceptions that the log shows, each with the causes that it shows below it."""
    shown = []
    for record in caplog.records:
        if record.exc_info:
            error: BaseException | None = record.exc_info[1]
            words = []
            while error is not None:
                words.append(type(error).__name__)
                error = error.__cause__
            shown.append(" < ".join(words))
    return shown


LOGGING = LoggingErrorHandler()
ONCE = ["BrokenError"]
CASES: dict[str, tuple[Callable[[Wire], Processor[Any]], list[str]]] = {
    "no handler": (lambda wire: wire(add, fail), ONCE),
    "CONTINUE": (lambda wire: wire(activity(fail, on_error=CONTINUE), add), ONCE),
    "a default CONTINUE": (lambda wire: wire(fail, on_error=CONTINUE), ONCE),
    "a default None": (lambda wire: wire(fail, on_error=Asking(lambda context, error: None)), ONCE),
    "STOP": (lambda wire: wire(fail, on_error=STOP), ONCE),
    "FAIL": (lambda wire: wire(fail, on_error=FAIL), ONCE),
    "PASS": (lambda wire: wire(fail, on_error=PASS), ONCE),
    "GoTo": (lambda wire: wire(activity(fail, on_error=GoTo("add")), add), ONCE),
    "GoTo nowhere": (lambda wire: wire(fail, on_error=GoTo("nowhere")), ["BrokenError", "UnknownActivityError"]),
    "logging": (lambda wire: wire(fail, on_error=LOGGING), ONCE),
    "logging twice": (lambda wire: wire(activity(fail, on_error=LOGGING), on_error=[LOGGING, CONTINUE]), ONCE),
    "raising": (lambda wire: wire(fail, on_error=RaisingErrorHandler()), ONCE),
    "logging and raising": (lambda wire: wire(fail, on_error=[LOGGING, RaisingErrorHandler()]), ONCE),
    "a broken handler": (lambda wire: wire(fail, on_error=Asking(hopeless)), ["LookupError < BrokenError"]),
    "a broken handler with a cause": (
        lambda wire: wire(fail, on_error=Asking(hopeless_with_a_cause)),
        ["LookupError < OSError < BrokenError"],
    ),
    "logging and a broken handler": (
        lambda wire: wire(fail, on_error=[LOGGING, Asking(hopeless)]),
        ["BrokenError", "LookupError < BrokenError"],
    ),
    "retries": (lambda wire: wire(fail, on_error=RetryingErrorHandler(3)), ONCE * 3),
    "retries, logged": (lambda wire: wire(fail, on_error=[LOGGING, RetryingErrorHandler(3)]), ONCE * 3),
    "the bound": (
        lambda wire: wire(fail, on_error=Asking(lambda context, error: Retry()), max_steps=2),
        [*ONCE * 2, "StepLimitError"],
    ),
    "nested": (lambda wire: wire(inner(fail)), ONCE),
    "nested, logged inside and outside": (lambda wire: wire(inner(fail, on_error=LOGGING), on_error=LOGGING), ONCE),
    "nested, handled outside": (lambda wire: wire(inner(inner(fail)), on_error=CONTINUE), ONCE),
    "nested, retried outside": (lambda wire: wire(activity(inner(fail), on_error=RetryingErrorHandler(2))), ONCE * 2),
    "nested, a handler broken inside": (
        lambda wire: wire(inner(fail, on_error=Asking(hopeless)), on_error=LOGGING),
        ["LookupError < BrokenError"],
    ),
    "split": (lambda wire: wire(split(left=fail, right=add)), ONCE),
    "split, both fail": (lambda wire: wire(split(left=fail, right=fail)), ONCE * 2),
    "split, logged": (lambda wire: wire(activity(split(left=fail), on_error=LOGGING), on_error=LOGGING), ONCE),
    "split, handled": (lambda wire: wire(split(left=inner(fail)), on_error=CONTINUE), ONCE),
    "a join": (lambda wire: wire(split(left=add, right=[add, add])), ["JoinConflictError"]),
    "a join, logged": (lambda wire: wire(split(left=add, right=[add, add]), on_error=LOGGING), ["JoinConflictError"]),
    "for-each": (lambda wire: wire(fill_with_bad, each(to_square)), ONCE),
    "for-each, tolerated": (lambda wire: wire(fill_with_bad, each(to_square, may_fail=2)), ONCE * 2),
    "for-each, too many": (lambda wire: wire(fill_with_bad, each(to_square, may_fail=1), on_error=LOGGING), ONCE * 2),
    "for-each, in parallel": (lambda wire: wire(fill_with_bad, each([refuse_negative], parallel=2)), ONCE * 2),
    "for-each, tolerated in parallel": (
        lambda wire: wire(fill_with_bad, each(refuse_negative, parallel=2, may_fail=2)),
        ONCE * 2,
    ),
    "branches and their join": (
        lambda wire: wire(split(left=fail, one=add, two=[add, add]), on_error=LOGGING),
        [*ONCE, "JoinConflictError"],
    ),
    "tolerated items and their join": (
        lambda wire: wire(fill_with_bad, each(to_square, parallel=2, may_fail=2), on_error=LOGGING),
        [*ONCE * 2, "JoinConflictError"],
    ),
    "for-each, no items": (lambda wire: wire(ForEachProcessor("n", add, as_="item", context=Box)), ["TypeError"]),
    "finally": (lambda wire: wire(add, finally_=[fail]), ONCE),
    "finally after a failure": (lambda wire: wire(fail, finally_=[fail]), ONCE * 2),
    "finally inside": (lambda wire: wire(inner(fail, finally_=[fail]), on_error=LOGGING), ONCE * 2),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_failure_is_logged_once(wire: Wire, caplog: pytest.LogCaptureFixture, case: str) -> None:
    """Each failed attempt is in the log exactly once, with its traceback, and nothing that did not fail is."""
    build, expected = CASES[case]
    caplog.set_level(logging.INFO)
    build(wire).launch()
    assert errors_of(caplog) == expected
    assert len(caplog.records) == len(expected)


@pytest.mark.parametrize("handlers", [None, LOGGING, CONTINUE])
def test_a_seed_that_does_not_fit_is_logged_once(wire: Wire, caplog: pytest.LogCaptureFixture, handlers: Any) -> None:
    """Also a failure that is no activity's."""
    wire(add, on_error=handlers).launch("many")
    assert errors_of(caplog) == ["SeedError"]


def test_do_activities_logs_as_launch_does(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    """The error that is raised is in the log as well: who calls it may drop it."""
    with pytest.raises(BrokenError):
        wire(fail).do_activities()
    assert errors_of(caplog) == ONCE


def test_levels_and_words(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    """What ends the run is an error, what is dealt with a warning; the path of the activity is told."""
    flaky = activity(inner(fail), name="part", on_error=[RetryingErrorHandler(2), CONTINUE])
    wire(flaky, activity(fail, name="last", on_error=PASS)).launch()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", "part/fail failed"),
        ("ERROR", "part/fail failed"),
        ("ERROR", "last failed, decided: fail"),
    ]
    caplog.clear()
    wire(activity(fail, on_error=CONTINUE), activity(fail, on_error=GoTo("add")), add).launch()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "fail failed, decided: continue"),
        ("WARNING", "fail failed, decided: goto"),
    ]


def test_the_logging_handler_takes_level_and_logger(caplog: pytest.LogCaptureFixture) -> None:
    """The level is a number or a name; the logger can be the user's own."""
    for level, name in (("info", "INFO"), (logging.WARNING, "WARNING")):
        caplog.clear()
        caplog.set_level(logging.INFO)
        SequenceProcessor([fail], context=Box, on_error=LoggingErrorHandler(level, logger="mine")).launch()
        assert [(one.name, one.levelname, one.getMessage()) for one in caplog.records] == [
            ("mine", name, "fail failed")
        ]


def test_the_logging_handler_works_outside_of_a_run(caplog: pytest.LogCaptureFixture) -> None:
    """A test may call it by itself."""
    assert LOGGING.handle_error(Box(), BrokenError("alone")) is PASS
    assert caplog.messages == ["activity failed"]


# Which run a record belongs to.


@pytest.fixture
def stamped() -> Any:
    """The records of the logger `app`, with the fields that RunLogFilter adds."""
    records: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler, logger = Keep(), logging.getLogger("app")
    handler.addFilter(RunLogFilter())
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


def say(context: Box) -> None:
    logging.getLogger("app").warning("said")


async def say_later(context: Box) -> None:
    await asyncio.sleep(0)
    logging.getLogger("app").warning("said later")


def fields(record: Any) -> tuple[str, str, str, int]:
    return record.run_id, record.processor, record.activity, record.attempt


def test_records_carry_the_run(wire: Wire, stamped: list[Any]) -> None:
    """Run, processor, activity and attempt are on records from activities, branches, items, the loop and handlers."""

    def ask(context: Any, error: Exception) -> Any:
        say(context)
        return Retry() if context.step.attempt == 1 else CONTINUE

    steps = [say, inner(say), split(left=say, right=[say_later]), say_later, activity(fail, on_error=Asking(ask))]
    run = wire(*steps, fill_with_bad, each(say, parallel=2)).launch(run_id="r1")
    assert run.outcome.name == "COMPLETED"
    assert all(fields(record)[:2] == ("r1", "main") for record in stamped)
    places = [fields(record)[2:] for record in stamped]
    assert sorted(places[2:4]) == [("split/left/say", 1), ("split/right/say-later", 1)]
    assert [*places[:2], *places[4:]] == [
        ("say", 1),
        ("inner/say", 1),
        ("say-later", 1),
        ("fail", 1),
        ("fail", 2),
        *[("each/say", 1)] * 4,
    ]


def test_records_outside_of_a_run_are_empty(wire: Wire, stamped: list[Any]) -> None:
    """Before and after a run, failed or not, nothing is claimed."""
    say(Box())
    wire(say).do_activities()
    wire(fail).launch()
    say(Box())
    assert fields(stamped[0]) == fields(stamped[-1]) == ("", "", "", 1)
    assert stamped[1].activity == "say"


def test_a_record_of_another_filter_is_kept(stamped: list[Any]) -> None:
    """A field that the record has already is left as it is."""
    logging.getLogger("app").warning("said", extra={"run_id": "mine"})
    assert fields(stamped[0]) == ("mine", "", "", 1)


def test_a_run_inside_of_a_run(wire: Wire, stamped: list[Any]) -> None:
    """A run that an activity starts has its own id on its records; afterwards the outer one's is back."""
    inner = wire(say, activity(fail, on_error=CONTINUE), say_later)

    def start(context: Box) -> None:
        say(context)
        context.inner = inner.do_activities()  # type: ignore[attr-defined]
        say(context)

    run: Run[Any] = wire(start, say).do_activities()
    ids = [record.run_id for record in stamped]
    assert ids == [run.id, run.context.inner.id, run.context.inner.id, run.id, run.id]


def test_runs_in_many_threads(wire: Wire, stamped: list[Any]) -> None:
    """Runs at the same time do not mix their ids up."""
    processor = wire(say, say_later, activity(say, time_limit=5), split(left=say, right=say_later), say)
    threads = [threading.Thread(target=processor.launch, kwargs={"run_id": f"r{i}"}) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {i: sum(record.run_id == f"r{i}" for record in stamped) for i in range(20)} == dict.fromkeys(range(20), 6)


def test_a_task_left_behind_keeps_the_id_of_its_run(wire: Wire, stamped: list[Any]) -> None:
    """What an awaited activity leaves on the loop does not speak in the name of the thread's next run."""
    gate, done = threading.Event(), threading.Event()

    async def late() -> None:
        while not gate.is_set():
            await asyncio.sleep(0.002)
        logging.getLogger("app").warning("late")
        done.set()

    async def leave(context: Box) -> None:
        context.task = asyncio.get_running_loop().create_task(late())  # type: ignore[attr-defined]

    def wait(context: Box) -> None:
        gate.set()
        assert done.wait(5)

    first = wire(leave)
    run = first.launch(run_id="one")
    wire(wait).launch(run_id="two")
    assert run.outcome.name == "COMPLETED"
    assert [record.run_id for record in stamped] == ["one"]


def test_a_copied_context_sees_the_run(wire: Wire, stamped: list[Any]) -> None:
    """A thread that an activity starts with a copy of its context belongs to the run, one without does not."""

    def start(context: Box) -> None:
        for run in (contextvars.copy_context().run, lambda call, argument: call(argument)):
            thread = threading.Thread(target=run, args=(say, context))
            thread.start()
            thread.join()

    wire(start).launch(run_id="r1")
    assert [record.run_id for record in stamped] == ["r1", ""]


def test_observers_speak_in_the_name_of_the_run(stamped: list[Any]) -> None:
    """What an observer logs carries the run, from its beginning to its end."""
    seen: list[str] = []

    def observe(event: Any) -> None:
        say(Box())
        seen.append(type(event).__name__)

    SequenceProcessor([add], context=Box, observers=[observe]).launch(run_id="r1")
    assert seen == ["RunStarted", "StepStarted", "StepFinished", "RunFinished"]
    assert [record.run_id for record in stamped] == ["r1"] * 4


class Seeded(Box):
    def set_seed_data(self, seed_data: Any) -> None:
        say(self)


def test_a_seed_is_set_in_the_name_of_no_activity(wire: Wire, stamped: list[Any]) -> None:
    """What is logged meanwhile belongs to the run, and to none of its activities."""
    wire(add, context=Seeded).launch(7, run_id="r1")
    assert [fields(record) for record in stamped] == [("r1", "main", "", 1)]
