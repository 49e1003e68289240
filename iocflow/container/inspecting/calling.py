"""Whether a method takes what it is going to be given."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Collection, Sequence
from typing import Any

from iocflow.container.inspecting.annotations import (
    UNKNOWN,
    classes_in,
    is_protocol,
    member_of,
    members,
    no_method,
    resolved,
)
from iocflow.errors import deferral

__all__ = ["protocol_deferral", "protocol_refusal", "refusal", "takes", "uncallable", "yielding"]

_OPEN: tuple[Any, ...] = (UNKNOWN, Any, object)
_PLAIN = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def refusal(target: Any, name: str, given: Sequence[str], named: Collection[str] = ()) -> str:
    """Return why `target` cannot be called with what is `given` by position, in words that follow its name.

    Args:
        target: A class, whose method `name` is called on an object of it; or a function.
        name: The method.
        given: What the arguments are called in a message.
        named: The parameters that are given by name.

    Returns:
        Empty when it can be called, and when nobody knows.
    """
    found = member_of(target, name) if isinstance(target, type) else target
    bound = isinstance(target, type) and not isinstance(found, staticmethod)
    function = getattr(found, "__func__", found)
    if not inspect.isfunction(function):
        return ""
    # What a decorator leaves is called, not what it wraps (it may give that more arguments): its code tells of that.
    code, defaults = function.__code__, function.__defaults__ or ()
    plain = code.co_varnames[: code.co_argcount]
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    lacking = given[max(len(plain) - bound, 0) :]
    if lacking and not code.co_flags & inspect.CO_VARARGS:
        return f"takes no {' and no '.join(f'`{one}`' for one in lacking)}"
    others = [*plain[: len(plain) - len(defaults)][len(given) + bound :], *keywords]
    needed = [one for one in others if one not in named and one not in (function.__kwdefaults__ or {})]
    if needed:
        beside = f" beside {', '.join(f'`{one}`' for one in given)}" if given else ""
        return f"needs {', '.join(f'`{one}`' for one in needed)}{beside}"
    return ""


def uncallable(target: Any, name: str, *, awaited: bool) -> str:
    """Return why a call of `target`, or of a class's method `name`, runs nothing; in words that follow its name.

    It is no function at all, async where nobody awaits it, or yields. Empty when it runs, and when nobody knows.
    """
    if isinstance(target, type):
        found = member_of(target, name)
        if no_method(target, name):
            return "is no method"
        target = getattr(found, "__func__", found)
    return deferral(target, awaited=awaited)


def yielding(target: Any) -> bool:
    """Return whether a function yields, so that a call runs nothing of it."""
    return bool(deferral(target, awaited=True))


def takes(function: Any, number: int) -> bool:
    """Return whether a function takes so many arguments by position; in doubt it does."""
    code = getattr(function, "__code__", None)
    return code is None or code.co_argcount >= number or bool(code.co_flags & inspect.CO_VARARGS)


def protocol_deferral(cls: type, protocol: Any) -> str | None:
    """Return the first method of a Protocol that is async in `cls`, and whose callers do not await it."""
    for name in members(protocol) if is_protocol(protocol) else ():
        declared = member_of(protocol, name)
        if inspect.isfunction(declared) and inspect.iscoroutinefunction(member_of(cls, name)):
            returned = list(classes_in(resolved(declared).get("return", UNKNOWN)))
            known = returned and not any(one in _OPEN or issubclass(one, Awaitable) for one in returned)
            if known and not inspect.iscoroutinefunction(declared):
                return name
    return None


def protocol_refusal(cls: type, protocol: type) -> tuple[str, str] | None:
    """Return the first method of a Protocol that `cls` has with another signature, and why it cannot be called."""
    for name in members(protocol) if is_protocol(protocol) else ():
        declared = member_of(protocol, name)
        if inspect.isfunction(declared):
            given = [one.name for one in inspect.signature(declared).parameters.values() if one.kind in _PLAIN][1:]
            why = refusal(cls, name, given)
            if why:
                return name, why
    return None
