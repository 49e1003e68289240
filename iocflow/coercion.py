"""Fits seed data to the type that a context annotates, with the standard library alone."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
import pathlib
import textwrap
import types
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

from iocflow.errors import SeedError

__all__ = ["coerce"]


def coerce(value: Any, wanted: Any, where: str) -> Any:
    """Return `value` as `wanted`, an annotation; what fits already is returned as it is.

    A mapping becomes a dataclass (or whatever offers `model_validate`), text becomes a number, date, enum member,
    path or UUID, a number becomes a `Decimal` by its shortest text. `where` is the name of the field, as in
    `seed.rate_drop`.

    Raises:
        SeedError: The value does not fit; the message begins with the field.
    """
    origin = get_origin(wanted)
    if origin is typing.Annotated or isinstance(wanted, typing.NewType):
        return coerce(value, getattr(wanted, "__origin__", None) or wanted.__supertype__, where)
    if wanted in (Any, object) or isinstance(wanted, typing.TypeVar):
        return value
    if wanted is None or wanted is types.NoneType:
        return value if value is None else _misfit(value, "null", where)
    if origin is Literal:
        return value if value in get_args(wanted) else _misfit(value, f"one of {get_args(wanted)}", where)
    if origin in (Union, types.UnionType):
        return _alternative(value, get_args(wanted), where)
    if origin is not None:
        return _generic(value, origin, get_args(wanted), where)
    if isinstance(wanted, type):
        return _plain(value, wanted, where)
    return value


def _misfit(value: Any, wanted: str, where: str, cause: Exception | None = None) -> typing.NoReturn:
    shown = repr(value)
    shown = textwrap.shorten(shown, 80, placeholder="…")
    raise SeedError(f"{where}: {shown} is not {wanted}") from cause


def _alternative(value: Any, choices: Sequence[Any], where: str) -> Any:
    if any(isinstance(choice, type) and type(value) is choice for choice in choices):
        return value
    reasons = []
    for choice in choices:
        try:
            return coerce(value, choice, where)
        except SeedError as error:
            reasons.append(error)
    real = [reason for choice, reason in zip(choices, reasons, strict=True) if choice is not types.NoneType]
    raise (
        real[0] if len(real) == 1 else SeedError(f"{where}: {value!r} fits none of {', '.join(map(_called, choices))}")
    )


def _called(wanted: Any) -> str:
    return getattr(wanted, "__name__", str(wanted))


def _generic(value: Any, origin: Any, args: tuple[Any, ...], where: str) -> Any:
    if origin is tuple and isinstance(value, Sequence) and not isinstance(value, str | bytes) and args[-1:] != (...,):
        if len(value) != len(args):
            _misfit(value, f"a list of {len(args)} values", where)
        return tuple(coerce(item, arg, f"{where}[{i}]") for i, (item, arg) in enumerate(zip(value, args, strict=True)))
    if issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            _misfit(value, "a mapping", where)
        return {coerce(k, args[0], where): coerce(v, args[1], f"{where}.{k}") for k, v in value.items()}
    if issubclass(origin, Sequence | set | frozenset):
        if not isinstance(value, Sequence | set | frozenset) or isinstance(value, str | bytes):
            _misfit(value, "a list", where)
        items = [coerce(item, args[0], f"{where}[{i}]") for i, item in enumerate(value)]
        return items if origin not in (tuple, set, frozenset) else origin(items)
    return value if isinstance(value, origin) else _misfit(value, _called(origin), where)


def _plain(value: Any, wanted: type, where: str) -> Any:
    if isinstance(value, wanted) and not (isinstance(value, bool) and wanted is not bool):
        return value
    if dataclasses.is_dataclass(wanted):
        return _dataclass(value, wanted, where)
    if hasattr(wanted, "model_validate"):
        return _converted(wanted.model_validate, value, wanted, where)
    if typing.is_typeddict(wanted):
        hints = typing.get_type_hints(wanted)
        return _fields(value, hints, wanted.__required_keys__, where)  # type: ignore[attr-defined]
    if issubclass(wanted, enum.Enum):
        names = {member.name: member for member in wanted} | {member.value: member for member in wanted}
        return names[value] if value in names else _misfit(value, f"one of {[m.value for m in wanted]}", where)
    makers: dict[type, tuple[tuple[type, ...], Callable[[Any], Any]]] = {
        int: ((str,), int),
        float: ((str, int), float),
        decimal.Decimal: ((str, int, float), _decimal),
        datetime.datetime: ((str,), datetime.datetime.fromisoformat),
        datetime.date: ((str,), datetime.date.fromisoformat),
        datetime.time: ((str,), datetime.time.fromisoformat),
        uuid.UUID: ((str,), uuid.UUID),
        pathlib.Path: ((str,), pathlib.Path),
    }
    sources, make = makers.get(wanted, ((), wanted))
    if isinstance(value, sources) and not isinstance(value, bool):
        return _converted(make, value, wanted, where)
    return _misfit(value, _called(wanted), where)


def _decimal(value: str | int | float) -> decimal.Decimal:
    number = decimal.Decimal(repr(value) if isinstance(value, float) else value)
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return number


def _converted(make: Callable[[Any], Any], value: Any, wanted: type, where: str) -> Any:
    try:
        return make(value)
    except (ValueError, TypeError, ArithmeticError) as error:
        _misfit(value, _called(wanted), where, error)


def _dataclass(value: Any, wanted: type, where: str) -> Any:
    hints = typing.get_type_hints(wanted)
    fields = [field for field in dataclasses.fields(wanted) if field.init]
    required = {f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING}
    values = _fields(value, {field.name: hints[field.name] for field in fields}, required, where)
    return _converted(lambda given: wanted(**given), values, wanted, where)


def _fields(value: Any, hints: Mapping[str, Any], required: set[str] | frozenset[str], where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        _misfit(value, f"a mapping with {', '.join(hints)}", where)
    unknown = [str(key) for key in value if key not in hints]
    missing = sorted(required - set(value))
    if missing or unknown:
        parts = [f"{where}.{name} is missing" for name in missing]
        parts += [f"{where}.{name} is unknown (known: {', '.join(hints)})" for name in unknown]
        raise SeedError("; ".join(parts))
    return {key: coerce(item, hints[key], f"{where}.{key}") for key, item in value.items()}
