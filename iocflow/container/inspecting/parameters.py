"""What a class or function can be given by name."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, Unpack, get_args, get_origin

from iocflow.container.inspecting.annotations import UNKNOWN, is_typed_dict, member_of, resolved
from iocflow.container.inspecting.typed_dicts import keys_of

__all__ = ["Parameter", "Signature", "Signatures", "arranged"]

T = TypeVar("T")

_LIST: Any = list


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `several` marks `*args`, which takes a list."""

    name: str
    annotation: Any
    required: bool
    by_position: bool = False
    several: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True)
class Signature:
    """What can be given to a class or function.

    Attributes:
        parameters: By name, in order.
        open: Whether other names are taken too (`**kwargs`).
        extra: The annotation of those.
        bound: The parameter that somebody else gives, which cannot be one of those either.
        returns: The annotation of what comes back; of a class, the class.
    """

    parameters: Mapping[str, Parameter]
    open: bool
    extra: Any
    returns: Any
    bound: str = ""

    def takes(self, name: str) -> bool:
        """Return whether a value can be given by that name."""
        return name in self.parameters or (self.open and name != self.bound)

    def annotation(self, name: str) -> Any:
        """Return the annotation that a value of that name meets."""
        known = self.parameters.get(name)
        return known.annotation if known is not None else self.extra

    def without_first(self) -> Signature:
        """Return what is left of it when the first parameter is given by somebody else."""
        first = next(iter(self.parameters.values()), None)
        bound = first.name if first is not None and not first.by_position else ""
        return dataclasses.replace(self, parameters=dict(list(self.parameters.items())[1:]), bound=bound)


class Signatures:
    """Reads signatures, and what classes annotate, each one once."""

    def __init__(self) -> None:
        """Start with none."""
        self._known: dict[Any, Signature] = {}
        self._annotated: dict[type, Mapping[str, Any]] = {}

    def annotations(self, cls: type) -> Mapping[str, Any]:
        """Return the annotations of a class's attributes, those of its bases too."""
        if cls not in self._annotated:
            self._annotated[cls] = resolved(cls)
        return self._annotated[cls]

    def of(self, target: Any) -> Signature:
        """Return the signature of a class (its constructor's) or function; None, which nobody knows, takes anything."""
        if target not in self._known:
            self._known[target] = _read(target)
        return self._known[target]


def _read(target: Any) -> Signature:
    if is_typed_dict(target):
        return Signature(_keys(target), open=False, extra=UNKNOWN, returns=target)
    try:
        signature = inspect.signature(target)
    except (ValueError, TypeError):  # nobody knows, or a class written in C that does not tell
        return Signature({}, open=True, extra=UNKNOWN, returns=target if isinstance(target, type) else UNKNOWN)
    hints = _hints(target) if signature.parameters or not isinstance(target, type) else {}
    kinds = inspect.Parameter
    parameters, extra, is_open = {}, UNKNOWN, False
    for one in signature.parameters.values():
        annotation = hints.get(one.name, UNKNOWN)
        several = one.kind is kinds.VAR_POSITIONAL
        if one.kind is kinds.VAR_KEYWORD:
            options = get_args(annotation)[0] if get_origin(annotation) is Unpack else None
            if options is None:
                extra, is_open = annotation, True
            else:
                parameters.update(_keys(get_origin(options) or options))
            continue
        if several and annotation is not UNKNOWN:
            annotation = _LIST[annotation]
        parameters[one.name] = Parameter(
            one.name,
            annotation,
            required=one.default is kinds.empty and not several,
            by_position=several or one.kind is kinds.POSITIONAL_ONLY,
            several=several,
            default=one.default,
        )
    returns = target if isinstance(target, type) else hints.get("return", UNKNOWN)
    return Signature(parameters, is_open, extra, returns, _self_of(target) if is_open else "")


def _self_of(target: Any) -> str:
    """Return the name of the object itself among the parameters of a class's constructor; empty when it has none."""
    maker = member_of(target, "__init__") if isinstance(target, type) else None
    if not inspect.isfunction(maker):
        return ""
    first = next(iter(inspect.signature(maker).parameters.values()), None)
    return first.name if first is not None and first.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD else ""


def _keys(cls: Any) -> dict[str, Parameter]:
    """Return the keys of a TypedDict as parameters."""
    return {key: Parameter(key, hint, needed) for key, (hint, needed) in keys_of(cls).items()}


def _hints(target: Any) -> Mapping[str, Any]:
    if not isinstance(target, type):
        return resolved(target)
    maker: Any = member_of(target, "__init__")
    if maker is object.__init__:
        maker = inspect.unwrap(target.__new__)
    # A dataclass's constructor carries its bases' annotations as text, to be looked up where each was written.
    fields = resolved(target) if dataclasses.is_dataclass(target) else {}
    return {**fields, **(resolved(maker) if inspect.isfunction(maker) else {})}


def arranged(
    signature: Signature, values: Mapping[str, T], constant: Callable[[Any], T]
) -> tuple[tuple[T, ...], dict[str, T]]:
    """Return `values`, given by name, as positional and keyword arguments.

    Names are kept, but for the parameters that can be filled by position only and those that stand before them; one
    that is left out in between gets `constant(default)`.
    """
    order = list(signature.parameters.values())
    leading = order[: 1 + max((i for i, one in enumerate(order) if one.by_position and one.name in values), default=-1)]
    filled = {one.name for one in leading}
    positional = tuple(
        values[one.name] if one.name in values else constant(one.default)
        for one in leading
        if one.name in values or not (one.required or one.several)
    )
    return positional, {name: value for name, value in values.items() if name not in filled}
