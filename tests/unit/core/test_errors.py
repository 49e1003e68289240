"""Exceptions of every kind, and what becomes of them as data."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import dataclass
from typing import Any

import pytest
from behaviour.parts import Asking, Box, BrokenError, add, fail
from unit.core.conftest import Wire

import iocflow.errors
from iocflow import (
    CONTINUE,
    PASS,
    IocflowError,
    LoggingErrorHandler,
    ParallelSplitProcessor,
    RaisingErrorHandler,
    RecordedError,
    RetryingErrorHandler,
    SequenceProcessor,
    StepLimitError,
    UnsetError,
    activity,
)
from iocflow.errors import LiveErrors, record_of, text_of


class MuteError(Exception):
    """Its message cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@dataclass(frozen=True)
class FrozenError(Exception):
    """Its attributes cannot be set."""

    code: int = 0


class SealedError(Exception):
    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("sealed")


class EmptyError(Exception):
    """It is false."""

    def __len__(self) -> int:
        return 0


class EqualError(Exception):
    """All of them are equal, and none has a hash."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("do not compare")

    __hash__ = None  # type: ignore[assignment]


def raising(error: BaseException) -> Any:
    def broken(context: Box) -> None:
        raise error

    return broken


def recursive(context: Box) -> None:
    recursive(context)


ODD = [
    MuteError(),
    FrozenError(7),
    SealedError("s"),
    EmptyError("e"),
    EqualError("q"),
    StopIteration("stop"),
    StopAsyncIteration("stop"),
    AssertionError(),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    KeyError("key"),
    OSError(2, "gone"),
    Exception("control \x00"),
    ExceptionGroup("many", [BrokenError("a"), ExceptionGroup("more", [MuteError()])]),
    StepLimitError("of the user"),
]


@pytest.mark.parametrize("error", ODD, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("on_error", [None, CONTINUE, PASS, RetryingErrorHandler(2), LoggingErrorHandler()])
def test_odd_exceptions_are_errors_like_others(wire: Wire, error: Exception, on_error: Any) -> None:
    """Whatever an exception's class does, it is the run's error, the same object, and handlers are asked."""
    run = wire(add, raising(error), finally_=[fail], on_error=on_error).launch()
    if on_error is CONTINUE:
        assert [step.outcome.name for step in run.steps] == ["DONE", "HANDLED", "HANDLED"]
        assert run.steps[1].error is error
    else:
        assert run.outcome.name == "FAILED"
        assert run.error is error
        assert run.steps[1].error is error
        assert getattr(error, "__notes__", None) == ["finally, fail: behaviour.parts.BrokenError: n is 1"]
        object.__delattr__(error, "__notes__")


@pytest.mark.parametrize("error", ODD, ids=lambda error: type(error).__name__)
def test_odd_exceptions_are_raised_as_they_are(wire: Wire, error: Exception) -> None:
    """Without a handler `do_activities` raises the very object; a split raises it in a group."""
    with pytest.raises(type(error)) as raised:
        wire(raising(error)).do_activities()
    assert raised.value is error
    with pytest.raises(ExceptionGroup) as group:
        ParallelSplitProcessor({"a": raising(error), "b": add}, context=Box).do_activities()
    assert group.value.exceptions == (error,) or group.value.exceptions[0] is error


@pytest.mark.parametrize("odd", [MuteError(), FrozenError(7), SealedError(), EmptyError()])
def test_odd_exceptions_of_handlers(wire: Wire, odd: Exception) -> None:
    """A handler's error becomes the run's, with the activity's as its cause, also where attributes cannot be set."""

    def ask(context: Any, error: Exception) -> Any:
        raise odd

    run = wire(fail, on_error=Asking(ask)).launch()
    assert run.error is odd
    assert isinstance(odd.__cause__, BrokenError)
    object.__setattr__(odd, "__cause__", None)


def test_recursion_is_an_error_like_others(wire: Wire) -> None:
    """An activity that calls itself for ever fails, and the run goes on as its handlers decide."""
    run = wire(activity(recursive, on_error=CONTINUE), add).do_activities()
    assert [(step.outcome.name, type(step.error).__name__) for step in run.steps] == [
        ("HANDLED", "RecursionError"),
        ("DONE", "NoneType"),
    ]


# Causes.


def test_the_activitys_error_is_the_cause_of_the_handlers(wire: Wire) -> None:
    """A handler that raises anew: its error, with the activity's as `__cause__`."""

    def ask(context: Any, error: Exception) -> Any:
        raise LookupError("the handler broke")

    with pytest.raises(LookupError, match="the handler broke") as raised:
        wire(activity(fail, on_error=Asking(ask)), on_error=CONTINUE).do_activities()
    assert isinstance(raised.value.__cause__, BrokenError)


def test_a_cause_that_the_handler_gives_is_kept(wire: Wire) -> None:
    """`raise … from` in a handler is respected; the activity's error stands at the end of the chain."""

    def ask(context: Any, error: Exception) -> Any:
        raise LookupError("first") from OSError("second")

    error = wire(fail, on_error=Asking(ask)).launch().error
    chain = []
    while error is not None:
        chain.append(type(error).__name__)
        error = error.__cause__  # type: ignore[assignment]
    assert chain == ["LookupError", "OSError", "BrokenError"]


def test_raised_again_it_is_untouched(wire: Wire) -> None:
    """The same object raised by the handler has no cause, and is the run's error."""
    seen: list[Exception] = []

    def ask(context: Any, error: Exception) -> Any:
        seen.append(error)
        raise error

    for handler in (Asking(ask), RaisingErrorHandler()):
        run = wire(fail, on_error=handler).launch()
        assert isinstance(run.error, BrokenError)
        assert run.error.__cause__ is None
    with pytest.raises(BrokenError):
        wire(fail, on_error=RaisingErrorHandler()).do_activities()


