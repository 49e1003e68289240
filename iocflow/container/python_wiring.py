"""What a container file is checked for, and processors that are built in Python are not: told when an App is made."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

from iocflow.activity import BoundActivity, FunctionActivity
from iocflow.container.failures import WrongTypeError
from iocflow.container.inspecting.annotations import Candidate, fits, missing, shown
from iocflow.container.inspecting.calling import refusal
from iocflow.container.inspecting.contexts import activity_context, handler_context
from iocflow.container.inspecting.parameters import Signatures
from iocflow.context import ProcessContext
from iocflow.error_handling import AlwaysErrorHandler, HandlesErrors, OnError
from iocflow.errors import UnknownActivityError
from iocflow.processor import Processor

__all__ = ["check_wiring"]


def check_wiring(processors: Iterable[Processor[Any]]) -> None:
    """Look through processors and all that stands in them.

    Raises:
        WrongTypeError: An activity or handler is for another context, or needs more than it is given.
        UnknownActivityError: The answer of a handler goes to what is no activity of its processor, or is wired twice.
    """
    wiring, todo, seen = _Wiring(), list(processors), set[int]()
    for processor in todo:
        if id(processor) not in seen:
            seen.add(id(processor))
            wiring.check(processor)
            steps = (*processor.steps, *processor.finally_)
            todo += [step.activity for step in steps if isinstance(step.activity, Processor)]


class _Wiring:
    def __init__(self) -> None:
        self._signatures = Signatures()

    def check(self, processor: Processor[Any]) -> None:
        """Look at what stands directly in a processor."""
        for step in (*processor.steps, *processor.finally_):
            what = f"{processor.name}: {step.name}"
            self._compare(what, self._context_of(step), processor.context_type)
            if why := _refused(step):
                raise WrongTypeError(f"{what} {why}; it is given the context, and what `activity(…, args=…)` says")
        chains = [processor.handlers, *(step.handlers for step in processor.steps)]
        for handler in (one for chain in chains for one in chain):
            self._compare(
                f"{processor.name}: a handler", handler_context(type(handler), self._signatures), processor.context_type
            )
        plan = processor.plan["p"][processor.plan["main"]]
        names = [step["name"] for step in plan["steps"]] if plan["kind"] in ("sequence", "choice") else []
        for goal in (goal for chain in chains for goal in _goals(chain)):
            if names.count(goal) != 1:
                why = "is wired twice" if goal in names else f"is no activity to go to (known: {', '.join(names)})"
                raise UnknownActivityError(f"{processor.name}: GoTo({goal!r}): that {why}")

    def _compare(self, what: str, wanted: Any, context: type) -> None:
        """Raise when the context is known, and not what is wanted."""
        if context is not ProcessContext and not fits(Candidate(context), wanted):
            without = missing(Candidate(context), wanted)
            raise WrongTypeError(f"{what} works on {shown(wanted)}, and the context is {shown(context)}{without}")

    def _context_of(self, step: BoundActivity[Any]) -> Any:
        if isinstance(step.activity, Processor):
            return step.activity.context_type
        function = _function(step)
        return activity_context(type(step.activity) if function is None else function, self._signatures)


def _function(step: BoundActivity[Any]) -> Any:
    """Return the plain function that an activity is made of, if it is."""
    function = step.activity.function if isinstance(step.activity, FunctionActivity) else None
    return function if inspect.isfunction(function) else None


def _refused(step: BoundActivity[Any]) -> str:
    """Return why what is run cannot be called with what it is given; empty when it can, and when nobody knows."""
    function = _function(step)
    if function is not None and isinstance(step.activity, FunctionActivity):
        return refusal(function, "", ("context",), step.activity.args)
    return "" if isinstance(step.activity, FunctionActivity) else refusal(type(step.activity), "execute", ("context",))


def _goals(chain: Iterable[HandlesErrors]) -> Iterator[str]:
    """Yield the activities that handlers go to, as far as they say so."""
    for handler in chain:
        inner = handler.then if isinstance(handler, OnError) else handler
        if isinstance(inner, AlwaysErrorHandler) and inner.decision.activity:
            yield inner.decision.activity
