"""What a run leaves behind in memory and in threads."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from behaviour.parts import Box, add, fail, fresh, stop
from unit.core.conftest import Wire

from iocflow import CONTINUE, ParallelSplitProcessor, activity


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Keep the garbage collector from coming by, so that only what nobody refers to is freed."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize(
    "steps",
    [
        [add, add],
        [add, stop],
        [fresh, add],
        [add, ParallelSplitProcessor({"l": add, "r": fresh}, join=lambda context, forks: forks["r"], context=Box)],
    ],
    ids=["completed", "stopped", "new context", "split"],
)
def test_a_run_is_freed_at_once(wire: Wire, steps: list[Any]) -> None:
    """A run that nobody holds any more is freed without the garbage collector: it is in no reference cycle."""
    run = wire(*steps).do_activities()
    gone = [weakref.ref(run), weakref.ref(run.context)]
    del run
    assert [one() for one in gone] == [None, None]


@pytest.mark.usefixtures("uncollected")
def test_a_context_outlives_its_run(wire: Wire) -> None:
    """Holding the context of a run does not hold the run: its `step` is empty again."""
    run = wire(add, fresh, add).do_activities()
    gone, context = weakref.ref(run), run.context
    del run
    assert gone() is None
    assert (context.step.run_id, context.step.activity) == ("", "")


def test_a_failed_run_is_collected(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors refer to frames, and those to the run; the garbage collector gets all of it."""
    monkeypatch.setattr(logging.getLogger("iocflow"), "disabled", True)  # pytest keeps log records, and their errors
    run = wire(activity(fail, on_error=CONTINUE), fresh, fail).launch()
    gone = [weakref.ref(run), weakref.ref(run.context)]
    del run
    gc.collect()
    assert [one() for one in gone] == [None, None]
