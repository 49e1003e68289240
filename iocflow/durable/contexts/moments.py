"""What of a datetime or a time is not in JSON: that has the offset, in minutes, and neither the zone nor the `fold`.

Such a moment comes back equal, and yet not the same: a day later in Berlin is not always 24 hours later. So it is
looked for on its own, and only where the annotations say that there is a moment at all.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import inspect as kinds

from iocflow.durable.contexts.kinds import Kind, fits, inner, reach

Check = Callable[[Any], bool]

_MOMENTS = (kinds.DateTimeType, kinds.TimeType)
_MINUTE = datetime.timedelta(minutes=1)


def loss(moment: datetime.datetime | datetime.time) -> str | None:
    """Return what would be lost of `moment`, and what to write instead; None when nothing is."""
    zone = moment.tzinfo
    if zone is not None and zone is not datetime.UTC:
        offset = zone.utcoffset(None)  # None for a zone that has several
        if offset is None or offset % _MINUTE:
            return f"the zone {zone} of {moment} would be lost; keep it in UTC, and the zone in a field"
    return f"`fold=1` of {moment} would be lost; keep it in UTC" if moment.fold else None


class MomentChecks:
    """Makes, for kinds, what tells whether the moments in a value of that kind would come back as they are."""

    def __init__(self, some: Iterable[Kind]) -> None:
        """Find which of the kinds are or hold moments."""
        self._holding = _holding_moments(some)
        self._checks: dict[int, Check] = {}

    def of(self, kind: Kind) -> Check | None:
        """Return the check of a kind, for values that fit it; None where there is no moment."""
        key = id(kind)
        if key not in self._holding:
            return None
        if key not in self._checks:
            self._checks[key] = lambda value: self._checks[key](value)  # noqa: PLW0108 - for a kind that holds itself
            self._checks[key] = self._made(kind)
        return self._checks[key]

    def _made(self, kind: Kind) -> Check:
        if isinstance(kind, _MOMENTS):
            return lambda value: loss(value) is None
        if isinstance(kind, kinds.CollectionType):
            item = self.of(kind.item_type) or _whatever
            return lambda value: all(map(item, value))
        if isinstance(kind, kinds.DictType):
            key, item = self.of(kind.key_type) or _whatever, self.of(kind.value_type) or _whatever
            return lambda value: all(map(key, value)) and all(map(item, value.values()))
        if isinstance(kind, kinds.UnionType):
            choices = [(one, check) for one in kind.types if (check := self.of(one))]
            return lambda value: all(check(value) for one, check in choices if fits(value, one))
        if isinstance(kind, kinds.TupleType):
            places = [(i, check) for i, one in enumerate(kind.item_types) if (check := self.of(one))]
            return lambda value: all(check(value[i]) for i, check in places)
        fields = [(at.removeprefix("."), check) for at, one in inner(kind) if (check := self.of(one))]
        if isinstance(kind, kinds.TypedDictType):
            return lambda value: all(check(value[name]) for name, check in fields if name in value)
        return lambda value: all(check(getattr(value, name)) for name, check in fields)


def _whatever(value: Any) -> bool:  # noqa: ARG001
    return True


def _holding_moments(some: Iterable[Kind]) -> set[int]:
    """Return the ids of those kinds, of `some` and in them, that are or hold a moment."""
    everything = {key: kind for one in some for key, (_, kind) in reach(one).items()}
    found = {key for key, kind in everything.items() if isinstance(kind, _MOMENTS)}
    grown = bool(found)
    while grown:
        more = {key for key, kind in everything.items() if any(id(part) in found for _, part in inner(kind))}
        grown = not more <= found
        found |= more
    return found
