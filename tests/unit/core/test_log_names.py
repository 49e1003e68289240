"""The log tells of a failure in the name of what failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from behaviour.parts import Box, BrokenError, add, fail
from unit.core.conftest import Wire
from unit.core.kit import each, inner, split

from iocflow import (
    FAIL,
    LoggingErrorHandler,
    Processor,
    RetryingErrorHandler,
    RunLogFilter,
    activity,
)

LOGGING = LoggingErrorHandler()


class Unseeded(Box):
    def set_seed_data(self, seed_data: Any) -> None:
        raise BrokenError("no seed")


class Unforkable(Box):
    def fork(self, **_: Any) -> Any:
        raise BrokenError("no fork")


def no_join(context: Box, branches: Any) -> None:
    raise BrokenError("no join")


def conflict(context: Box) -> None:
    context.n = context.item


def one_and_two(context: Box) -> None:
    context.items = (1, 2)


BLAMED: dict[str, tuple[Callable[[Wire, Any], Processor[Any]], list[str]]] = {
    "an activity": (lambda wire, more: wire(add, fail, **more), ["fail"]),
    "in a nested one": (lambda wire, more: wire(add, inner(add, fail), **more), ["inner/fail"]),
    "a seed": (lambda wire, more: wire(add, context=Unseeded, **more), ["main"]),
    "a seed in the loop": (lambda wire, more: wire(add, context=Unseeded, finally_=[add], **more), ["main"]),
    "a context": (lambda wire, more: wire(add, context=lambda: 5), ["main"]),
    "a join": (lambda wire, more: wire(add, split(join=no_join, left=add), **more), ["split"]),
    "a join after failures": (
        lambda wire, more: wire(add, split(join=no_join, left=add, right=fail), **more),
        ["split/right/fail", "split"],
    ),
    "items": (lambda wire, more: wire(add, lambda context: setattr(context, "items", 7), each(add), **more), ["each"]),
    "items that differ": (lambda wire, more: wire(one_and_two, each([conflict], parallel=2), **more), ["each"]),
    "a collected field": (lambda wire, more: wire(one_and_two, each(add, collect={"bad": "nope"}), **more), ["each"]),
    "nested blocks": (lambda wire, more: wire(add, inner(add, split(join=no_join, left=add)), **more), ["inner/split"]),
    "a split alone": (lambda wire, more: wire_alone(wire, **more), ["split"]),
}


def wire_alone(wire: Wire, **options: Any) -> Processor[Any]:
    return split(join=no_join, left=add)


@pytest.mark.parametrize("handled", [{}, {"on_error": FAIL}, {"on_error": LOGGING}])
@pytest.mark.parametrize("case", BLAMED)
def test_a_failure_is_logged_in_the_name_of_what_failed(
    wire: Wire, case: str, handled: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The record's `activity` is the path of that, also of a block or of the processor, and its text begins with it."""
    build, paths = BLAMED[case]
    caplog.handler.addFilter(RunLogFilter())
    build(wire, handled).launch(7)
    told = [record for record in caplog.records if record.exc_info]
    assert [record.activity for record in told] == paths
    assert all(f"{record.activity} failed" in record.getMessage() for record in told)


def test_the_record_of_a_failure_tells_the_attempt(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    """It is the one that failed, of an activity as of a composite."""
    caplog.handler.addFilter(RunLogFilter())
    twice = RetryingErrorHandler(2)
    wire(activity(inner(activity(fail, on_error=twice)), on_error=twice)).launch()
    told = [(record.activity, record.attempt) for record in caplog.records if record.exc_info]
    assert told == [("inner/fail", 1), ("inner/fail", 2)] * 2
