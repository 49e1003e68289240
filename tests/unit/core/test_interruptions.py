"""Interruptions are no errors: they pass handlers, `finally` and the log by."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from behaviour.parts import Asking, Box, add, fail, fill
from unit.core.kit import Steering, inner

from iocflow import (
    CONTINUE,
    ForEachProcessor,
    ParallelSplitProcessor,
    Retry,
    RunFinished,
    SequenceProcessor,
    activity,
)

Events = list[Any]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, GeneratorExit, BaseExceptionGroup])
@pytest.mark.parametrize("where", ["activity", "nested", "branch", "item", "handler", "finally", "seed", "interceptor"])
def test_interruptions_are_no_errors(interruption: Any, where: str, caplog: pytest.LogCaptureFixture) -> None:
    """They propagate from wherever they are raised: no handler, no `finally`, no log, and the run is INTERRUPTED."""
    events: Events = []
    after: list[str] = []
    caplog.set_level(logging.INFO)
    raised = interruption("bye", [KeyboardInterrupt()]) if interruption is BaseExceptionGroup else interruption("bye")

    def leave(context: Any, *more: Any) -> Any:
        raise raised

    class Seeded(Box):
        def set_seed_data(self, seed_data: Any) -> None:
            leave(self)

    def note(context: Any) -> None:
        after.append("after")

    steps: dict[str, list[Any]] = {
        "activity": [leave],
        "nested": [inner(leave, on_error=CONTINUE, finally_=[note])],
        "branch": [ParallelSplitProcessor({"a": leave, "b": add}, context=Box)],
        "item": [fill, ForEachProcessor("items", leave, as_="item", parallel=2, may_fail=3, context=Box)],
        "handler": [activity(fail, on_error=Asking(leave))],
        "finally": [inner(add, finally_=[leave, note], on_error=CONTINUE)],
    }
    steer = Steering(leave) if where == "interceptor" else Steering(lambda step, context, proceed: proceed())
    processor = SequenceProcessor(
        [*steps.get(where, [add]), note],
        context=Seeded,
        observers=[events.append],
        interceptors=[steer],
        on_error=CONTINUE,
        finally_=[note],
    )
    with pytest.raises(interruption) as caught:
        processor.launch(1 if where == "seed" else None)
    assert caught.value is raised
    assert after == []
    assert (type(events[-1]), events[-1].outcome.name, events[-1].error) == (RunFinished, "INTERRUPTED", raised)
    assert [record for record in caplog.records if "bye" in str(record.exc_info)] == []


def test_the_quick_path_is_interrupted_too() -> None:
    """Without hooks as well: it propagates, and the thread's next run is as always."""

    def leave(context: Box) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SequenceProcessor([add, leave], context=Box, on_error=CONTINUE, finally_=[]).do_activities()
    assert SequenceProcessor([add], context=Box).do_activities().outcome.name == "COMPLETED"


def test_an_interruption_drops_the_items_that_wait() -> None:
    """Items that have not begun when another is interrupted do not run any more."""
    began: list[int] = []

    def many(context: Box) -> None:
        context.items = tuple(range(500))

    def work(context: Box) -> None:
        began.append(context.item)
        time.sleep(0.002)
        if context.item == 3:
            raise SystemExit("enough")

    each = ForEachProcessor("items", work, as_="item", parallel=2, context=Box)
    with pytest.raises(SystemExit):
        SequenceProcessor([many, each], context=Box).do_activities()
    assert len(began) < 250


def test_retrying_stops_at_an_interruption() -> None:
    """A handler that would always retry is not asked."""

    def leave(context: Box) -> None:
        context.n += 1
        raise SystemExit

    context = Box()
    with pytest.raises(SystemExit):
        SequenceProcessor([leave], context=lambda: context, on_error=Asking(lambda *_: Retry())).do_activities()
    assert context.n == 1


# Branches end at once.


async def hang(context: Any) -> None:
    await asyncio.sleep(60)


RETRIED = activity(fail, on_error=Asking(lambda *_: Retry(60)))
WAITING: dict[str, Any] = {
    "a pause": RETRIED,
    "what is awaited": activity(hang),
    "a pause deep inside": inner(inner(RETRIED, name="deep"), finally_=[add]),
    "nested branches": ParallelSplitProcessor({"l": hang, "r": RETRIED}, context=Box, name="nested"),
    "parallel items": inner(fill, ForEachProcessor("items", hang, as_="item", parallel=2, context=Box)),
}
QUIT = """
import os, signal, threading
from unit.core.test_interruptions import Box, ParallelSplitProcessor, SequenceProcessor, WAITING, note_after

def leave(number, frame):
    raise {error}

signal.signal(signal.SIGTERM, leave)
split = ParallelSplitProcessor(dict(left=WAITING[{waiting!r}], right=WAITING[{waiting!r}]), context=Box)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
try:
    SequenceProcessor([split, note_after], context=Box, finally_=[note_after]).do_activities()
except {error} as raised:
    print("left", type(raised).__name__, *sorted(thread.name for thread in threading.enumerate()))
"""


def note_after(context: Any) -> None:
    print("went on")


@pytest.mark.parametrize("waiting", WAITING)
@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit"])
def test_a_signal_ends_waiting_branches(waiting: str, error: str) -> None:
    """What a signal handler raises in the thread that waits for branches passes at once, and leaves no branch."""
    program = QUIT.format(waiting=waiting, error=error)
    paths = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parents[3])])
    environment = {**os.environ, "PYTHONPATH": paths}
    began = time.monotonic()
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=50, check=False)
    assert time.monotonic() - began < 30
    names = done.stdout.split()
    assert names[:2] == ["left", error], done.stderr
    assert set(names[2:]) <= {"MainThread", "iocflow-async"}
    assert "Halted" not in done.stderr


@pytest.mark.parametrize("waiting", WAITING)
def test_an_interrupted_branch_ends_the_others(waiting: str, caplog: pytest.LogCaptureFixture) -> None:
    """What one raises passes at once; the others are not told of as failed."""
    raised = SystemExit("enough")

    def leave(context: Box) -> None:
        time.sleep(0.1)
        raise raised

    caplog.set_level(logging.ERROR)
    began = time.monotonic()
    with pytest.raises(SystemExit) as caught:
        ParallelSplitProcessor({"left": WAITING[waiting], "right": leave}, context=Box).launch()
    assert caught.value is raised
    assert time.monotonic() - began < 30
    assert caplog.records == []
