"""`context.step`: what the engine lends."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from behaviour.parts import Asking, Box, BrokenError, add, fail_twice, fill
from unit.core.conftest import Wire
from unit.core.kit import each, inner, nothing, split

from iocflow import (
    PASS,
    ExclusiveChoiceProcessor,
    ForEachProcessor,
    GoTo,
    ParallelSplitProcessor,
    ProcessContext,
    Retry,
    RetryingErrorHandler,
    SequenceProcessor,
    StepInfo,
    activity,
)


class Keys:
    """An activity that notes its idempotency keys, and fails as often as it is told."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.seen: list[str] = []

    def __call__(self, context: Box) -> None:
        self.seen.append(context.step.idempotency_key)
        if context.step.attempt <= self.failures:
            raise BrokenError("not yet")


def test_outside_of_a_run_it_is_empty() -> None:
    """An activity can be called in a test: `step` is there, with nothing in it, and the memo works."""
    context = Box()
    step = context.step
    assert (step.run_id, step.processor, step.activity, step.attempt, step.idempotency_key) == ("", "", "", 1, "")
    assert (step.deadline, step.remaining(), step.cancelled, step.scheduled_for) == (None, None, False, None)
    step.memo["a"] = 1
    assert context.step.memo == {"a": 1}
    fail_twice_ready = copy.copy(context)
    assert fail_twice_ready.step.memo == {}


def test_inside_of_a_run_it_tells_which(wire: Wire) -> None:
    """Run, processor, activity, attempt and the scheduled time are told, also in nested processors."""
    seen: list[tuple[object, ...]] = []

    def look(context: Box) -> None:
        step = context.step
        seen.append((step.run_id, step.processor, step.activity, step.attempt, step.scheduled_for))

    due = datetime(2005, 4, 11, tzinfo=UTC)
    processor = wire(look, inner(look, name="inner"), split(left=look), look)
    run = processor.launch(run_id="r1", scheduled_for=due)
    assert run.raise_for_error().id == "r1"
    names = ["look", "inner/look", "split/left/look", "look"]
    assert seen == [("r1", "main", name, 1, due) for name in names]


def test_an_unset_field_is_told_with_its_reader(wire: Wire) -> None:
    """UnsetError names the field and the activity that read it."""

    class Bare(ProcessContext):
        fares: list[int]

    def read(context: Bare) -> None:
        context.fares.append(1)

    run = wire(read, context=Bare).launch()
    assert str(run.error) == "Bare.fares is not set (read read it before any activity set it)"


def test_attempts_are_counted(wire: Wire) -> None:
    """The activity and its handler see which attempt it is; the next activity begins with 1."""
    seen: list[tuple[str, int]] = []

    def flaky(context: Box) -> None:
        seen.append(("activity", context.step.attempt))
        if context.step.attempt < 3:
            raise BrokenError("not yet")

    def ask(context: Any, error: Exception) -> Any:
        seen.append(("handler", context.step.attempt))
        return Retry()

    wire(flaky, lambda context: seen.append(("next", context.step.attempt)), on_error=Asking(ask)).do_activities()
    expected = [("activity", 1), ("handler", 1), ("activity", 2), ("handler", 2), ("activity", 3), ("next", 1)]
    assert seen == expected


def test_the_memo_lives_as_long_as_the_step(wire: Wire) -> None:
    """It is kept over attempts, seen by the handler, and empty in the next step, also when the activity is the same."""
    seen: list[list[str]] = []

    def note(context: Box) -> None:
        memo = context.step.memo
        memo[f"attempt {context.step.attempt}"] = True
        seen.append(list(memo))
        if context.step.attempt == 1:
            raise BrokenError("not yet")

    def ask(context: Any, error: Exception) -> Any:
        context.step.memo["asked"] = True
        return Retry()

    wire(note, note, on_error=Asking(ask)).do_activities()
    assert seen == [["attempt 1"], ["attempt 1", "asked", "attempt 2"]] * 2


