"""Values as annotations want them, by pydantic's rules, durations included."""

from __future__ import annotations

import collections.abc
import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BeforeValidator, ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator
from pydantic_core.core_schema import CoreConfig

from iocflow.container.inspecting.annotations import (
    UNKNOWN,
    Candidate,
    classes_in,
    fits,
    is_protocol,
    is_typed_dict,
    members,
    unwrapped,
)
from iocflow.container.inspecting.numbers import FloatDuration, TimeDuration, WholeNumber, with_numbers
from iocflow.container.inspecting.typed_dicts import checkable, is_foreign
from iocflow.errors import IocflowError

__all__ = ["Coercion", "Misfit", "MisfitError"]

_TUPLE: Any = tuple
_LIST: Any = list
_STRICT = ConfigDict(arbitrary_types_allowed=True, extra="forbid")
_CORE = CoreConfig(extra_fields_behavior="forbid")
_NUMBERS: dict[Any, type] = {int: WholeNumber, float: FloatDuration, timedelta: TimeDuration}
_AS_THEY_ARE: tuple[type, ...] = (str, int, float, bool)

_Validator = TypeAdapter[Any] | SchemaValidator


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


_INCOMPLETE = Misfit(
    (), "incomplete", "write `!new {class: …, args: …}`: its own annotations name what no data becomes, or is not there"
)


class MisfitError(IocflowError):
    """A value does not fit its annotation; caught beside the call."""

    def __init__(self, misfits: tuple[Misfit, ...]) -> None:
        """Take all reasons."""
        super().__init__(misfits)
        self.misfits = misfits


class Coercion:
    """Coerces values; keeps what pydantic compiles for each annotation, for as long as one file is checked."""

    def __init__(self) -> None:
        """Start with nothing compiled."""
        self._validators: dict[Any, _Validator | None] = {}

    def coerce(self, value: Any, annotation: Any) -> Any:
        """Return `value` as `annotation` wants it.

        Raises:
            MisfitError: It does not fit.
        """
        if annotation is UNKNOWN or (type(value) is annotation and annotation in _AS_THEY_ARE):
            return value
        validator = self._validator(annotation)
        if validator is None:
            if any(map(_has_fields, classes_in(annotation))):
                raise MisfitError((_INCOMPLETE,))
            return value
        try:
            return validator.validate_python((value,))[0]
        except ValidationError as error:
            raise MisfitError(tuple(map(_misfit, error.errors(include_url=False, include_input=False)))) from error
        except PydanticUserError as error:
            raise MisfitError((_INCOMPLETE,)) from error
        except Exception as error:  # a class that refuses a value may raise anything
            raise MisfitError((Misfit((), "value_error", f"{type(error).__name__}: {error}"),)) from error

    def _validator(self, annotation: Any) -> _Validator | None:
        try:
            known = annotation in self._validators
        except TypeError:  # Annotated with a list, say: it cannot be kept, and is compiled each time
            return _compiled(annotation)
        if not known:
            self._validators[annotation] = _compiled(annotation)
        return self._validators[annotation]


def _compiled(annotation: Any) -> _Validator | None:
    """Return what validates a tuple of one: a dataclass in it takes the tuple's configuration, alone it refuses any."""
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(_TUPLE[_understood(annotation, {})], config=_STRICT)
        if any(map(_has_fields, classes_in(annotation))):
            return SchemaValidator(with_numbers(adapter.core_schema), _CORE)
    except Exception:  # noqa: BLE001 - a class may bring a schema of its own, and that may raise anything
        return None  # nothing that pydantic could compare a value with: it is taken as it is
    return adapter


def _has_fields(cls: type) -> bool:
    """Whether a class has annotations of its own by which values become its fields or keys."""
    named = issubclass(cls, tuple) and hasattr(cls, "_fields")
    return named or dataclasses.is_dataclass(cls) or is_typed_dict(cls)


def _misfit(error: Mapping[str, Any]) -> Misfit:
    why = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return Misfit(tuple(error["loc"][1:]), error["type"], why[:1].lower() + why[1:])


def _understood(annotation: Any, known: dict[Any, Any]) -> Any:
    """Return the annotation with numbers read as files have them, and Protocols compared by what they name.

    `known` has the TypedDicts that were replaced, by class.
    """
    if annotation in _NUMBERS:
        return _NUMBERS[annotation]
    origin, args = get_origin(annotation), get_args(annotation)
    if is_protocol(origin or annotation):
        return Annotated[Any, BeforeValidator(_structural(origin or annotation))]
    understood = partial(_understood, known=known)
    if is_foreign(origin or annotation):
        return checkable(origin or annotation, understood, known)
    if origin in (Union, types.UnionType):
        text = str in args  # beside which a duration stays what it is
        return Union[tuple(one if text and one is float else understood(one) for one in args)]  # noqa: UP007
    if origin is Annotated:
        return Annotated[(understood(args[0]), *args[1:])]
    if isinstance(annotation, typing.NewType) or hasattr(annotation, "__value__"):
        return understood(unwrapped(annotation))
    if (origin or annotation) is collections.abc.Iterable:
        return understood(_LIST[args]) if args else list  # pydantic would give an iterator, which can be read once
    if origin in _CONTAINERS and args and origin is not collections.abc.Callable:
        return origin[tuple(one if one is ... or isinstance(one, TypeVar) else understood(one) for one in args)]
    return annotation


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
