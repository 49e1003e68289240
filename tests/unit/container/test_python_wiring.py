"""`App`: what a file is checked for is told of processors that are built in Python, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iocflow.activity import Activity, activity
from iocflow.container import App
from iocflow.container.failures import WrongTypeError
from iocflow.error_handling import CONTINUE, GoTo, OnError
from iocflow.errors import UnknownActivityError
from iocflow.exclusive_choice import ExclusiveChoiceProcessor
from iocflow.for_each import ForEachProcessor
from iocflow.parallel_split import ParallelSplitProcessor
from iocflow.sequence import SequenceProcessor
from tests.unit.container.parts import Alert, Order, Parcel, ParcelAlert, ReadLines, Weigh

Make = Callable[[Any], Any]


def plain(context: Order) -> None: ...


def needing(context: Order, rate: int) -> None: ...


def without() -> None: ...


class Eager(Activity[Order]):
    """Wants more than the context."""

    def execute(self, context: Order, more: int) -> None: ...  # type: ignore[override]


PLACES: dict[str, Make] = {
    "sequence": lambda step: SequenceProcessor([plain, step], context=Order, name="p"),
    "finally": lambda step: SequenceProcessor([plain], finally_=[step], context=Order, name="p"),
    "nested": lambda step: SequenceProcessor([SequenceProcessor([step], context=Order, name="p")], context=Order),
    "choice": lambda step: ExclusiveChoiceProcessor({"a": "end"}, {"a": step}, context=Order, name="p"),
    "branch": lambda step: ParallelSplitProcessor({"p": [step]}, context=Order),
    "body": lambda step: ForEachProcessor("lines", [step], as_="p", context=Order),
}
MISFITS: dict[str, tuple[Any, str]] = {
    "class": (Weigh(), "works on Parcel, and the context is Order"),
    "processor": (SequenceProcessor([Weigh()], context=Parcel), "works on Parcel, and the context is Order"),
    "function": (needing, "needs `rate` beside `context`"),
    "arguments": (activity(needing, args={"other": 1}), "needs `rate` beside `context`"),
    "no context": (without, "takes no `context`"),
    "method": (Eager(), "needs `more` beside `context`"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("misfit", MISFITS)
def test_what_does_not_fit_is_refused(place: str, misfit: str) -> None:
    """What is for another context, or needs more than it is given, is told with its place, wherever it stands."""
    step, why = MISFITS[misfit]
    with pytest.raises(WrongTypeError, match=rf"^p: [\w-]+ {why}"):
        App(PLACES[place](step))


@pytest.mark.parametrize("place", PLACES)
def test_what_fits_is_taken(place: str) -> None:
    """Protocols, functions with their arguments, and handlers of any context fit."""
    for step in (ReadLines(), activity(needing, args={"rate": 1}), activity(plain, on_error=[Alert(), CONTINUE])):
        with App(PLACES[place](step)):
            pass


def test_handlers_for_another_context_are_refused() -> None:
    """Those of a step and of the processor."""
    for processor in (
        SequenceProcessor([activity(plain, on_error=ParcelAlert())], context=Order),
        SequenceProcessor([plain], on_error=ParcelAlert(), context=Order),
    ):
        with pytest.raises(WrongTypeError, match="a handler works on Parcel, and the context is Order"):
            App(processor)


@pytest.mark.parametrize("answer", [GoTo("nowhere"), OnError(ValueError, GoTo("nowhere")), [CONTINUE, GoTo("nowhere")]])
def test_answers_that_go_nowhere_are_refused(answer: Any) -> None:
    """A `GoTo` names an activity of the handler's own processor, which is wired once; others are told at once."""
    for processor in (
        SequenceProcessor([activity(plain, on_error=answer)], context=Order),
        SequenceProcessor([plain], on_error=answer, context=Order),
        ParallelSplitProcessor({"nowhere": activity(plain, on_error=answer)}, context=Order),
        SequenceProcessor([activity(plain, name="nowhere")] * 2, on_error=answer, context=Order),
    ):
        with pytest.raises(UnknownActivityError, match=r"GoTo\('nowhere'\): that is"):
            App(processor)
    with App(SequenceProcessor([activity(plain, name="nowhere")], on_error=answer, context=Order)):
        pass