def test_the_cause_raised_instead_makes_no_ring(wire: Wire) -> None:
    """A handler that unwraps the error, and raises its cause, leaves the chain without an end alone."""

    def wrapped(context: Box) -> None:
        raise BrokenError("outside") from OSError("inside")

    def ask(context: Any, error: Exception) -> Any:
        raise error.__cause__  # type: ignore[misc]

    error = wire(wrapped, on_error=Asking(ask)).launch().error
    assert isinstance(error, OSError)
    assert error.__cause__ is None


def test_a_ring_of_causes_is_survived(wire: Wire) -> None:
    """Exceptions that are each other's cause hang nobody."""
    one, two = BrokenError("one"), BrokenError("two")
    one.__cause__, two.__cause__ = two, one

    def ask(context: Any, error: Exception) -> Any:
        raise one

    assert wire(fail, on_error=Asking(ask)).launch().error is one


# Failures in `finally`.


def test_a_failure_in_finally_is_a_note_on_the_first(wire: Wire) -> None:
    """The first error stays the run's; each failure of `finally` is told in a note, and the rest runs."""

    def other(context: Box) -> None:
        raise LookupError("also")

    run = wire(fail, finally_=[other, add, fail]).launch()
    assert run.error.__notes__ == [  # type: ignore[union-attr]
        "finally, other: LookupError: also",
        "finally, fail: behaviour.parts.BrokenError: n is 1",
    ]
    assert [(step.activity, step.outcome.name) for step in run.steps] == [
        ("fail", "FAILED"),
        ("other", "FAILED"),
        ("add", "DONE"),
        ("fail", "FAILED"),
    ]


def test_notes_reach_the_outer_run_once(wire: Wire) -> None:
    """A note made inside of a nested processor is on the error outside, once, however often it is looked at."""
    inner = SequenceProcessor([fail], context=Box, name="inner", finally_=[fail])
    run = wire(inner, on_error=LoggingErrorHandler()).launch()
    assert run.error.__notes__ == ["finally, inner/fail: behaviour.parts.BrokenError: n is 0"]  # type: ignore[union-attr]


# Errors as data.


@pytest.mark.parametrize("error", ODD, ids=lambda error: type(error).__name__)
def test_a_record_is_plain_data(error: Exception) -> None:
    """Each exception has a record that JSON can hold, and is found again by it, also by a copy of it."""
    errors = LiveErrors()
    record = json.loads(json.dumps(errors.record(error)))
    assert errors.live(record) is error
    assert record["type"] in record["names"]
    assert record["names"][-1] == "object"


def test_a_record_from_elsewhere_stands_for_the_original() -> None:
    """In another process there is no such object: a RecordedError has type, names, message and cause."""

    def cause() -> Exception:
        try:
            raise BrokenError("words") from OSError("why")
        except BrokenError as error:
            return error

    record = json.loads(json.dumps(LiveErrors().record(cause())))
    errors = LiveErrors()
    errors.record(LookupError("another one, with the same number if numbers began at 0"))
    error = errors.live(record)
    assert isinstance(error, RecordedError)
    assert (str(error), error.type, error.cause) == ("words", "behaviour.parts.BrokenError", "OSError: why")
    assert error.names == ("behaviour.parts.BrokenError", "Exception", "BaseException", "object")
    assert errors.live(record) is error


def test_a_recorded_error_can_be_recorded_copied_and_pickled() -> None:
    """It can be stored once more, and stays what it stands for."""
    record = LiveErrors().record(BrokenError("words"))
    error = RecordedError(record)
    again = LiveErrors().record(error)
    assert (again["type"], again["names"], again["message"]) == (record["type"], record["names"], "words")
    for one in (copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert (str(one), one.type, one.names) == (str(error), error.type, error.names)


def test_a_group_keeps_its_parts_as_data() -> None:
    """An ExceptionGroup from elsewhere is a group of what its errors were, so that rules can match each."""
    group = ExceptionGroup("two", [BrokenError("a"), ExceptionGroup("deep", [KeyError("b")])])
    error: Any = LiveErrors().live(LiveErrors().record(group))
    assert isinstance(error, ExceptionGroup)
    assert error.exceptions[0].type == "behaviour.parts.BrokenError"
    assert error.exceptions[1].exceptions[0].type == "KeyError"


def test_our_own_errors_come_back_as_themselves() -> None:
    """What `advance` finds out by itself becomes the class it names, one object for all copies of its record."""
    errors = LiveErrors()
    record = record_of(StepLimitError, "too many")
    assert isinstance(errors.live({**record}), StepLimitError)
    assert errors.live({**record}) is errors.live({**record})


def test_the_text_of_an_error_can_always_be_had() -> None:
    """Where the class fails to make the message, its name stands in."""
    assert text_of(BrokenError("words")) == "words"
    assert text_of(MuteError()) == "<MuteError, whose text cannot be made>"


def test_all_our_errors_have_one_base() -> None:
    """Every public error class of the module is an IocflowError."""
    classes = [cls for name, cls in vars(iocflow.errors).items() if name.endswith("Error")]
    assert classes
    assert all(issubclass(cls, IocflowError) for cls in classes)


def test_unset_is_an_attribute_error() -> None:
    """`hasattr` and `getattr` with a default work as usual on fields that are not set."""
    assert issubclass(UnsetError, AttributeError)
    assert not hasattr(Box(), "root")
    assert getattr(Box(), "root", 3) == 3
