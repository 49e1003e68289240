"""Which context an activity or a handler is written for, and which results an activity can have."""

from __future__ import annotations

import inspect
from typing import Any, Literal, TypeVar, get_args, get_origin

from iocflow.activity import Activity
from iocflow.container.inspecting.annotations import UNKNOWN, alternatives, member_of, unwrapped
from iocflow.container.inspecting.parameters import Signatures

__all__ = ["activity_context", "handler_context", "results"]


def activity_context(target: Any, signatures: Signatures) -> Any:
    """Return the annotation of the context that an activity's class, or a function, takes; UNKNOWN if nothing tells."""
    if not isinstance(target, type):
        return _first(signatures.of(target).parameters)
    execute = member_of(target, "execute")
    annotation = UNKNOWN
    if inspect.isfunction(execute):
        annotation = _first(signatures.of(execute).without_first().parameters)
    if annotation in (UNKNOWN, Any) or isinstance(annotation, TypeVar):
        annotation = _argument(target) if issubclass(target, Activity) else annotation
    return _bound(annotation)


def handler_context(target: type, signatures: Signatures) -> Any:
    """Return the annotation of the context that a handler's class takes; UNKNOWN if nothing tells."""
    handle = member_of(target, "handle_error")
    return _bound(_first(signatures.of(handle).without_first().parameters)) if inspect.isfunction(handle) else UNKNOWN


def results(target: Any, signatures: Signatures) -> tuple[tuple[str, ...], bool]:
    """Return the named results that the return annotation lists by `Literal`, and whether those are all there can be.

    `Literal["found"] | None` lists one, and leaves room for no result. None are listed where any text can come.
    """
    function = member_of(target, "execute") if isinstance(target, type) else target
    returns = unwrapped(signatures.of(function).returns) if inspect.isfunction(function) else UNKNOWN
    choices = [unwrapped(one) for one in alternatives(returns)]
    if any(one in (UNKNOWN, Any, str) or isinstance(one, TypeVar) for one in choices):
        return (), False
    names = tuple(name for one in choices if get_origin(one) is Literal for name in get_args(one))
    return names, get_origin(returns) is Literal


def _first(parameters: Any) -> Any:
    first = next(iter(parameters.values()), None)
    if first is None:
        return UNKNOWN
    return next(iter(get_args(first.annotation)), UNKNOWN) if first.several else first.annotation


def _bound(annotation: Any) -> Any:
    if isinstance(annotation, TypeVar):
        return annotation.__bound__ if annotation.__bound__ is not None else UNKNOWN
    return annotation


def _argument(cls: Any) -> Any:
    """Return C of the `Activity[C]` that `cls` is a subclass of."""
    origin: Any = get_origin(cls) or cls
    args = get_args(cls)
    if origin is Activity:
        return args[0] if args else UNKNOWN
    for base in vars(origin).get("__orig_bases__", origin.__bases__):
        if isinstance(get_origin(base) or base, type) and issubclass(get_origin(base) or base, Activity):
            found = _argument(base)
            given = dict(zip(getattr(origin, "__parameters__", ()), args, strict=False))
            return given.get(found, found) if isinstance(found, TypeVar) else found
    return UNKNOWN
