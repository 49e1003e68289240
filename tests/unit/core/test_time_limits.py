"""Time limits: what is left, what is cancelled, and what composites pass inwards."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from behaviour.parts import Box, BrokenError, add, fail_twice, fill
from unit.core.conftest import Wire
from unit.core.kit import each, inner, split

from iocflow import (
    CONTINUE,
    RetryingErrorHandler,
    activity,
)


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
    wire(fill, each(body), each(body, parallel=2), each(inner(*body))).do_activities()
    flaky = inner(*body, lambda context: fail_twice(context) if context.n < 2 else None)
    wire(activity(flaky, on_error=RetryingErrorHandler(3))).do_activities()
    assert all(59.99 < one <= 60 for one in seen)
    assert len(seen) == 9 + 3


@pytest.mark.parametrize(
    "composite",
    [
        inner,
        lambda step: inner(inner(activity(step, time_limit=60))),
        lambda step: split(left=step),
        lambda step: split(left=[inner(step)]),
        lambda step: inner(fill, each(step)),
        lambda step: inner(fill, each([step], parallel=3)),
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
        activity(inner(activity(look, time_limit=5), look), time_limit=60),
        activity(inner(activity(look, time_limit=60), look), time_limit=5),
    ).do_activities()
    assert [round(one) for one in seen] == [5, 60, 5, 5]


def test_a_handled_timeout_goes_on(wire: Wire) -> None:
    """A time limit is a failure like others: handlers decide."""

    async def endless(context: Box) -> None:
        await asyncio.sleep(60)

    run = wire(activity(endless, time_limit=0.02, on_error=CONTINUE), add).do_activities()
    assert [(step.activity, step.outcome.name) for step in run.steps] == [("endless", "HANDLED"), ("add", "DONE")]
