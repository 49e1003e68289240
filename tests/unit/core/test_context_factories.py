"""Contexts that cannot be made, and what makes none."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass
from typing import Any

import pytest
from behaviour.parts import Asking, Box, add
from unit.core.conftest import Wire

from iocflow import (
    ProcessContext,
    SequenceProcessor,
)


class Breaking(Box):
    def __init__(self) -> None:
        raise OSError("no room")


def break_down() -> Box:
    raise OSError("no room")


@dataclass(frozen=True)
class Frozen(ProcessContext):
    n: int = 0


class StillFrozen(Frozen):
    pass


FACTORIES: list[tuple[Any, str]] = [
    (Breaking, "no room"),
    (break_down, "no room"),
    (lambda: 5, "main: context= is the class of contexts or a function that makes one, not a int"),
    (lambda: None, "main: context= is the class of contexts or a function that makes one, not a NoneType"),
    (lambda: Box, "main: context= is the class of contexts or a function that makes one, not a type"),
    (Frozen, "main: Frozen is frozen, and activities set fields: leave frozen=True out"),
]


@pytest.mark.parametrize(("factory", "told"), FACTORIES)
@pytest.mark.parametrize("seed", [None, 7])
def test_a_context_that_cannot_be_made_fails_the_run(
    wire: Wire, factory: Any, told: str, seed: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """`launch` returns a FAILED run, logged once, with no handler asked; `do_activities` raises the error."""
    asked: list[object] = []
    handler = Asking(lambda context, error: asked.append(error))
    make = functools.partial(Frozen) if factory is Frozen else factory
    processor = wire(add, context=make, on_error=handler, finally_=[asked.append])
    run = processor.launch(seed, run_id="r1")
    assert (run.id, run.outcome.name, run.raises, run.steps, asked) == ("r1", "FAILED", True, (), [])
    assert str(run.error).startswith(told)
    assert (run.stop_reason, run.ended >= run.started, type(run.context)) == ("", True, ProcessContext)
    assert [(record.getMessage(), record.exc_info[1]) for record in caplog.records if record.exc_info] == [
        ("main failed", run.error)
    ]
    with pytest.raises(type(run.error), match=told[:20]):  # type: ignore[arg-type]
        processor.do_activities(seed)
    with pytest.raises(type(run.error), match=told[:20]):  # type: ignore[arg-type]
        asyncio.run(processor.do_activities_async(seed))


def test_observers_hear_of_a_run_without_a_context() -> None:
    """It begins and ends for them as every run does."""
    events: list[Any] = []
    SequenceProcessor([add], context=break_down, observers=[events.append]).launch()
    assert [type(event).__name__ for event in events] == ["RunStarted", "RunFinished"]
    assert (events[-1].outcome.name, str(events[-1].error)) == ("FAILED", "no room")


def test_an_interruption_while_a_context_is_made_passes(wire: Wire) -> None:
    """It is no error of the run."""

    def leave() -> Box:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wire(add, context=leave).launch()


@pytest.mark.parametrize("context", [Frozen, StillFrozen, type("Sub", (Frozen,), {})])
def test_a_frozen_context_is_refused_when_wired(wire: Wire, context: Any) -> None:
    """Activities set fields: the processor is not even built, and what to write instead is told."""
    with pytest.raises(TypeError, match=rf"^main: {context.__name__} is frozen, .* leave frozen=True out"):
        wire(add, context=context)
