"""What several test modules of the core wire: nested processors, splits and for-eaches by their usual names."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from behaviour.parts import Box

from iocflow import ForEachProcessor, ParallelSplitProcessor, Processor, SequenceProcessor, StepInfo


def inner(*steps: Any, **options: Any) -> Processor[Any]:
    return SequenceProcessor(steps, **{"context": Box, "name": "inner", **options})


def split(*, join: Any = None, context: Any = Box, **branches: Any) -> Processor[Any]:
    return ParallelSplitProcessor(branches, join=join, context=context, name="split")


def each(body: Any, **options: Any) -> Processor[Any]:
    return ForEachProcessor("items", body, as_="item", **{"context": Box, "name": "each", **options})


def nothing(context: Any) -> None:
    """Change nothing."""


def setting(**fields: Any) -> Callable[[Any], None]:
    """An activity that sets fields."""

    def set_fields(context: Any) -> None:
        for name, value in fields.items():
            setattr(context, name, value)

    return set_fields


async def value(result: Any) -> Any:
    """Give the result, not at once."""
    return result


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether it holds within five seconds."""
    end = time.monotonic() + 5
    while not holds() and time.monotonic() < end:
        time.sleep(0.005)
    return holds()


class Steering:
    """Calls a function with what an interceptor gets."""

    def __init__(self, steer: Callable[[StepInfo, Any, Callable[[], Any]], Any]) -> None:
        self.around_step = steer
