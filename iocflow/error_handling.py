"""Error handlers: who is asked when an activity fails, and what they can decide."""

from __future__ import annotations

import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from threading import TIMEOUT_MAX
from typing import Any, Literal, Protocol, cast, runtime_checkable

from iocflow.errors import RecordedError, qualified, refuse_unfit


@dataclass(frozen=True, slots=True)
class Decision:
    """What a handler decided; use the constants and `Retry`, `GoTo` rather than this class."""

    kind: Literal["continue", "retry", "stop", "fail", "pass", "goto"]
    delay: float = 0.0
    activity: str = ""

    def __post_init__(self) -> None:
        """Refuse a delay that nobody can sleep for."""
        if not 0 <= self.delay <= TIMEOUT_MAX:
            raise ValueError(f"a delay is a number of seconds, not {self.delay}")


Answer = Decision | None | Awaitable[Decision | None]
"""What `handle_error` may return; an awaitable is awaited, as that of an activity is."""

CONTINUE = Decision("continue")
"""The failure is dealt with: go on with the next activity."""
STOP = Decision("stop")
"""End the run cleanly, as if the activity had asked to stop."""
FAIL = Decision("fail")
"""End the run FAILED."""
PASS = Decision("pass")
"""Not mine: ask the next handler of the chain, then the processor's; with nobody left the run FAILS."""


class Retry(Decision):
    """Run the same activity again, on the context as the failed attempt left it."""

    __slots__ = ()

    def __init__(self, delay: float | timedelta = 0.0) -> None:
        """Wait `delay` (seconds, or a timedelta) before the next attempt."""
        super().__init__("retry", seconds(delay, "a delay"))


class GoTo(Decision):
    """Go on with another activity of the processor whose handler this is."""

    __slots__ = ()

    def __init__(self, activity: str) -> None:
        """Name the activity; one that is unknown, or wired twice, ends the run FAILED and is raised."""
        super().__init__("goto", activity=activity)


@runtime_checkable
class HandlesErrors(Protocol):
    """Whatever has a fitting `handle_error` can be wired as a handler."""

    def handle_error(self, context: Any, error: Exception) -> Answer:
        """Decide what becomes of `error`."""


OnErrorLike = HandlesErrors | Decision | Sequence[HandlesErrors | Decision]
"""What every `on_error=` takes: a handler, a bare decision, or a list of both, asked in order."""


class ErrorHandler(ABC):
    """Decides what becomes of a failed activity; a singleton, so it keeps nothing of a run on itself."""

    @abstractmethod
    def handle_error(self, context: Any, error: Exception) -> Answer:
        """Return a decision; called with the context as the failed attempt left it. `async def` is as good.

        `context.step.attempt` tells which attempt failed. None means CONTINUE for an activity's own handler and FAIL
        for a processor's default one. What it raises ends the run FAILED, with `error` as its cause.
        """


class AlwaysErrorHandler(ErrorHandler):
    """Answers every error with one decision: what `on_error=CONTINUE` and `then:` become."""

    def __init__(self, decision: Decision) -> None:
        """Take the decision."""
        self.decision = decision
        self.name = f"{decision.kind} {decision.activity}".strip()

    def handle_error(self, context: Any, error: Exception) -> Decision:  # noqa: ARG002
        """Return the decision."""
        return self.decision


class LoggingErrorHandler(ErrorHandler):
    """Logs the failure, unless it is logged already, and passes it on."""

    def __init__(self, level: int | str = logging.ERROR, logger: str = "iocflow") -> None:
        """Log at `level` (a number or its name) to the logger of that name."""
        levels = logging.getLevelNamesMapping()
        known = levels.get(str(level).upper(), level)
        if not isinstance(known, int):
            raise ValueError(f"level is a number or one of {', '.join(levels)}, not {level!r}")
        self._level = known
        self._logger = logging.getLogger(logger)

    def handle_error(self, context: Any, error: Exception) -> Decision:
        """Log and return PASS."""
        step = context.step
        if step.failure is None or not step.failure["logged"]:
            self._logger.log(self._level, "%s failed", step.activity or "activity", exc_info=error)
            if step.failure is not None:
                step.failure["logged"] = True
        return PASS


class RaisingErrorHandler(ErrorHandler):
    """Raises the error again, so that `do_activities` raises it."""

    def handle_error(self, context: Any, error: Exception) -> Decision:  # noqa: ARG002
        """Raise `error`, untouched."""
        raise error


