"""Where a value cannot be stored by its annotation, and why: asked only when that is known of the whole."""

from __future__ import annotations

import datetime
import decimal
import math
import reprlib
from collections.abc import Iterator
from typing import Any

from msgspec import inspect as kinds

from iocflow.durable.contexts.kinds import RECORDS, Kind, called, fits
from iocflow.durable.contexts.moments import loss


def find_fault(value: Any, kind: Kind) -> tuple[str, str] | None:
    """Return where `value` cannot be stored as `kind`, as `[3].price`, and why not; None where nothing is found."""
    if isinstance(kind, kinds.UnionType):
        kind = next((one for one in kind.types if fits(value, one)), kind)
    reason = _reason(value, kind)
    if reason is not None:
        return "", reason
    for at, part, part_kind in _parts(value, kind):
        fault = find_fault(part, part_kind)
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
    elif isinstance(kind, RECORDS):
        for field in kind.fields:
            if hasattr(value, field.name):
                yield field.name, getattr(value, field.name), field.type


def _reason(value: Any, kind: Kind) -> str | None:
    """Return why `value` itself cannot be stored as `kind`."""
    if not fits(value, kind):
        return f"{type(value).__qualname__} {reprlib.repr(value)} is not {called(kind)}"
    if isinstance(kind, kinds.TypedDictType):
        unknown = value.keys() - {field.name for field in kind.fields}
        return f"{called(kind)} has no {', '.join(sorted(map(repr, unknown)))}" if unknown else None
    match value:
        case datetime.datetime() | datetime.time():
            return loss(value)
        case float() if not math.isfinite(value):
            return f"{value} has no form in JSON; use None"
        case decimal.Decimal() if value.is_nan():
            return f"{value} equals nothing, not even itself; use None"
        case str() if not _is_text(value):
            return f"{reprlib.repr(value)} has a lone surrogate, which is no text; keep it as bytes"
    return None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