def test_the_memo_of_an_item_is_its_own(wire: Wire) -> None:
    """Each item of a for-each, in order or in parallel, begins with an empty memo."""
    seen: list[int] = []

    def note(context: Box) -> None:
        seen.append(len(context.step.memo))
        context.step.memo["seen"] = True

    wire(fill, each(note), each(note, parallel=2), each([note, note])).do_activities()
    assert seen == [0] * 12


def test_keys_are_the_same_for_every_attempt(wire: Wire) -> None:
    """Retries hand the same key to foreign systems, also where the engine takes over from the quick path."""
    first, flaky, last = Keys(), Keys(failures=2), Keys()
    run = wire(first, flaky, last, on_error=RetryingErrorHandler(attempts=3)).do_activities()
    assert run.outcome.name == "COMPLETED"
    assert [len(set(one.seen)) for one in (first, flaky, last)] == [1, 1, 1]
    assert len({*first.seen, *flaky.seen, *last.seen}) == 3


def test_keys_are_the_same_when_a_composite_is_tried_again(wire: Wire) -> None:
    """All of a composite runs again at its retry, with the keys of the first time."""
    keys, flaky = Keys(), Keys()

    def fail_once(context: Box) -> None:
        context.n += 1
        if context.n == 1:
            raise BrokenError("not yet")

    body = inner(keys, split(left=flaky), fail_once)
    wire(activity(body, on_error=RetryingErrorHandler(2))).do_activities()
    assert [(len(one.seen), len(set(one.seen))) for one in (keys, flaky)] == [(2, 1), (2, 1)]


@pytest.mark.parametrize(
    ("count", "steps"),
    [
        (2, lambda key: [key, key]),
        (4, lambda key: [inner(key, key), key, inner(key)]),
        (3, lambda key: [fill, each(key)]),
        (3, lambda key: [fill, each(key, parallel=2)]),
        (6, lambda key: [fill, each([key, key])]),
        (6, lambda key: [fill, each([key, key], parallel=3)]),
        (6, lambda key: [fill, each(key), each(key)]),
        (2, lambda key: [split(left=key, right=key)]),
        (6, lambda key: [fill, each(split(left=key, right=key))]),
        (6, lambda key: [fill, each(split(left=key, right=key), parallel=2)]),
        (9, lambda key: [fill, each(inner(fill, ForEachProcessor("items", key, as_="n", parallel=2, context=Box)))]),
        (4, lambda key: [split(left=split(left=key, right=key), right=split(left=key, right=key))]),
    ],
)
def test_keys_are_distinct(wire: Wire, count: int, steps: Any) -> None:
    """No two steps of a run have the same key, however they are nested; another run has other keys."""
    key = Keys()
    processor = wire(*steps(key))
    for runs in (1, 2):
        assert processor.do_activities().outcome.name == "COMPLETED"
        assert len(key.seen) == runs * count
        assert Counter(key.seen).most_common(1)[0][1] == 1


def test_keys_are_distinct_in_loops() -> None:
    """A loop of an exclusive choice, and a step that a GoTo comes back to, are steps of their own each time."""
    key = Keys()

    def again(context: Box) -> str:
        context.n += 1
        return "again" if context.n < 4 else "enough"

    routes = {"key": {"else": "more"}, "more": {"again": "key", "else": "end"}}
    ExclusiveChoiceProcessor(routes, {"key": key, "more": again}, context=Box).do_activities()

    def fail_twice(context: Box) -> None:
        context.n += 1
        if context.n < 3:
            raise BrokenError("back")

    inner(key, activity(fail_twice, on_error=GoTo("keys"))).do_activities()
    assert len(key.seen) == len(set(key.seen)) == 4 + 3


def test_keys_begin_with_what_the_launcher_gives(wire: Wire) -> None:
    """A cause that is launched again after a crash gives every step the key it had."""
    keys = Keys(failures=1), Keys()
    processor = wire(*keys, split(left=keys[1]), on_error=RetryingErrorHandler(2))
    for run_id in ("one", "two"):
        processor.launch(run_id=run_id, idempotency_key="event 7")
    assert [len(set(one.seen)) for one in keys] == [1, 2]
    assert all(key.startswith("event 7/") for one in keys for key in one.seen)


