"""What a bean must be where it is wired: an activity, a handler, an observer, an interceptor, a joiner."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard, Union

from iocflow.activity import Activity
from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import Bean, Demand, Inner, Reference, Wire
from iocflow.container.inspecting.annotations import UNKNOWN, Candidate, missing, shown, shown_one
from iocflow.container.inspecting.calling import refusal, takes, uncallable, yielding
from iocflow.container.inspecting.contexts import activity_context, handler_context
from iocflow.container.inspecting.parameters import Signatures
from iocflow.container.nodes import with_article
from iocflow.wiring import Place

__all__ = ["ACTIVITY", "HANDLER", "INTERCEPTOR", "JOINER", "OBSERVER", "Role", "Roles"]


@dataclass(frozen=True, slots=True)
class Role:
    """A role: its noun, what a bean has that fills it and what that is given, what is said of one that has it not.

    Attributes:
        awaited: Whether what is async is awaited.
    """

    noun: str
    member: str
    given: tuple[str, ...]
    lack: str
    remedy: str
    awaited: bool = False

    def met(self, found: object) -> bool:
        """Return whether an object fills it."""
        return callable(getattr(found, self.member, None)) and not isinstance(found, type)


_CALLABLE = ("it cannot be called", "name a function of your own, or a bean with `__call__`")
HANDLER = Role(
    "error handler",
    "handle_error",
    ("context", "error"),
    "it has no `handle_error`",
    "name a bean that has it",
    awaited=True,
)
OBSERVER = Role("observer", "__call__", ("event",), *_CALLABLE)
INTERCEPTOR = Role(
    "interceptor",
    "around_step",
    ("step", "context", "proceed"),
    "it has no `around_step`",
    "name a bean that has it",
)
JOINER = Role("joiner", "__call__", ("context", "branches"), *_CALLABLE)


class Roles:
    """Checks that wired beans fill their roles."""

    def __init__(self, checks: Checks) -> None:
        """Take what the checks share."""
        self._checks = checks
        self._complete: set[Bean] = set()
        self._asked: set[Any] = set()
        self._refused: set[Any] = set()
        self._contexts: dict[Any, Any] = {}

    def candidate(self, wire: Wire) -> Candidate:
        """Return what stands there."""
        if isinstance(wire, Reference):
            return self._checks.candidate(wire.id)
        return Candidate(wire.bean.type, loose=wire.bean.loose)

    def bean(self, wire: Wire) -> Bean | None:
        """Return the bean that stands there, unless it is a processor or is overridden."""
        if isinstance(wire, Inner):
            return wire.bean
        return None if wire.id in self._checks.overrides else self._checks.declared.get(wire.id)

    def target(self, wire: Wire) -> Any:
        """Return the class or function that stands there; None for a processor, and when nobody knows."""
        if isinstance(wire, Reference) and wire.id in self._checks.overrides:
            override = self._checks.overrides[wire.id]
            return override if isinstance(override, types.FunctionType) else type(override)
        bean = self.bean(wire)
        if bean is None or bean.type is object:
            return None
        return bean.target if bean.kind == "call" else bean.type

    def filling(self, role: Role) -> Callable[[str], bool]:
        """Return what tells whether a bean fills `role`, as far as is known."""

        def fit(id: str) -> bool:
            found = self._checks.candidate(id)
            return found.unknown or found.has(role.member)

        return fit

    def acting(self, id: str) -> bool:
        """Return whether a bean or processor can stand as a step, as far as is known."""
        return self._checks.fits(self._checks.candidate(id), ACTIVITY)

    def fills(self, wire: Wire, role: Role, place: Place, what: str) -> None:
        """Note it when the bean does not fill `role`."""
        candidate = self.candidate(wire)
        if not candidate.unknown and not candidate.has(role.member):
            text = f"{what} is {self._named(wire)}, which is no {role.noun}: {role.lack}"
            self._note(wire, place, text, role.remedy)
            return
        self._demand(wire, role.met, f"{what} wants {with_article(role.noun)}", place)
        self._takes(wire, role.member, role.given, place, what, awaited=role.awaited)

    def handles(self, wire: Wire, context: type | None, place: Place, what: str) -> None:
        """Note it when a handler is written for another context."""
        target = self.target(wire)
        if context is not None and isinstance(target, type):
            self._meets(wire, context, self._context(handler_context, target), place, what)

    def acts(self, wire: Wire, context: type | None, place: Place, what: str) -> None:
        """Note it when the bean is no activity, or is one for another context than `context`."""
        if self._is_processor(wire):
            inner = self._checks.processors[wire.id].context
            self._meets(wire, context, UNKNOWN if inner is None else inner, place, what)
            return
        candidate = self.candidate(wire)
        if not self._checks.fits(candidate, ACTIVITY):
            if candidate.has("execute"):
                why, remedy = "does not subclass `iocflow.Activity`", "let it subclass `iocflow.Activity`"
            else:
                why, remedy = "has no `execute`", "name an activity, a processor, or a `call:` bean"
            self._note(wire, place, f"{what} is {self._named(wire)}, which is no activity: it {why}", remedy)
            return
        self._demand(wire, _is_activity, f"{what} wants an activity", place)
        bean, target = self.bean(wire), self.target(wire)
        if isinstance(target, type):
            self._takes(wire, "execute", ("context",), place, what, awaited=True)
        if bean is not None and bean.kind == "call" and bean.target is not None:
            self._completely(bean)
        if target is not None and context is not None:
            self._meets(wire, context, self._context(activity_context, target), place, what)

    def _context(self, of: Callable[[Any, Signatures], Any], target: Any) -> Any:
        """Return the context that a class or function is written for, found out once."""
        if (of, target) not in self._contexts:
            self._contexts[of, target] = of(target, self._checks.signatures)
        return self._contexts[of, target]

    def _demand(self, wire: Wire, met: Callable[[object], bool], wanted: str, place: Place) -> None:
        """Have the object of a factory looked at when it is made."""
        bean = self.bean(wire)
        if bean is not None and bean.loose:
            bean.demands.append(Demand(place, wanted, met))

    def _takes(
        self, wire: Wire, method: str, given: tuple[str, ...], place: Place, what: str, *, awaited: bool
    ) -> None:
        """Note once of a class or function that it cannot be called with what it is going to be given, or not run."""
        target, bean = self.target(wire), self.bean(wire)
        named = frozenset(() if bean is None else bean.keywords)
        if target is None or (target, method, named) in self._asked:
            return
        self._asked.add((target, method, named))
        why = uncallable(target, method, awaited=awaited) or refusal(target, method, given, named)
        if why and (target, method) not in self._refused:
            self._refused.add((target, method))
            name, arguments = target.__name__, ", ".join(given)
            called = f"whose `{method}`" if isinstance(target, type) else "which"
            wanted = f"def {method}(self, {arguments})" if isinstance(target, type) else f"def {name}({arguments})"
            remedy = f"write `{wanted}`{' without `yield`' if why.startswith('yields') else ''}"
            self._note(wire, place, f"{what} is {self._named(wire)}, {called} {why}", remedy)

    def _completely(self, bean: Bean) -> None:
        """Note what a function needs beside the context and is not given."""
        if bean in self._complete:
            return
        self._complete.add(bean)
        parameters = list(self._checks.signatures.of(bean.target).parameters.values())
        name = bean.target.__name__
        if not takes(bean.target, 1):
            argument = (
                "argument by position" if parameters or self._checks.signatures.of(bean.target).open else "argument"
            )
            what = f"{bean} cannot be an activity: `{name}` takes no {argument}"
            self._checks.error(bean.place, what, "let it take the context")
            return
        if yielding(bean.target):
            what = f"{bean} cannot be an activity: `{name}` yields, and nobody takes what it yields"
            self._checks.error(bean.place, what, "write it without `yield`")
        for one in parameters[1:]:
            if one.by_position and (one.name in bean.keywords or (one.required and not one.several)):
                what = f"{bean} cannot be given `{one.name}`, which `{name}` takes by position only"
                self._checks.error(bean.place, what, "let it be taken by name")
        lacking = [
            one.name for one in parameters[1:] if one.required and not one.by_position and one.name not in bean.keywords
        ]
        if lacking:
            names = ", ".join(f"`{one}`" for one in lacking)
            what = f"{bean} lacks {names}, which `{name}` needs beside the context"
            self._checks.error(bean.place, what, f"write `args: {{{', '.join(f'{one}: …' for one in lacking)}}}`")

    def _meets(self, wire: Wire, context: type | None, wanted: Any, place: Place, what: str) -> None:
        """Compare the context that is wanted with the processor's."""
        if context is None or self._checks.fits(Candidate(context), wanted):
            return
        without = missing(Candidate(context), wanted)
        works = f"which works on `{shown(wanted)}`, and the context is `{shown(context)}`{without}"
        text = f"{what} is {self._named(wire)}, {works}"
        lacking = without.removeprefix(" without ")
        remedy = f"let the context have {lacking}" if lacking else f"let the context be {shown_one(wanted)}"
        self._note(wire, place, text, f"{remedy}, or wire another one")

    def _is_processor(self, wire: Wire) -> TypeGuard[Reference]:
        checks = self._checks
        return isinstance(wire, Reference) and wire.id in checks.processors and wire.id not in checks.overrides

    def _named(self, wire: Wire) -> str:
        if isinstance(wire, Reference):
            if self._is_processor(wire):
                return f"the processor `{wire.id}`"
            cls = self.candidate(wire).cls
            return f"`{wire.id}`" + ("" if cls in (types.FunctionType, object) else f" (`{shown(cls)}`)")
        return f"`{getattr(wire.bean.target, '__name__', wire.bean.kind)}`"

    def _note(self, wire: Wire, place: Place, text: str, remedy: str) -> None:
        related = []
        if isinstance(wire, Reference):
            related = [(self._checks.info(wire.id).place, f"`{wire.id}` is defined here")]
        self._checks.error(place, text, remedy, related=related)


def _is_activity(found: object) -> bool:
    """Return whether an object can stand as a step: an activity, or a function or the like of it."""
    return isinstance(found, Activity) or (callable(found) and not isinstance(found, type))


ACTIVITY: Any = Union[Activity, types.FunctionType, functools.partial]  # noqa: UP007
"""What can stand as a step; processors are activities."""
