"""What is often wired by mistake is refused, with what to write instead."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from behaviour.parts import Box, add
from unit.core.test_wiring import Inc, sequence

from iocflow import (
    CONTINUE,
    ExclusiveChoiceProcessor,
    ForEachProcessor,
    LoggingErrorHandler,
    OnError,
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