def test_keys_do_not_depend_on_the_engine() -> None:
    """The quick path and the loop give the same keys, so that hooks can be wired between a crash and its repetition."""
    seen = []
    for observers in ([], [lambda event: None]):
        key = Keys()
        run = SequenceProcessor([key, add, key], context=Box, observers=observers).do_activities()
        seen.append([one.replace(run.id, "run") for one in key.seen])
    assert seen[0] == seen[1]


def test_step_belongs_to_the_step_under_way(wire: Wire) -> None:
    """A reference that an activity keeps goes on telling of its own step."""
    kept: list[StepInfo] = []

    def keep(context: Box) -> None:
        kept.append(context.step)

    wire(keep, add, inner(keep, name="inner"), keep).do_activities()
    assert [step.activity for step in kept] == ["keep", "inner/keep", "keep"]
    assert len({step.idempotency_key for step in kept}) == 3


def test_step_is_seen_from_threads_and_tasks(wire: Wire) -> None:
    """An activity may hand its context to threads and tasks of its own: `step` is the same there."""
    seen: list[str] = []

    def look(context: Box) -> None:
        seen.append(context.step.activity)

    def threaded(context: Box) -> None:
        thread = threading.Thread(target=look, args=[context])
        thread.start()
        thread.join()

    async def tasked(context: Box) -> None:
        await asyncio.gather(asyncio.to_thread(look, context), asyncio.sleep(0))

    wire(threaded, tasked).do_activities()
    assert seen == ["threaded", "tasked"]


def test_step_is_never_stored(wire: Wire) -> None:
    """A context can be copied and pickled inside of a run; the copy has the fields, and an empty `step`."""
    copies: list[Box] = []

    def store(context: Box) -> None:
        context.n, context.next_activity = 5, "somewhere"
        copies.extend([copy.copy(context), copy.deepcopy(context), pickle.loads(pickle.dumps(context))])

    run = wire(store).do_activities()
    assert run.outcome.name == "COMPLETED"
    for one in copies:
        assert (one.n, one.step.run_id, one.next_activity) == (5, "", None)
        assert vars(one) == {"n": 5}


def test_the_failure_is_seen_by_the_handlers_only(wire: Wire) -> None:
    """While handlers are asked, `step.failure` is the error as data; before and after it is None."""
    seen: list[Any] = []

    def flaky(context: Box) -> None:
        seen.append(context.step.failure)
        fail_twice(context)

    def ask(context: Any, error: Exception) -> Any:
        failure = context.step.failure
        seen.append((failure["type"].rpartition(".")[2], failure["message"], failure["logged"]))
        return Retry() if context.step.attempt < 3 else PASS

    wire(activity(flaky, on_error=Asking(ask)), lambda context: seen.append(context.step.failure)).do_activities()
    assert seen == [None, ("BrokenError", "not yet", False), None, ("BrokenError", "not yet", False), None, None]


class Unfilled(ProcessContext):
    lines: list[str]
    line: str


def look(context: Unfilled, branches: object = None) -> None:
    _ = context.line


@pytest.mark.parametrize("parallel", [0, 2])
def test_a_for_each_that_reads_an_unset_field_is_named(parallel: int) -> None:
    """It is the for-each that read the items, and not the activity before it."""
    loop = ForEachProcessor("lines", nothing, as_="line", parallel=parallel, context=Unfilled, name="loop")
    run = SequenceProcessor([nothing, loop], context=Unfilled).launch()
    assert "lines is not set (loop read it" in str(run.error)


def test_a_joiner_that_reads_an_unset_field_is_named() -> None:
    """It is the split, and not the activity before it."""
    split = ParallelSplitProcessor({"a": nothing}, join=look, context=Unfilled, name="split")
    run = SequenceProcessor([nothing, split], context=Unfilled).launch()
    assert "line is not set (split read it" in str(run.error)
