"""Who decides about failures, and how: rules by type, decisions, retries."""

from __future__ import annotations

import copy
import logging
import pickle
from datetime import timedelta
from typing import Any

import pytest
from behaviour.parts import Asking, Box, BrokenError, add, fail
from unit.core.conftest import Wire

import iocflow.errors
from iocflow import (
    CONTINUE,
    FAIL,
    PASS,
    STOP,
    Decision,
    ErrorHandler,
    GoTo,
    LoggingErrorHandler,
    OnError,
    RecordedError,
    Retry,
    RetryingErrorHandler,
    SequenceProcessor,
    activity,
)
from iocflow.errors import LiveErrors

# Rules by type.


@pytest.mark.parametrize(
    ("types", "error", "matches"),
    [
        (LookupError, KeyError("k"), True),
        (KeyError, LookupError("k"), False),
        ([OSError, LookupError], KeyError("k"), True),
        (Exception, BrokenError("b"), True),
        (BrokenError, ExceptionGroup("g", [BrokenError("a"), BrokenError("b")]), True),
        (BrokenError, ExceptionGroup("g", [BrokenError("a"), KeyError("b")]), False),
        ([BrokenError, LookupError], ExceptionGroup("g", [BrokenError("a"), KeyError("b")]), True),
        (BrokenError, ExceptionGroup("g", [ExceptionGroup("h", [BrokenError("a")])]), True),
        (ExceptionGroup, ExceptionGroup("g", [BrokenError("a")]), True),
        (ExceptionGroup, BrokenError("a"), False),
        (BrokenError, RecordedError(LiveErrors().record(BrokenError("a"))), True),
        (Exception, RecordedError(LiveErrors().record(BrokenError("a"))), True),
        (KeyError, RecordedError(LiveErrors().record(BrokenError("a"))), False),
    ],
)
def test_rules_match_by_type_names(types: Any, error: Exception, matches: bool) -> None:
    """A rule matches along the MRO, by name for recorded errors, a group when each of its errors does."""
    assert OnError(types, STOP).handle_error(Box(), error) is (STOP if matches else PASS)


def test_a_subclass_of_a_group_matches_as_a_group() -> None:
    """A rule for ExceptionGroup takes those of a user's own class too."""

    class Many(ExceptionGroup[Exception]):
        pass

    assert OnError(ExceptionGroup, STOP).handle_error(Box(), Many("m", [BrokenError("a")])) is STOP


def test_a_rule_asks_its_handler(wire: Wire) -> None:
    """What stands behind a rule may be a handler, which may pass, or retry."""
    rules = [OnError(KeyError, FAIL), OnError(BrokenError, RetryingErrorHandler(3)), OnError(Exception, CONTINUE)]
    run = wire(fail, add, on_error=rules).do_activities()
    assert [(step.outcome.name, step.attempts) for step in run.steps] == [("HANDLED", 3), ("DONE", 1)]


# Handlers and decisions.


def test_structural_handlers(wire: Wire) -> None:
    """Whatever has `handle_error` is a handler; it need not derive from ErrorHandler."""

    class Structural:
        def handle_error(self, context: Any, error: Exception) -> Decision:
            return CONTINUE

    assert wire(fail, on_error=Structural()).do_activities().outcome.name == "COMPLETED"


@pytest.mark.parametrize("answer", ["continue", 0, False, True, Retry, [CONTINUE]])
def test_an_answer_is_a_decision_or_none(wire: Wire, answer: Any) -> None:
    """Anything else is a TypeError that names the handler, with the activity's error as its cause."""
    run = wire(fail, on_error=Asking(lambda context, error: answer)).launch()
    assert isinstance(run.error, TypeError)
    assert "handler asking returned " in str(run.error)
    assert isinstance(run.error.__cause__, BrokenError)


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), 1e10])
def test_a_delay_is_checked(wire: Wire, delay: float) -> None:
    """A delay that nobody can sleep for is an error of the handler, not of the engine."""
    run = wire(fail, on_error=Asking(lambda context, error: Retry(delay))).launch()
    assert isinstance(run.error, ValueError)
    assert isinstance(run.error.__cause__, BrokenError)


def test_retry_takes_seconds_or_a_timedelta() -> None:
    """Both forms mean the same delay."""
    assert Retry(timedelta(seconds=1.5)).delay == Retry(1.5).delay == 1.5
    assert Retry().delay == 0


def test_decisions_are_values() -> None:
    """They compare by what they say, can be copied and pickled, and cannot be changed."""
    assert Retry(2) == Retry(2.0)
    assert GoTo("a") != GoTo("b")
    for one in (CONTINUE, Retry(1), GoTo("a")):
        assert copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(AttributeError):
        CONTINUE.kind = "fail"  # type: ignore[misc]


def delays(handler: ErrorHandler, count: int) -> list[float]:
    """The delays after the first `count` attempts."""
    context, found = Box(), []
    for attempt in range(1, count + 1):
        context.step.attempt = attempt
        decision = handler.handle_error(context, BrokenError("x"))
        assert isinstance(decision, Retry)
        found.append(decision.delay)
    return found


def test_delays_grow_up_to_their_maximum() -> None:
    """Each delay is the one before times the growth, none is longer than the maximum."""
    handler = RetryingErrorHandler(attempts=10, delay=0.5, growth=2, max_delay=3)
    assert delays(handler, 5) == [0.5, 1.0, 2.0, 3, 3]
    assert delays(RetryingErrorHandler(attempts=10, delay=8, growth=0.5), 4) == [8, 4, 2, 1]
    assert delays(RetryingErrorHandler(attempts=10, delay=2), 3) == [2, 2, 2]


