"""Settings of a section as its file gives them: durations with their unit, each value within its bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from iocflow.wiring import Node, Scalar, Scope, Table
from iocflow.wiring.duration import duration_text

__all__ = ["Bounds", "read_duration", "read_settings"]

_NUMBER = re.compile(r"\s*[+-]?\d+(\.\d*)?\s*")

Bounds = Mapping[str, tuple[int, int] | tuple[timedelta, timedelta] | None]
"""By the key of a setting, the least and the most it may be: a number, or a duration; None for a text."""


def read_duration(node: Node, scope: Scope, what: str) -> timedelta | None:
    """Return a duration as `scope.coerce` does; a number without a unit is noted: some would take it for minutes."""
    if isinstance(node, Scalar) and _NUMBER.fullmatch(str(node.value)):
        remedy = f"write {node.text}s" if _NUMBER.fullmatch(node.text) else "write 500ms, 30s, 5m, 2h or 1d"
        scope.findings.error(node.place, f"{what} has no unit", remedy)
        return None
    value: timedelta | None = scope.coerce(node, timedelta, what)
    return value


def read_settings(section: Table, bounds: Bounds, owner: str, scope: Scope) -> dict[str, Any]:
    """Return the settings that a file gives, by key; an unknown one is noted, and each that is out of its bounds."""
    scope.unknown_keys(section, bounds, owner)
    given: dict[str, Any] = {}
    for key, _, node in section:
        if key not in bounds:
            continue
        what = f"{key} of {owner}"
        bound: tuple[Any, Any] | None = bounds[key]
        if bound is None:
            if (written := scope.coerce(node, str, what)) is not None:
                given[key] = written
            continue
        low, high = bound
        value = read_duration(node, scope, what) if isinstance(low, timedelta) else scope.coerce(node, int, what)
        if value is None:
            continue
        if low <= value <= high:
            given[key] = value
        else:
            scope.findings.error(node.place, f"{what} is out of bounds", f"write {_written(low)} to {_written(high)}")
    return given


def _written(bound: int | timedelta) -> str:
    return duration_text(bound) if isinstance(bound, timedelta) else str(bound)
