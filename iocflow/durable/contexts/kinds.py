"""What msgspec makes of an annotation: its kind; how kinds lie in one another, and which values are of one."""

from __future__ import annotations

import datetime
import decimal
import typing
import uuid
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
RECORDS = (kinds.DataclassType, kinds.NamedTupleType, kinds.StructType)

STORABLE: tuple[type[Kind], ...] = (
    *_VALUES,
    *RECORDS,
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
    if isinstance(kind, (*RECORDS, kinds.TypedDictType)):
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


def fits(value: Any, kind: Kind) -> bool:
    """Return whether the type of `value` is right, without a look at what it holds."""
    if isinstance(kind, kinds.UnionType):
        return any(fits(value, one) for one in kind.types)
    if isinstance(kind, kinds.LiteralType):
        return any(value == one and type(value) is type(one) for one in kind.values)
    if isinstance(kind, RECORDS):
        return type(value) is (typing.get_origin(kind.cls) or kind.cls)  # a subclass would lose its own fields
    if isinstance(kind, kinds.EnumType | kinds.CustomType):
        return isinstance(value, kind.cls)
    if isinstance(value, bool):
        return isinstance(kind, kinds.BoolType)
    if isinstance(value, datetime.datetime):
        return isinstance(kind, kinds.DateTimeType)
    return isinstance(value, _VALUES[type(kind)])


def called(kind: Kind) -> str:
    """Return what a kind is called in a message."""
    if isinstance(kind, kinds.UnionType):
        return " | ".join(map(called, kind.types))
    if isinstance(kind, kinds.LiteralType):
        return f"one of {', '.join(map(repr, kind.values))}"
    if isinstance(kind, kinds.NoneType):
        return "None"
    cls: Any = getattr(kind, "cls", None) or _VALUES[type(kind)][0]
    return str(getattr(cls, "__qualname__", cls))
