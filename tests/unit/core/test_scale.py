"""Long sequences, many items and many failures cost what their number says, and no more."""

from __future__ import annotations

import gc
import logging
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from behaviour.parts import Box, BrokenError, add

from iocflow import (
    CONTINUE,
    ExclusiveChoiceProcessor,
    ForEachProcessor,
    ParallelSplitProcessor,
    Processor,
    RetryingErrorHandler,
    SequenceProcessor,
    activity,
)

MILLION = 10**6


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep pytest from keeping thousands of log records, and older garbage out of the figures."""
    monkeypatch.setattr(logging.getLogger("iocflow"), "disabled", True)
    gc.collect()
    yield
    gc.collect()


def nothing(context: Any) -> None:
    """Change nothing."""


def refuse(context: Box) -> None:
    raise BrokenError(str(context.item))


def looped(*steps: Any, **options: Any) -> Processor[Any]:
    """A sequence in the loop, not on the quick path."""
    return SequenceProcessor(steps, context=Box, max_steps=MILLION, finally_=[nothing], **options)


def each(count: int, body: Any, **options: Any) -> Processor[Any]:
    def fill(context: Box) -> None:
        context.items = tuple(range(count))

    return SequenceProcessor([fill, ForEachProcessor("items", body, as_="item", context=Box, **options)], context=Box)


def choice(count: int) -> Processor[Any]:
    names = [f"a{i}" for i in range(count)]
    routes: dict[str, Any] = dict(zip(names, [*names[1:], "end"], strict=True))
    return ExclusiveChoiceProcessor(routes, dict.fromkeys(names, nothing), context=Box, max_steps=MILLION)


LINEAR: dict[str, Callable[[int], Processor[Any]]] = {
    "steps": lambda n: looped(*[nothing] * n),
    "different steps": lambda n: looped(*[lambda context: None for _ in range(n)]),
    "handled failures": lambda n: looped(*[activity(refuse, on_error=CONTINUE)] * n),
    "named results": lambda n: SequenceProcessor([lambda context: "yes"] * n, context=Box, max_steps=MILLION),
    "items": lambda n: each(n, nothing),
    "items with limits": lambda n: each(n, [activity(nothing, time_limit=60)]),
    "items that fail": lambda n: each(n, refuse, may_fail="100%", failed="lost"),
    "items that are tried again": lambda n: each(n, activity(refuse, on_error=[RetryingErrorHandler(2), CONTINUE])),
    "items in parallel": lambda n: each(n, nothing, parallel=4),
}


@pytest.mark.parametrize("case", LINEAR)
def test_cost_grows_with_the_number(case: str) -> None:
    """Four times as much takes about four times as long; a busy machine makes some measurements worse, never all."""

    def cost(count: int) -> float:
        taken = []
        for _ in range(2):
            gc.collect()
            gc.freeze()  # or a collection, which comes only with many items, looks at all that other tests left
            began = time.process_time()
            assert LINEAR[case](count).launch().outcome.name == "COMPLETED"
            taken.append(time.process_time() - began)
            gc.unfreeze()
        return min(taken)

    assert any(cost(2_000) < 9 * cost(500) for _ in range(8))


def test_ten_thousand_items_in_order() -> None:
    """They take a row of the trail each."""
    run = each(10_000, add).do_activities()
    assert (run.context.n, len(run.steps)) == (10_000, 10_002)


def test_ten_thousand_items_in_parallel() -> None:
    """No more threads than were asked for, all results in item order."""
    threads: set[int] = set()
    most = 0

    def square(context: Box) -> None:
        nonlocal most
        threads.add(threading.get_ident())
        most = max(most, sum(thread.name.startswith("iocflow-branch") for thread in threading.enumerate()))
        context.square = context.item**2

    run = each(10_000, square, parallel=8, collect={"squares": "square"}).do_activities()
    assert run.context.squares == [i**2 for i in range(10_000)]
    assert len(threads) <= 8 >= most
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("iocflow-branch")]


@pytest.mark.parametrize(
    ("build", "megabytes"),
    [
        (lambda: each(4_000, nothing), 4),
        (lambda: each(4_000, [activity(nothing, time_limit=60)]), 5),
        (lambda: each(4_000, refuse, may_fail="100%", failed="lost"), 30),
        (lambda: each(4_000, activity(refuse, on_error=CONTINUE)), 25),
        (lambda: each(4_000, nothing, parallel=4), 30),
    ],
    ids=["items", "limits", "failures", "handled", "parallel"],
)
def test_memory_grows_with_the_number(build: Callable[[], Processor[Any]], megabytes: int) -> None:
    """What a run of 4,000 items needs at its peak is a few kilobytes an item: failures keep no positions alive."""
    processor = build()
    tracemalloc.start()
    try:
        run = processor.launch()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(run.steps) >= 4_000
    assert peak < megabytes * 1_000_000


def test_a_thousand_activities_to_choose_from() -> None:
    """A choice of a thousand goes through all of them."""
    assert len(choice(1_000).do_activities().steps) == 1_000


def test_two_hundred_branches() -> None:
    """They all run at once."""
    barrier = threading.Barrier(200)
    branches = {f"b{i}": lambda context: (barrier.wait(20), None)[1] for i in range(200)}
    run = ParallelSplitProcessor(branches, context=Box).do_activities()
    assert (run.outcome.name, len(run.steps)) == ("COMPLETED", 400)


def test_a_hundred_processors_nested() -> None:
    """Depth costs positions, not stack: `advance` keeps its own."""
    processor = looped(add, name="level")
    for _ in range(100):
        processor = SequenceProcessor([processor], context=Box, name="level")
    run = processor.do_activities()
    assert (run.context.n, len(run.steps)) == (1, 102)
