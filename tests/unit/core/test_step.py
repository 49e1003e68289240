"""`context.step`: what the engine lends."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from behaviour.parts import Asking, Box, BrokenError, add, fail_twice, fill
from unit.core.conftest import Wire

from iocflow import (
    CONTINUE,
    PASS,
    ExclusiveChoiceProcessor,
    ForEachProcessor,
    GoTo,
    ParallelSplitProcessor,
    ProcessContext,
    Processor,
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


def nested(*steps: Any, **options: Any) -> Processor[Any]:
    return SequenceProcessor(steps, **{"context": Box, **options})


def each(body: Any, **options: Any) -> Processor[Any]:
    return ForEachProcessor("items", body, as_="item", context=Box, **options)


def split(**branches: Any) -> Processor[Any]:
    return ParallelSplitProcessor(branches, context=Box)


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
    processor = wire(look, nested(look, name="inner"), split(left=look), look)
    run = processor.launch(run_id="r1", scheduled_for=due)
    assert run.raise_for_error().id == "r1"
    names = ["look", "inner/look", "parallel-split-processor/left/look", "look"]
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

    body = nested(keys, split(left=flaky), fail_once)
    wire(activity(body, on_error=RetryingErrorHandler(2))).do_activities()
    assert [(len(one.seen), len(set(one.seen))) for one in (keys, flaky)] == [(2, 1), (2, 1)]


@pytest.mark.parametrize(
    ("count", "steps"),
    [
        (2, lambda key: [key, key]),
        (4, lambda key: [nested(key, key), key, nested(key)]),
        (3, lambda key: [fill, each(key)]),
        (3, lambda key: [fill, each(key, parallel=2)]),
        (6, lambda key: [fill, each([key, key])]),
        (6, lambda key: [fill, each([key, key], parallel=3)]),
        (6, lambda key: [fill, each(key), each(key)]),
        (2, lambda key: [split(left=key, right=key)]),
        (6, lambda key: [fill, each(split(left=key, right=key))]),
        (6, lambda key: [fill, each(split(left=key, right=key), parallel=2)]),
        (9, lambda key: [fill, each(nested(fill, ForEachProcessor("items", key, as_="n", parallel=2, context=Box)))]),
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

    nested(key, activity(fail_twice, on_error=GoTo("keys"))).do_activities()
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

    wire(keep, add, nested(keep, name="inner"), keep).do_activities()
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


# Time limits.


def test_without_a_limit_there_is_no_deadline(wire: Wire) -> None:
    """`remaining()` is None, and the step is never cancelled."""
    seen: list[object] = []
    wire(lambda context: seen.append((context.step.remaining(), context.step.cancelled))).do_activities()
    assert seen == [(None, False)]


def test_a_limit_is_seen_as_remaining_time(wire: Wire) -> None:
    """A synchronous activity looks at the time that is left, and ends by itself."""

    def patient(context: Box) -> None:
        assert 0 < (context.step.remaining() or 0) <= 0.02
        while not context.step.cancelled:
            time.sleep(0.002)
        assert context.step.remaining() == 0

    assert wire(activity(patient, time_limit=0.02)).do_activities().outcome.name == "COMPLETED"


def test_a_limit_cancels_an_awaitable(wire: Wire) -> None:
    """The coroutine is cancelled, and the attempt fails with a TimeoutError that says how long it was."""
    cancelled = threading.Event()

    async def endless(context: Box) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    began = time.monotonic()
    run = wire(activity(endless, time_limit=0.05)).launch()
    assert time.monotonic() - began < 5
    assert isinstance(run.error, TimeoutError)
    assert "not done within 0.0" in str(run.error)
    assert cancelled.wait(5)


def test_a_timeout_of_its_own_is_left_alone(wire: Wire) -> None:
    """A TimeoutError that the activity raises before its limit keeps its words."""

    async def slow_socket(context: Box) -> None:
        raise TimeoutError("the socket")

    assert str(wire(activity(slow_socket, time_limit=5)).launch().error) == "the socket"


def test_each_attempt_has_the_whole_limit(wire: Wire) -> None:
    """A limit is for an attempt: a retry begins with all of it."""
    seen: list[float] = []

    def slow(context: Box) -> None:
        seen.append(context.step.remaining() or 0)
        time.sleep(0.03)
        if context.step.attempt < 3:
            raise BrokenError("again")

    wire(activity(slow, time_limit=60, on_error=RetryingErrorHandler(3))).do_activities()
    assert all(59.9 < one <= 60 for one in seen)
    assert len(seen) == 3


def test_each_item_has_the_whole_limit(wire: Wire) -> None:
    """The limit of a step in the body of a for-each begins anew with each item, and when a composite is tried again."""
    seen: list[float] = []

    def slow(context: Box) -> None:
        seen.append(context.step.remaining() or 0)
        time.sleep(0.03)

    body = [activity(slow, time_limit=60)]
    wire(fill, each(body), each(body, parallel=2), each(nested(*body))).do_activities()
    flaky = nested(*body, lambda context: fail_twice(context) if context.n < 2 else None)
    wire(activity(flaky, on_error=RetryingErrorHandler(3))).do_activities()
    assert all(59.99 < one <= 60 for one in seen)
    assert len(seen) == 9 + 3


@pytest.mark.parametrize(
    "composite",
    [
        nested,
        lambda step: nested(nested(activity(step, time_limit=60))),
        lambda step: split(left=step),
        lambda step: split(left=[nested(step)]),
        lambda step: nested(fill, each(step)),
        lambda step: nested(fill, each([step], parallel=3)),
    ],
)
def test_a_limit_of_a_composite_holds_inside(wire: Wire, composite: Any) -> None:
    """What is inside sees the time that is left of the whole, however deep, and awaitables are cancelled by it."""
    seen: list[float] = []

    async def endless(context: Box) -> None:
        seen.append(context.step.remaining() or 0)
        await asyncio.sleep(60)

    def caused(error: BaseException | None) -> BaseException | None:
        return caused(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error

    began = time.monotonic()
    run = wire(activity(composite(endless), time_limit=0.05)).launch()
    assert time.monotonic() - began < 5
    assert isinstance(caused(run.error), TimeoutError)
    assert seen
    assert all(0 <= one <= 0.05 for one in seen)


def test_the_narrowest_limit_counts(wire: Wire) -> None:
    """The limit of a step does not outlast that of what it stands in, nor the other way."""
    seen: list[float] = []

    def look(context: Box) -> None:
        seen.append(context.step.remaining() or 0)

    wire(
        activity(nested(activity(look, time_limit=5), look), time_limit=60),
        activity(nested(activity(look, time_limit=60), look), time_limit=5),
    ).do_activities()
    assert [round(one) for one in seen] == [5, 60, 5, 5]


def test_a_handled_timeout_goes_on(wire: Wire) -> None:
    """A time limit is a failure like others: handlers decide."""

    async def endless(context: Box) -> None:
        await asyncio.sleep(60)

    run = wire(activity(endless, time_limit=0.02, on_error=CONTINUE), add).do_activities()
    assert [(step.activity, step.outcome.name) for step in run.steps] == [("endless", "HANDLED"), ("add", "DONE")]
