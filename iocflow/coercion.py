"""Fits seed data to the type that a context annotates, with the standard library alone."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import inspect
import pathlib
import reprlib
import types
import typing
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any, Literal, NoReturn, Union, get_args, get_origin

from iocflow.errors import SeedError


def coerce(value: Any, wanted: Any, where: str) -> Any:
    """Return `value` as `wanted`, an annotation; what fits already is returned as it is.

    A mapping becomes a dataclass (or whatever offers `model_validate`), text becomes a number, date, enum member,
    path or UUID, a number becomes a `Decimal` by its shortest text; a `Decimal` is finite. `where` is the name of the
    field, as in `seed.rate_drop`.

    Raises:
        SeedError: The value does not fit; the message begins with the field.
    """
    origin, args = get_origin(wanted), get_args(wanted)
    if origin in (typing.Annotated, typing.Required, typing.NotRequired):
        return coerce(value, args[0], where)
    if isinstance(wanted, typing.NewType):
        return coerce(value, wanted.__supertype__, where)
    if wanted in (None, types.NoneType):
        return value if value is None else _misfit(value, "null", where)
    if origin is Literal:
        fits = any(value == one and type(value) is type(one) for one in args)
        return value if fits else _misfit(value, f"one of {args}", where)
    if origin in (Union, types.UnionType):
        return _alternative(value, args, where)
    if isinstance(origin, type):
        return _generic(value, origin, args, where)
    return _plain(value, wanted, where) if isinstance(wanted, type) and wanted is not Any else value


def hints_of(owner: object, name: str, **scopes: Any) -> dict[str, Any]:
    """Return the annotations of `owner`, resolved.

    Raises:
        SeedError: One cannot be resolved; `name` says of what.
    """
    try:
        return typing.get_type_hints(owner, include_extras=True, **scopes)
    except (NameError, AttributeError, TypeError) as error:
        hint = "what they name must be defined at the top of the module"
        raise SeedError(f"the annotations of {name} cannot be resolved ({error}); {hint}") from error


def _misfit(value: Any, wanted: str, where: str, reason: str = "") -> NoReturn:
    raise SeedError(f"{where}: {reprlib.repr(value)} is not {wanted}{reason}")


def _alternative(value: Any, choices: Sequence[Any], where: str) -> Any:
    if any(isinstance(choice, type) and type(value) is choice for choice in choices):
        return value
    reasons = []
    for choice in choices:
        try:
            return coerce(value, choice, where)
        except SeedError as error:
            reasons += [error] if choice is not types.NoneType else []
    if len(reasons) == 1:
        raise reasons[0]
    _misfit(value, f"any of {', '.join(map(_called, choices))}", where)


def _called(wanted: Any) -> str:
    return getattr(wanted, "__name__", str(wanted))


def _generic(value: Any, origin: type, args: tuple[Any, ...], where: str) -> Any:
    first, second = (*args, Any, Any)[:2]
    if dataclasses.is_dataclass(origin) or typing.is_typeddict(origin) or hasattr(origin, "_fields"):
        return _plain(value, origin, where, args)
    if issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            _misfit(value, "a mapping", where)
        return {coerce(k, first, where): coerce(v, second, f"{where}.{k}") for k, v in value.items()}
    if not issubclass(origin, Collection):
        return _plain(value, origin, where)
    if not isinstance(value, Sequence | Set) or isinstance(value, str | bytes):
        _misfit(value, "a list", where)
    kinds = [first] * len(value)
    if origin is tuple and args and second is not ...:
        kinds = list(args)
        if len(value) != len(args):
            _misfit(value, f"a list of {len(args)} values", where)
    items = [coerce(item, kinds[i], f"{where}[{i}]") for i, item in enumerate(value)]
    make: Any = (set if issubclass(origin, Set) else list) if inspect.isabstract(origin) else origin
    return make(items)


def _plain(value: Any, wanted: type, where: str, args: tuple[Any, ...] = ()) -> Any:
    if typing.is_typeddict(wanted):
        return _typed_dict(value, wanted, where, args)
    if wanted is not decimal.Decimal and isinstance(value, wanted) and not (wanted is int and isinstance(value, bool)):
        return value
    if dataclasses.is_dataclass(wanted):
        return _dataclass(value, wanted, where, args)
    if hasattr(wanted, "model_validate"):
        return _converted(wanted.model_validate, value, wanted, where, explain=True)
    if issubclass(wanted, enum.Enum):
        return _member(value, wanted, where)
    makers: dict[type, tuple[tuple[type, ...], Callable[[Any], Any]]] = {
        int: ((str,), int),
        float: ((str, int), float),
        decimal.Decimal: ((str, int, float, decimal.Decimal), _decimal),
        **{kind: ((str,), kind.fromisoformat) for kind in (datetime.datetime, datetime.date, datetime.time)},
        **{kind: ((str,), kind) for kind in (uuid.UUID, pathlib.Path)},
    }
    sources, make = makers.get(wanted, ((), wanted))
    if isinstance(value, sources) and not isinstance(value, bool):
        return _converted(make, value, wanted, where)
    return _misfit(value, _called(wanted), where)


def _decimal(value: Any) -> decimal.Decimal:
    number = decimal.Decimal(repr(value) if isinstance(value, float) else value)
    if not number.is_finite():
        raise ValueError("not a finite number")
    return number


def _member(value: Any, wanted: type[enum.Enum], where: str) -> enum.Enum:
    for member in wanted:
        if type(member.value) is type(value) and member.value == value:
            return member
    if isinstance(value, str) and value in wanted.__members__:
        return wanted[value]
    _misfit(value, f"one of {[member.value for member in wanted]}", where)


def _converted(make: Callable[[Any], Any], value: Any, wanted: type, where: str, *, explain: bool = False) -> Any:
    try:
        return make(value)
    except (ValueError, TypeError, ArithmeticError) as error:
        _misfit(value, _called(wanted), where, f": {' '.join(str(error).split())}" if explain else "")


def _typed_dict(value: Any, wanted: Any, where: str, args: tuple[Any, ...]) -> Any:
    hints = _hints(wanted, args)
    # Where annotations are text, `__required_keys__` knows nothing of `NotRequired`: see its note in typing's docs.
    marks = {name: get_origin(hint) for name, hint in hints.items()}
    required = {name for name in wanted.__required_keys__ if marks[name] is not typing.NotRequired}
    required |= {name for name, mark in marks.items() if mark is typing.Required}
    return _fields(value, hints, required, where)


def _dataclass(value: Any, wanted: type, where: str, args: tuple[Any, ...]) -> Any:
    hints = _hints(wanted, args)
    fields = [field for field in dataclasses.fields(wanted) if field.init]
    required = {f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING}
    values = _fields(value, {field.name: hints[field.name] for field in fields}, required, where)
    return _converted(lambda given: wanted(**given), values, wanted, where, explain=True)


def _hints(owner: type, args: tuple[Any, ...]) -> dict[str, Any]:
    """Return the annotations of a class and its bases, with what their type parameters stand for put in."""
    hints = hints_of(owner, owner.__name__)
    if not hasattr(owner, "__orig_bases__"):  # neither generic nor a child of what is
        return hints
    given = dict(zip(getattr(owner, "__parameters__", ()), args, strict=False))
    own = {name: _filled(hints[name], given) for name in inspect.get_annotations(owner)}
    inherited: dict[str, Any] = {}
    for base in reversed(vars(owner).get("__orig_bases__", owner.__bases__)):
        if isinstance(origin := get_origin(base) or base, type):
            inherited |= _hints(origin, tuple(_filled(arg, given) for arg in get_args(base)))
    return own | inherited if typing.is_typeddict(owner) else inherited | own  # a typed dict has its bases' as its own


def _filled(hint: Any, given: Mapping[Any, Any]) -> Any:
    if isinstance(hint, typing.TypeVar):
        return given.get(hint, hint)
    parameters = () if isinstance(hint, type) else getattr(hint, "__parameters__", ())
    return hint[tuple(given.get(one, one) for one in parameters)] if parameters else hint


def _fields(value: Any, hints: Mapping[str, Any], required: set[str], where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        _misfit(value, f"a mapping with {', '.join(hints)}", where)
    unknown = [str(key) for key in value if key not in hints]
    missing = sorted(required - set(value))
    if missing or unknown:
        parts = [f"{where}.{name} is missing" for name in missing]
        parts += [f"{where}.{name} is unknown (known: {', '.join(hints)})" for name in unknown]
        raise SeedError("; ".join(parts))
    return {key: coerce(item, hints[key], f"{where}.{key}") for key, item in value.items()}