class RetryingErrorHandler(ErrorHandler):
    """Asks for another attempt, with growing delays, until there were `attempts` in all; then it passes."""

    def __init__(
        self,
        attempts: int = 3,
        delay: float | timedelta = 0.0,
        growth: float = 1.0,
        max_delay: float | timedelta = 3600.0,
        jitter: float = 0.0,
    ) -> None:
        """Take the number of attempts, the first one included, and the delays, in seconds or as timedeltas.

        Args:
            attempts: How often the activity may run, at least 1.
            delay: Before the second attempt.
            growth: The factor from one delay to the next.
            max_delay: No delay is longer.
            jitter: Up to this share of the delay is taken off at random (1.0 is "full jitter").
        """
        delay, max_delay = seconds(delay, "delay"), seconds(max_delay, "max_delay")
        delays = 0 <= delay <= TIMEOUT_MAX and 0 <= max_delay <= TIMEOUT_MAX and growth >= 0
        if attempts < 1 or not delays or not 0 <= jitter <= 1:
            raise ValueError("attempts must be at least 1, delays and growth not negative, jitter between 0 and 1")
        self.attempts, self.delay, self.growth, self.max_delay, self.jitter = attempts, delay, growth, max_delay, jitter

    def handle_error(self, context: Any, error: Exception) -> Decision:  # noqa: ARG002
        """Return `Retry` with the delay that is due, or PASS when the attempts are used up."""
        attempt = context.step.attempt
        if attempt >= self.attempts:
            return PASS
        try:
            delay = min(self.max_delay, self.delay * float(self.growth) ** (attempt - 1))
        except OverflowError:
            delay = self.max_delay if self.delay else 0.0
        return Retry(delay * (1 - self.jitter * random.random()))


class OnError(ErrorHandler):
    """Asks another handler for errors of some types, and passes all others; `for:` in a container file.

    Types are compared by their qualified names along the error's MRO, so that an error from before a crash matches as
    well; an `ExceptionGroup` matches when each of its errors does.
    """

    def __init__(self, errors: type[Exception] | Iterable[type[Exception]], then: HandlesErrors | Decision) -> None:
        """Take the type or types, and the handler or decision for them."""
        types = (errors,) if isinstance(errors, type) else tuple(errors)
        self.types = tuple(qualified(cls) for cls in types)
        (self.then,) = as_handlers(then)
        answer = getattr(self.then, "name", type(self.then).__name__)
        self.name = f"{', '.join(cls.__name__ for cls in types)} -> {answer}"

    def handle_error(self, context: Any, error: Exception) -> Answer:
        """Return what the inner handler decides when the type matches, else PASS."""
        return self.then.handle_error(context, error) if self._matches(error) else PASS

    def _matches(self, error: BaseException) -> bool:
        if not set(self.types).isdisjoint(class_names(error)):
            return True
        return isinstance(error, BaseExceptionGroup) and all(map(self._matches, error.exceptions))


def class_names(error: BaseException) -> tuple[str, ...]:
    """Return the qualified names along the MRO of `error`, or of the original that a `RecordedError` stands for."""
    return error.names if isinstance(error, RecordedError) else tuple(map(qualified, type(error).__mro__))


def seconds(duration: float | timedelta, what: str) -> float:
    """Return a duration in seconds.

    Raises:
        TypeError: It is neither a number nor a timedelta; `what` it is.
    """
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if not isinstance(duration, int | float):
        raise TypeError(f"{what} is a number of seconds or a timedelta, not {duration!r}")
    return duration


def as_handlers(on_error: OnErrorLike | None) -> tuple[HandlesErrors, ...]:
    """Return the chain of handlers that an `on_error=` value means."""
    if on_error is None:
        return ()
    refuse_unfit(on_error, "handle_error", awaited=True)
    entries = [on_error] if isinstance(on_error, Decision) or hasattr(on_error, "handle_error") else on_error
    if not isinstance(entries, Sequence):
        raise TypeError(f"on_error takes handlers (with a method handle_error) and decisions, not {on_error!r}")
    return tuple(AlwaysErrorHandler(e) if isinstance(e, Decision) else _handler(e) for e in entries)


def _handler(entry: object) -> HandlesErrors:
    refuse_unfit(entry, "handle_error", awaited=True)
    if not callable(getattr(entry, "handle_error", None)):
        raise TypeError(f"{entry!r} is no error handler: it needs a method handle_error(context, error)")
    return cast(HandlesErrors, entry)
