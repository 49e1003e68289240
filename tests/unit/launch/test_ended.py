"""Which activity failed a run, of all that failed in it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iocflow import (
    CONTINUE,
    ForEachProcessor,
    ParallelSplitProcessor,
    ProcessContext,
    RetryingErrorHandler,
    SequenceProcessor,
    activity,
)
from iocflow.durable.engine import DurableEngine
from iocflow.durable.job import Job
from iocflow.durable.settings import WorkerSettings
from iocflow.launch.ended import failing_activity
from iocflow.run import Run
from iocflow.store import open_store


class Work(ProcessContext):
    """A context with a list."""

    seed_data: None
    items: tuple[int, ...] = (1, 2)
    item: int = 0
    lost: list[int]


def first(context: Work) -> None:
    raise ValueError("the first")


def same(context: Work) -> None:
    raise ValueError("the first")


def second(context: Work) -> None:
    raise KeyError("the second")


def fine(context: Work) -> None:
    """Do nothing."""


class Raising:
    """A handler that has trouble of its own."""

    def handle_error(self, context: Work, error: Exception) -> None:
        raise RuntimeError("the handler")


def seq(*steps: Any, name: str, **options: Any) -> Any:
    return SequenceProcessor(steps, context=Work, name=name, **options)


def forgiven(*steps: Any) -> Any:
    return activity(seq(*steps, name="inner"), on_error=CONTINUE)


CASES: dict[str, tuple[Callable[[], tuple[Any, ...]], dict[str, Any], str]] = {
    "one": (lambda: (fine, first), {}, "first"),
    "nested": (lambda: (seq(fine, first, name="inner"),), {}, "inner/first"),
    "after a nesting that was forgiven": (lambda: (forgiven(first), second), {}, "second"),
    "with an error that was forgiven before": (lambda: (forgiven(first), same), {}, "same"),
    "nested twice": (lambda: (forgiven(first), seq(forgiven(second), same, name="outer")), {}, "outer/same"),
    "before a finally that fails": (lambda: (first,), {"finally_": [second]}, "first"),
    "after tries": (lambda: (forgiven(second), activity(first, on_error=[RetryingErrorHandler(1)])), {}, "first"),
    "with a handler that raises": (lambda: (forgiven(second), activity(first, on_error=Raising())), {}, "first"),
    "in a branch": (
        lambda: (
            forgiven(second),
            ParallelSplitProcessor({"l": fine, "r": first}, context=Work, name="split"),
        ),
        {},
        "split/r/first",
    ),
    "behind items that may fail": (
        lambda: (ForEachProcessor("items", second, as_="item", may_fail="100%", failed="lost", context=Work), first),
        {},
        "first",
    ),
    "none": (lambda: (forgiven(first), fine), {}, ""),
}


def inline(processor: Any, folder: Path) -> Run[Any]:
    """Run here and now."""
    run: Run[Any] = processor.launch()
    return run


def durable(processor: Any, folder: Path) -> Run[Any]:
    """Run from a store, which has errors as records."""
    with contextlib.closing(open_store(f"sqlite:///{folder}/store.db")) as store:
        engine = DurableEngine(store, {processor.name: Job(processor)}, WorkerSettings(tick=0.05))
        return engine.launch(processor, None, run_id="", scheduled_for=None, idempotency_key="", here=True)


@pytest.mark.parametrize("engine", [inline, durable])
@pytest.mark.parametrize("case", CASES)
def test_the_activity_that_failed_the_run(case: str, engine: Callable[[Any, Path], Run[Any]], tmp_path: Path) -> None:
    """It is the innermost one with the error that ended the run, whatever else failed before or behind it."""
    steps, options, expected = CASES[case]
    run = engine(seq(*steps(), name="job", **options), tmp_path)
    assert failing_activity(run) == expected
