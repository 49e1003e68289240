"""What msgspec makes of an annotation: its kind; how kinds lie in one another, and where a value does not fit its."""

from __future__ import annotations

import datetime
import decimal
import math
import reprlib
import typing
import uuid
from collections.abc import Collection, Iterable, Iterator
from types import NoneType
from typing import Any

from msgspec import inspect as kinds

Kind = kinds.Type

# The types whose values are stored, by kind; the first is the one that comes back.
_VALUES: dict[type[Kind], tuple[type, ...]] = {
    kinds.NoneType: (NoneType,),
    kinds.BoolType: (bool,),
    kinds.IntType: (int,),
    kinds.FloatType: (float, int),
    kinds.StrType: (str,),
    kinds.BytesType: (bytes,),
    kinds.ByteArrayType: (bytearray,),
    kinds.DecimalType: (decimal.Decimal, int),
    kinds.UUIDType: (uuid.UUID,),
    kinds.DateTimeType: (datetime.datetime,),
    kinds.DateType: (datetime.date,),
    kinds.TimeType: (datetime.time,),
    kinds.TimeDeltaType: (datetime.timedelta,),
    kinds.ListType: (list,),
    kinds.SetType: (set,),
    kinds.FrozenSetType: (frozenset,),
    kinds.TupleType: (tuple,),
    kinds.VarTupleType: (tuple,),
    kinds.DictType: (dict,),
    kinds.TypedDictType: (dict,),
}
_RECORDS = (kinds.DataclassType, kinds.NamedTupleType, kinds.StructType)
_MOMENTS = (kinds.DateTimeType, kinds.TimeType)

STORABLE: tuple[type[Kind], ...] = (
    *_VALUES,
    *_RECORDS,
    kinds.EnumType,
    kinds.LiteralType,
    kinds.UnionType,
    kinds.CustomType,
)


def inner(kind: Kind) -> list[tuple[str, Kind]]:
    """Return the kinds of what `kind` holds, and where, as `.price` or `[]`."""
    if isinstance(kind, kinds.CollectionType):
        return [("[]", kind.item_type)]
    if isinstance(kind, kinds.TupleType):
        return [(f"[{i}]", item) for i, item in enumerate(kind.item_types)]
    if isinstance(kind, kinds.DictType):
        return [("[key]", kind.key_type), ("[]", kind.value_type)]
    if isinstance(kind, kinds.UnionType):
        return [("", one) for one in kind.types]
    if isinstance(kind, (*_RECORDS, kinds.TypedDictType)):
        return [(f".{field.name}", field.type) for field in kind.fields]
    return []


def reach(kind: Kind) -> dict[int, tuple[str, Kind]]:
    """Return `kind` and all kinds in it, each once and by its `id`, with where it lies first."""
    found: dict[int, tuple[str, Kind]] = {}
    waiting = [("", kind)]
    while waiting:
        where, one = waiting.pop()
        if id(one) not in found:
            found[id(one)] = where, one
            waiting += [(where + at, part) for at, part in reversed(inner(one))]
    return found


def moments(some: Iterable[Kind]) -> set[int]:
    """Return the ids of those kinds, of `some` and in them, that are or hold a datetime or a time."""
    everything = {key: kind for one in some for key, (_, kind) in reach(one).items()}
    found = {key for key, kind in everything.items() if isinstance(kind, _MOMENTS)}
    grown = True
    while grown:
        more = {key for key, kind in everything.items() if any(id(part) in found for _, part in inner(kind))}
        grown = not more <= found
        found |= more
    return found


def find_fault(value: Any, kind: Kind, only: Collection[int] | None = None) -> tuple[str, str] | None:
    """Return where `value` does not fit `kind`, as `[3].price`, and why not; None where nothing is found.

    With `only`, the search goes no deeper than the kinds of those ids.
    """
    if isinstance(kind, kinds.UnionType):
        kind = next((one for one in kind.types if _fits(value, one)), kind)
    reason = _reason(value, kind)
    if reason is not None:
        return "", reason
    for at, part, part_kind in _parts(value, kind):
        if only is None or id(part_kind) in only:
            fault = find_fault(part, part_kind, only)
            if fault is not None:
                return f".{at}{fault[0]}" if hasattr(kind, "fields") else f"[{at!r}]{fault[0]}", fault[1]
    return None


