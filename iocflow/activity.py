"""Activities: the single steps of a job."""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from threading import TIMEOUT_MAX
from typing import Any, Concatenate, Generic, Literal, TypeVar, get_args

from iocflow.context import ProcessContext
from iocflow.error_handling import HandlesErrors, OnErrorLike, as_handlers, seconds
from iocflow.errors import refuse_unfit

Result = ProcessContext | str | None | Awaitable[ProcessContext | str | None]
"""What `execute` may return: the context from now on, a named result for routing, None, or an awaitable of these."""

C = TypeVar("C", bound=ProcessContext)
C_contra = TypeVar("C_contra", contravariant=True)

Mode = Literal["leased", "transactional"]
OnLost = Literal["retry", "incident"]


class Activity(ABC, Generic[C_contra]):
    """One step of business logic, made once and used by every run: it keeps nothing of a run on itself.

    Attributes:
        name: Its id in the container file; when it is wired in Python, its class's name in kebab-case.
        error_handler: Its own handler, asked before the processor's default one.
    """

    error_handler: HandlesErrors | None = None

    @functools.cached_property
    def name(self) -> str:
        """The name in the trail, unless the wiring sets another."""
        return kebab_case(type(self).__name__)

    @abstractmethod
    def execute(self, context: C_contra) -> Result:
        """Do the work on `context`; `async def` is as good.

        Called once an attempt. Return None to keep the context, a context to go on with that one, or a `str` as a named
        result that an exclusive choice routes by. Raising an `Exception` means that the activity failed: handlers
        decide.
        """


class FunctionActivity(Activity[Any]):
    """What a plain function `(context, **collaborators)` becomes when it is wired."""

    def __init__(
        self, function: Callable[..., Result], args: Mapping[str, Any] | None = None, name: str | None = None
    ) -> None:
        """Wrap `function`; `args` are its collaborators, by name."""
        self.function = function
        self.args = dict(args or {})
        plain = function.func if isinstance(function, functools.partial) else function
        self.name = name or kebab_case(getattr(plain, "__name__", type(plain).__name__).strip("<>"))

    def execute(self, context: Any) -> Result:
        """Call the function."""
        return self.function(context, **self.args)


@dataclass(frozen=True, slots=True)
class BoundActivity(Generic[C_contra]):
    """An activity with the options of one use of it; `activity(…)` makes one.

    `time_limit` is in seconds; `mode` and `on_lost` are for durable engines.
    """

    activity: Activity[C_contra]
    name: str
    handlers: tuple[HandlesErrors, ...] = field(default=())
    time_limit: float | None = None
    mode: Mode = "leased"
    on_lost: OnLost = "retry"


StepLike = Activity[C_contra] | Callable[[C_contra], Result] | BoundActivity[C_contra]
"""What can stand in a processor: an activity, a processor, a function of the context, or `activity(…)`."""


def activity(
    what: Activity[C_contra] | Callable[Concatenate[C_contra, ...], Result],
    *,
    name: str | None = None,
    on_error: OnErrorLike | None = None,
    time_limit: float | timedelta | None = None,
    args: Mapping[str, Any] | None = None,
    mode: Mode = "leased",
    on_lost: OnLost = "retry",
) -> BoundActivity[C_contra]:
    """Return `what` with options for this use of it.

    Args:
        what: An activity, a processor, or a function `(context, **collaborators)`.
        name: Its name in the trail.
        on_error: Handlers, asked before the activity's own `error_handler`.
        time_limit: How long an attempt may take, in seconds or as a timedelta. An awaitable is cancelled then; other
            code sees `context.step.remaining()`.
        args: The function's collaborators.
        mode: How a durable engine runs it: `leased`, for as long as it takes, with the record of it written afterwards,
            or `transactional`, in one transaction with that record.
        on_lost: What a durable engine does about an attempt of which nobody knows how it ended, because its process
            died: `retry` it, or open an `incident` for a person to decide.
    """
    refuse_unfit(what, "execute" if isinstance(what, Activity) else "__call__", awaited=True)
    if not isinstance(what, Activity):
        if not callable(what):
            raise TypeError(f"{what!r} is no activity: subclass Activity, or wire a function that takes the context")
        what = FunctionActivity(what, args)
    elif args:
        raise TypeError(f"args are for functions; {what.name} is an activity: give them to its constructor")
    limit = None if time_limit is None else seconds(time_limit, f"time_limit of {name or what.name}")
    if limit is not None and not 0 < limit <= TIMEOUT_MAX:
        raise ValueError(f"time_limit of {name or what.name} must be more than 0 seconds, not {limit}")
    for option, given, kind in (("mode", mode, Mode), ("on_lost", on_lost, OnLost)):
        if given not in get_args(kind):
            raise ValueError(f"{option} of {name or what.name} is one of {', '.join(get_args(kind))}, not {given!r}")
    own = () if what.error_handler is None else as_handlers(what.error_handler)
    return BoundActivity(what, name or what.name, as_handlers(on_error) + own, limit, mode, on_lost)


def bound(step: StepLike[C_contra]) -> BoundActivity[C_contra]:
    """Return `step` with its options, the default ones if it has none."""
    return step if isinstance(step, BoundActivity) else activity(step)


def kebab_case(name: str) -> str:
    """Return `BuildRecipients`, `build_recipients` as `build-recipients`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+", "-", name)
    return words.strip("-").lower()
