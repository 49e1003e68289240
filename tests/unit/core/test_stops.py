"""`context.stopped` tells whether a run is to stop, or did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from behaviour.parts import Asking, Box, BrokenError, add, fail, stop
from unit.core.conftest import Wire
from unit.core.kit import each, inner, split

from iocflow import (
    CONTINUE,
    FAIL,
    STOP,
    RetryingErrorHandler,
    activity,
)


def stop_with_reason(context: Box) -> None:
    context.stop_process("why")


def asks_and_fails(context: Box) -> None:
    context.stop_process("why")
    raise BrokenError("and broken")


def stop_one(context: Box) -> None:
    context.items = (1, 2)
    if context.item == 1:
        context.stop_process("why")


def fill_two(context: Box) -> None:
    context.items = (1, 2)


def executing(*steps: Any, **options: Any) -> Any:
    """An activity that asked to stop before it runs a processor, which ends otherwise, on its context."""

    def execute(context: Box) -> None:
        context.stop_process("mine")
        inner(*steps, **options).execute(context)

    return execute


STOPS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "an activity": (lambda wire: wire(stop_with_reason, add), "STOPPED", "why"),
    "in the seed": (lambda wire: wire(add, context=StopsSeeding), "STOPPED", "why"),
    "a nested one": (lambda wire: wire(inner(stop_with_reason), add), "STOPPED", "why"),
    "a decision": (lambda wire: wire(activity(fail, on_error=STOP), add), "STOPPED", ""),
    "a default decision": (lambda wire: wire(inner(fail), add, on_error=STOP), "STOPPED", ""),
    "a handler": (
        lambda wire: wire(activity(fail, on_error=Asking(lambda context, _: context.stop_process("why"))), add),
        "STOPPED",
        "why",
    ),
    "a branch": (lambda wire: wire(split(left=stop_with_reason, right=add), add), "STOPPED", "why"),
    "a decision in a branch": (lambda wire: wire(split(l=activity(fail, on_error=STOP), r=add), add), "STOPPED", ""),
    "an item": (lambda wire: wire(fill_two, each(stop_one)), "STOPPED", "why"),
    "a parallel item": (lambda wire: wire(fill_two, each(stop_one, parallel=2)), "STOPPED", "why"),
    "a retried attempt": (
        lambda wire: wire(activity(asks_and_fails, on_error=RetryingErrorHandler(2)), on_error=CONTINUE),
        "STOPPED",
        "why",
    ),
    "a handled failure": (lambda wire: wire(activity(asks_and_fails, on_error=CONTINUE), add), "STOPPED", "why"),
    "a part": (lambda wire: wire(executing(stop_with_reason)), "STOPPED", "why"),
    "before a part": (lambda wire: wire(executing(add)), "STOPPED", "mine"),
    "before a part that ignores its own": (lambda wire: wire(executing(add, finally_=[stop])), "STOPPED", "mine"),
    "a failure": (lambda wire: wire(asks_and_fails), "FAILED", ""),
    "a failure that is one": (lambda wire: wire(activity(asks_and_fails, on_error=FAIL), add), "FAILED", ""),
    "in finally": (lambda wire: wire(add, finally_=[stop]), "COMPLETED", ""),
    "a decision in finally": (lambda wire: wire(add, finally_=[activity(fail, on_error=STOP)]), "COMPLETED", ""),
    "in finally of a nested one": (lambda wire: wire(inner(add, finally_=[stop]), add), "COMPLETED", ""),
    "nested in finally": (lambda wire: wire(add, finally_=[inner(stop), add]), "COMPLETED", ""),
    "stopped and then failed": (lambda wire: wire(stop, finally_=[fail]), "FAILED", ""),
    "one branch, another fails": (lambda wire: wire(split(left=stop, right=fail)), "FAILED", ""),
    "one branch, another is handled": (
        lambda wire: wire(activity(split(left=stop, right=fail), on_error=CONTINUE), add),
        "COMPLETED",
        "",
    ),
    "nothing": (lambda wire: wire(add, split(left=add), inner(add)), "COMPLETED", ""),
}


class StopsSeeding(Box):
    def set_seed_data(self, seed_data: Any) -> None:
        self.stop_process("why")


@pytest.mark.parametrize("case", STOPS)
def test_stopped_tells_how_a_run_ended(wire: Wire, case: str) -> None:
    """It is true exactly when the run ended STOPPED, whoever asked; a stop that is ignored leaves no reason."""
    build, outcome, reason = STOPS[case]
    run = build(wire).launch(7)
    assert (run.outcome.name, run.context.stopped, run.stop_reason) == (outcome, outcome == "STOPPED", reason)


@pytest.mark.parametrize(
    ("steps", "finally_", "seen"),
    [
        ([activity(fail, on_error=STOP)], [], [True]),
        ([split(left=stop, right=add)], [], [True]),
        ([stop], [stop], [True]),
        ([add], [stop], [False]),
        ([inner(add, finally_=[stop])], [], [False]),
        ([activity(inner(split(left=stop, right=fail)), on_error=CONTINUE)], [], [False]),
    ],
)
def test_stopped_tells_it_meanwhile_too(wire: Wire, steps: Any, finally_: Any, seen: list[bool]) -> None:
    """Whoever comes after sees whether the run is to stop, in a `finally` how it went."""
    found: list[bool] = []
    wire(*steps, finally_=[*finally_, lambda context: found.append(context.stopped)]).launch()
    assert found == seen
