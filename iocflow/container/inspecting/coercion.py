"""Values as annotations want them, by pydantic's rules, durations included."""

from __future__ import annotations

import collections.abc
import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import (
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import CoreSchema, core_schema

from iocflow.container.inspecting.annotations import (
    UNKNOWN,
    Candidate,
    alternatives,
    fits,
    is_protocol,
    members,
    unwrapped,
)
from iocflow.errors import IocflowError
from iocflow.wiring.duration import seconds_of

__all__ = ["Coercion", "Misfit", "MisfitError"]

_TUPLE: Any = tuple
_LIST: Any = list
_STRICT = ConfigDict(arbitrary_types_allowed=True, extra="forbid")
_AS_THEY_ARE: tuple[type, ...] = (str, int, float, bool)


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a value does not fit: where inside it, pydantic's name for the reason, and what it says."""

    path: tuple[int | str, ...]
    kind: str
    why: str

    @property
    def quotes_value(self) -> bool:
        """Whether the text comes from the class itself, so that it may hold the value."""
        return self.kind in ("value_error", "assertion_error")


_INCOMPLETE = Misfit((), "incomplete", "write `!new {class: …, args: …}`: what its own annotations name is not there")


class MisfitError(IocflowError):
    """A value does not fit its annotation; caught beside the call."""

    def __init__(self, misfits: tuple[Misfit, ...]) -> None:
        """Take all reasons."""
        super().__init__(misfits)
        self.misfits = misfits


def _seconds(value: Any) -> Any:
    """Return a duration as seconds; anything else as it is."""
    seconds = seconds_of(value) if isinstance(value, str) else None
    return value if seconds is None else seconds


class Coercion:
    """Coerces values; keeps what pydantic compiles for each annotation, for as long as one file is checked."""

    def __init__(self) -> None:
        """Start with nothing compiled."""
        self._adapters: dict[Any, TypeAdapter[Any] | None] = {}

    def coerce(self, value: Any, annotation: Any) -> Any:
        """Return `value` as `annotation` wants it.

        Raises:
            MisfitError: It does not fit.
        """
        if annotation is UNKNOWN or (type(value) is annotation and annotation in _AS_THEY_ARE):
            return value
        adapter = self._adapter(annotation)
        if adapter is None:
            if any(map(dataclasses.is_dataclass, alternatives(annotation))):
                raise MisfitError((_INCOMPLETE,))
            return value
        try:
            return adapter.validate_python((value,))[0]
        except ValidationError as error:
            raise MisfitError(tuple(map(_misfit, error.errors(include_url=False, include_input=False)))) from error
        except PydanticUserError as error:
            raise MisfitError((_INCOMPLETE,)) from error
        except Exception as error:  # a class that refuses a value may raise anything
            raise MisfitError((Misfit((), "value_error", f"{type(error).__name__}: {error}"),)) from error

    def _adapter(self, annotation: Any) -> TypeAdapter[Any] | None:
        try:
            known = annotation in self._adapters
        except TypeError:  # Annotated with a list, say: it cannot be kept, and is compiled each time
            return _compiled(annotation)
        if not known:
            self._adapters[annotation] = _compiled(annotation)
        return self._adapters[annotation]


def _compiled(annotation: Any) -> TypeAdapter[Any] | None:
    """Return the adapter of a tuple of one: a dataclass in it takes the tuple's configuration, alone it refuses any."""
    try:
        return TypeAdapter(_TUPLE[_understood(annotation)], config=_STRICT)
    except Exception:  # noqa: BLE001 - a class may bring a schema of its own, and that may raise anything
        return None  # nothing that pydantic could compare a value with: it is taken as it is


def _misfit(error: Mapping[str, Any]) -> Misfit:
    why = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return Misfit(tuple(error["loc"][1:]), error["type"], why[:1].lower() + why[1:])


def _understood(annotation: Any) -> Any:
    """Return the annotation with durations taken as seconds, and Protocols compared by what they name."""
    if annotation is float:
        return _Float
    if annotation is timedelta:
        return _Timedelta
    if is_protocol(annotation):
        return Annotated[Any, BeforeValidator(_structural(annotation))]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        text = str in args  # beside which a duration stays what it is
        return Union[tuple(one if text and one is float else _understood(one) for one in args)]  # noqa: UP007
    if origin is Annotated:
        return Annotated[(_understood(args[0]), *args[1:])]
    if isinstance(annotation, typing.NewType) or hasattr(annotation, "__value__"):
        return _understood(unwrapped(annotation))
    if (origin or annotation) is collections.abc.Iterable:
        return _understood(_LIST[args]) if args else list  # pydantic would give an iterator, which can be read once
    if origin in _CONTAINERS and args and origin is not collections.abc.Callable:
        return origin[tuple(one if one is ... or isinstance(one, TypeVar) else _understood(one) for one in args)]
    return annotation


class _Float:
    """Stands for a float that may be written as a duration.

    `Annotated` with a validator says the same, but makes pydantic import modules for a quarter of the time of a first
    load.
    """

    kind: type = float

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(_seconds, handler.generate_schema(cls.kind))


class _Timedelta(_Float):
    """Stands for a timedelta."""

    kind = timedelta


_CONTAINERS: tuple[Any, ...] = (
    list,
    tuple,
    dict,
    set,
    frozenset,
    collections.abc.Sequence,
    collections.abc.Collection,
    collections.abc.Mapping,
    collections.abc.MutableMapping,
    collections.abc.MutableSequence,
    collections.abc.Set,
)


def _structural(protocol: type) -> collections.abc.Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not fits(Candidate(type(value), objects=(value,)), protocol):
            raise ValueError(f"it needs {', '.join(members(protocol))}")
        return value

    return check