@pytest.mark.parametrize("growth", [1.01, 2, 10.0, 1e300])
def test_delays_never_overflow(growth: float) -> None:
    """After very many attempts the delay is the maximum, whatever the growth; without a delay it stays none."""
    handler = RetryingErrorHandler(attempts=10**9, delay=0.001, growth=growth, max_delay=60)
    none = RetryingErrorHandler(attempts=10**9, growth=growth)
    context = Box()
    for attempt in (5_000, 10**8):
        context.step.attempt = attempt
        assert handler.handle_error(context, BrokenError("x")) == Retry(60)
        assert none.handle_error(context, BrokenError("x")) == Retry(0)


def test_slow_growth_goes_on() -> None:
    """Growth by a hundredth reaches the maximum too."""
    assert delays(RetryingErrorHandler(attempts=2_000, delay=0.001, growth=1.01, max_delay=1), 1_000)[-1] == 1


def test_jitter_takes_off_a_share_at_random() -> None:
    """With a jitter of a half the delay lies between a half and the whole; with 1.0 between nothing and the whole."""
    for jitter, least in ((0.5, 1.0), (1.0, 0.0)):
        found = delays(RetryingErrorHandler(attempts=1_000, delay=2, jitter=jitter), 200)
        assert all(least <= one <= 2 for one in found)
        assert len(set(found)) > 100


@pytest.mark.parametrize(
    "options",
    [
        {"attempts": 0},
        {"delay": -1},
        {"delay": float("nan")},
        {"delay": float("inf")},
        {"growth": -1},
        {"growth": float("nan")},
        {"max_delay": -1},
        {"max_delay": float("inf")},
        {"jitter": 2},
        {"jitter": float("nan")},
    ],
)
def test_the_retrying_handler_checks_its_options(options: Any) -> None:
    """Numbers that make no sense are refused when the handler is made."""
    with pytest.raises(ValueError, match="attempts must be at least 1, delays and growth not negative"):
        RetryingErrorHandler(**options)


def test_the_retrying_handler_counts_all_attempts(wire: Wire) -> None:
    """`attempts` includes the first one; exhausted it passes, and the next handler of the chain is asked."""
    for attempts in (1, 2, 5):
        run = wire(activity(fail, on_error=[RetryingErrorHandler(attempts), CONTINUE])).do_activities()
        assert run.steps[0].attempts == attempts


def test_a_handler_is_shared_without_counting(wire: Wire) -> None:
    """One handler object in many places and runs gives each step all of its attempts."""
    handler = RetryingErrorHandler(3)
    steps = [activity(fail, on_error=[handler, CONTINUE]) for _ in range(3)]
    processor = wire(*steps)
    for _ in range(2):
        assert [step.attempts for step in processor.do_activities().steps] == [3, 3, 3]


def test_retry_delays_are_waited_for(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """The delay lies between the attempts."""
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    handler = RetryingErrorHandler(4, delay=1, growth=10)
    wire(activity(fail, on_error=[handler, CONTINUE]), add).do_activities()
    assert slept == [1, 10, 100]


def test_the_chain_is_asked_in_order(wire: Wire) -> None:
    """First the handlers of the use, then the activity's own, then the processor's; each sees the same error."""
    asked: list[str] = []

    def passing(name: str) -> Asking:
        return Asking(lambda context, error: asked.append(name) or PASS)  # type: ignore[func-returns-value]

    class Failing(iocflow.Activity[Box]):
        error_handler = passing("own")

        def execute(self, context: Box) -> None:
            raise BrokenError("x")

    wire(activity(Failing(), on_error=[passing("use"), passing("use 2")]), on_error=passing("default")).launch()
    assert asked == ["use", "use 2", "own", "default"]


def test_handlers_of_a_composite_are_asked_after_its_finally(wire: Wire) -> None:
    """The inner `finally` is over when the outer handlers are asked, and they see the live exception."""
    asked: list[tuple[int, object]] = []
    inner = SequenceProcessor([fail], context=Box, finally_=[add])
    wire(inner, on_error=Asking(lambda context, error: asked.append((context.n, type(error))) or STOP)).launch()  # type: ignore[func-returns-value]
    assert asked == [(1, BrokenError)]


def test_a_handler_may_change_the_context(wire: Wire) -> None:
    """It sees the context as the failed attempt left it, and the next attempt sees what it changed."""

    def flaky(context: Box) -> None:
        context.left += 1
        if context.right == 0:
            raise BrokenError("x")

    def repair(context: Any, error: Exception) -> Decision:
        context.right = context.left
        return Retry()

    run = wire(activity(flaky, on_error=Asking(repair))).do_activities()
    assert (run.context.left, run.context.right) == (2, 1)


def test_a_level_that_nobody_knows_is_refused() -> None:
    """The names that there are are told; numbers, and names in any case, will do."""
    for known in ("info", "Warning", 7, logging.ERROR):
        LoggingErrorHandler(level=known)
    for wrong in ("LOUD", "", "30", None, 1.5):
        with pytest.raises(ValueError, match=r"^level is a number or one of CRITICAL, .*DEBUG.*, not ") as raised:
            LoggingErrorHandler(level=wrong)  # type: ignore[arg-type]
        assert str(raised.value).endswith(f"not {wrong!r}")
