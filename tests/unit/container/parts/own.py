"""Processors of a user's own, to be wired as beans."""

from __future__ import annotations

from typing import Any

from iocflow.activity import Activity, StepLike
from iocflow.context import ProcessContext
from iocflow.sequence import SequenceProcessor
from tests.unit.container.parts import Order


class Pair(SequenceProcessor[Order]):
    """Says that it takes steps."""

    def __init__(self, first: StepLike[Order], second: StepLike[Order]) -> None:
        super().__init__([first, second], context=Order)


class Single(SequenceProcessor[Order]):
    """Has no room for the options of a step."""

    def __init__(self, only: Activity[Order]) -> None:
        super().__init__([only], context=Order)


class Unsaid(SequenceProcessor[Order]):
    """Does not say what it takes."""

    def __init__(self, steps, **options: Any) -> None:  # type: ignore[no-untyped-def]
        super().__init__(steps, context=Order, **options)


class Both(SequenceProcessor[ProcessContext]):
    """Works on any context."""

    def __init__(self, first: StepLike[ProcessContext], second: StepLike[ProcessContext]) -> None:
        super().__init__([first, second], context=ProcessContext)
