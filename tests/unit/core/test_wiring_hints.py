"""What is often wired by mistake is refused, with what to write instead."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest
from behaviour.parts import Box, add
from unit.core.test_wiring import Inc, sequence

from iocflow import (
    CONTINUE,
    Activity,
    App,
    ExclusiveChoiceProcessor,
    ForEachProcessor,
    LoggingErrorHandler,
    OnError,
    Outcome,
    ParallelSplitProcessor,
    Retry,
    RetryingErrorHandler,
    SequenceProcessor,
    activity,
)


@pytest.mark.parametrize(
    "wire",
    [
        sequence,
        lambda cls: sequence(add, finally_=[cls]),
        activity,
        lambda cls: ExclusiveChoiceProcessor({"a": "end"}, {"a": cls}, context=Box),
        lambda cls: ParallelSplitProcessor({"a": cls}, context=Box),
        lambda cls: ParallelSplitProcessor({"a": [cls]}, context=Box),
        lambda cls: ForEachProcessor("items", cls, as_="item", context=Box),
        lambda cls: sequence(add, on_error=[cls]),
        lambda cls: activity(add, on_error=[CONTINUE, cls]),
        lambda cls: activity(add, on_error=OnError(ValueError, cls)),
        lambda cls: sequence(add, observers=[cls]),
        lambda cls: sequence(add, interceptors=[cls]),
    ],
)
@pytest.mark.parametrize("cls", [Inc, LoggingErrorHandler, SequenceProcessor, object])
def test_a_class_is_no_object_of_it(wire: Any, cls: type) -> None:
    """Wherever an activity, a handler or a hook is wired, its class is refused, and what to write is told."""
    with pytest.raises(TypeError, match=rf"^{cls.__name__} is a class: make an object of it, as in {cls.__name__}\(\)"):
        wire(cls)


async def later(*_: Any) -> None: ...


def some(*_: Any) -> Iterator[int]:
    yield 1


async def some_later(*_: Any) -> AsyncIterator[int]:
    yield 1


def bearing(method: str, function: Any) -> Any:
    """An object of a class with that method, and no other."""
    return type("Bearing", (), {method: function})()


def activity_of(function: Any) -> Any:
    """An activity whose `execute` that is."""
    return type("Acting", (Activity,), {"execute": function})()


def context_of(function: Any) -> Any:
    """A context whose `set_seed_data` that is."""
    return type("Seeded", (Box,), {"set_seed_data": function})


NEVER_RUN: dict[str, Any] = {
    "observer": lambda function: sequence(add, observers=[function]),
    "partial observer": lambda function: sequence(add, observers=[functools.partial(function, 1)]),
    "observer object": lambda function: sequence(add, observers=[bearing("__call__", function)]),
    "interceptor": lambda function: sequence(add, interceptors=[bearing("around_step", function)]),
    "app's observer": lambda function: App(sequence(add), observers=[function]),
    "app's interceptor": lambda function: App(sequence(add), interceptors=[bearing("around_step", function)]),
    "joiner": lambda function: ParallelSplitProcessor({"a": add}, join=function, context=Box),
    "joiner object": lambda function: ParallelSplitProcessor(
        {"a": add}, join=bearing("__call__", function), context=Box
    ),
    "context": lambda function: SequenceProcessor([add], context=context_of(function)),
}
AWAITED: dict[str, Any] = {
    "function": sequence,
    "partial": lambda function: sequence(functools.partial(function, 1)),
    "callable": lambda function: sequence(bearing("__call__", function)),
    "activity": lambda function: sequence(activity_of(function)),
    "handler": lambda function: sequence(add, on_error=bearing("handle_error", function)),
    "one of several handlers": lambda function: activity(add, on_error=[CONTINUE, bearing("handle_error", function)]),
}


@pytest.mark.parametrize("role", [*NEVER_RUN, *AWAITED])
def test_what_a_call_would_not_run_is_refused(role: str) -> None:
    """What is async and not awaited, or yields and is not asked for what, is refused when it is wired."""
    wire = {**NEVER_RUN, **AWAITED}[role]
    for function in (some, some_later):
        with pytest.raises(TypeError, match=r"yields, and nobody takes what it yields: write a plain function$"):
            wire(function)
    if role in AWAITED:
        wire(later)
    else:
        with pytest.raises(TypeError, match=r"is async, and nobody awaits it: write a plain function$"):
            wire(later)


def test_an_observer_that_returns_an_awaitable_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """A wrapper hides that what it wraps is async: what it returns tells, and the log says that nobody awaits it."""
    made: list[Any] = []

    def wrapped(event: object) -> Any:
        made.append(later(event))
        return made[-1]

    assert sequence(add, observers=[wrapped]).do_activities().outcome is Outcome.COMPLETED
    told = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert len(told) == len(made)
    assert all("wrapped" in text and text.endswith("is async, and nobody awaits it") for text in told)
    for one in made:
        one.close()


DURATIONS: list[Any] = [
    lambda duration: activity(add, time_limit=duration).time_limit,
    lambda duration: Retry(duration).delay,
    lambda duration: RetryingErrorHandler(delay=duration).delay,
    lambda duration: RetryingErrorHandler(max_delay=duration).max_delay,
]


@pytest.mark.parametrize("option", DURATIONS)
def test_durations_are_seconds_or_timedeltas(option: Any) -> None:
    """Both forms mean the same; a text with a unit, as container files have it, is a TypeError that says so."""
    assert option(1.5) == option(timedelta(seconds=1.5)) == 1.5
    for wrong in ("2s", "2", [2], object()):
        with pytest.raises(TypeError, match=r"is a number of seconds or a timedelta, not"):
            option(wrong)
    for impossible in (-1, float("nan"), float("inf"), timedelta(seconds=-1)):
        with pytest.raises(ValueError, match=r"delay|time_limit of add must be more than 0 seconds"):
            option(impossible)


@pytest.mark.parametrize("hook", [5, "watch", None, LoggingErrorHandler()])
@pytest.mark.parametrize(("option", "method"), [("observers", "__call__"), ("interceptors", "around_step")])
def test_what_is_no_hook_is_refused(hook: Any, option: str, method: str) -> None:
    """An observer can be called, an interceptor has its method: told when it is wired, not at the first run."""
    options: Any = {option: [hook]}
    with pytest.raises(TypeError, match=rf"is no observer or interceptor: it has no method {method}$"):
        SequenceProcessor([add], context=Box, **options)