def _parts(value: Any, kind: Kind) -> Iterator[tuple[Any, Any, Kind]]:
    """Yield the keys, indices or names of what `value` holds, and that, and its kind."""
    if isinstance(kind, kinds.CollectionType):
        yield from ((i, item, kind.item_type) for i, item in enumerate(value))
    elif isinstance(kind, kinds.TupleType):
        yield from ((i, *pair) for i, pair in enumerate(zip(value, kind.item_types, strict=False)))
    elif isinstance(kind, kinds.DictType):
        yield from ((key, key, kind.key_type) for key in value)
        yield from ((key, item, kind.value_type) for key, item in value.items())
    elif isinstance(kind, kinds.TypedDictType):
        yield from ((field.name, value[field.name], field.type) for field in kind.fields if field.name in value)
    elif isinstance(kind, _RECORDS):
        for field in kind.fields:
            if hasattr(value, field.name):
                yield field.name, getattr(value, field.name), field.type


def _fits(value: Any, kind: Kind) -> bool:
    """Return whether the type of `value` is right, without a look at what it holds."""
    if isinstance(kind, kinds.UnionType):
        return any(_fits(value, one) for one in kind.types)
    if isinstance(kind, kinds.LiteralType):
        return any(value == one and type(value) is type(one) for one in kind.values)
    if isinstance(kind, _RECORDS):
        return type(value) is (typing.get_origin(kind.cls) or kind.cls)  # a subclass would lose its own fields
    if isinstance(kind, kinds.EnumType | kinds.CustomType):
        return isinstance(value, kind.cls)
    if isinstance(value, bool):
        return isinstance(kind, kinds.BoolType)
    if isinstance(value, datetime.datetime):
        return isinstance(kind, kinds.DateTimeType)
    return isinstance(value, _VALUES[type(kind)])


def _reason(value: Any, kind: Kind) -> str | None:
    """Return why `value` itself cannot be stored as `kind`."""
    if not _fits(value, kind):
        return f"{type(value).__qualname__} {reprlib.repr(value)} is not {_called(kind)}"
    if isinstance(kind, kinds.TypedDictType):
        unknown = value.keys() - {field.name for field in kind.fields}
        return f"{_called(kind)} has no {', '.join(sorted(map(repr, unknown)))}" if unknown else None
    match value:
        case datetime.datetime() | datetime.time():
            return _reason_of_moment(value)
        case float() if not math.isfinite(value):
            return f"{value} has no form in JSON; use None"
        case decimal.Decimal() if value.is_nan():
            return f"{value} equals nothing, not even itself; use None"
        case str() if not _is_text(value):
            return f"{reprlib.repr(value)} has a lone surrogate, which is no text; keep it as bytes"
    return None


def _reason_of_moment(value: datetime.datetime | datetime.time) -> str | None:
    """Return what would be lost: JSON has the offset of a moment, in minutes, and neither its zone nor its `fold`."""
    offset = None if value.tzinfo is None else value.tzinfo.utcoffset(None)
    if value.tzinfo is not None and (offset is None or offset % datetime.timedelta(minutes=1)):
        return f"the zone {value.tzinfo} of {value} would be lost; use `.astimezone(UTC)`, and a field for the zone"
    return f"`fold=1` of {value} would be lost; use `.astimezone(UTC)`" if value.fold else None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _called(kind: Kind) -> str:
    if isinstance(kind, kinds.UnionType):
        return " | ".join(map(_called, kind.types))
    if isinstance(kind, kinds.LiteralType):
        return f"one of {', '.join(map(repr, kind.values))}"
    if type(kind) in _VALUES and not isinstance(kind, kinds.TypedDictType):
        return _VALUES[type(kind)][0].__name__
    cls: Any = getattr(kind, "cls", None)
    return str(getattr(cls, "__qualname__", cls))
