"""Paths to the fields of a seed, as in `customer` or `header.customer`, compared with the seed's annotation."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args, get_origin

from iocflow.container.inspecting.annotations import UNKNOWN, alternatives, fields_of, shown
from iocflow.container.inspecting.parameters import Signatures
from iocflow.wiring import did_you_mean

__all__ = ["path_fault", "without_prefix"]

_PLAIN = "name a field that holds one value, as a number or text"
_MANY = (list, tuple, set, frozenset, dict)


def without_prefix(path: str, seed: Any, signatures: Signatures) -> str:
    """Return `seed.customer` as `customer`, unless the seed itself has a field `seed`."""
    rest = path.removeprefix("seed.")
    return path if "seed" in _names(alternatives(seed), signatures) else rest


def path_fault(path: str, annotation: Any, signatures: Signatures) -> tuple[str, str] | None:
    """Return why a seed of that annotation has no single value at `path`, and what to write instead."""
    for name in path.split("."):
        options = alternatives(annotation)
        found = [inner for option in options for inner in _field(option, name, signatures)]
        if not found:
            names = _names(options, signatures)
            what = f"`{shown(annotation)}` has no field `{name}`"
            return what, did_you_mean(name, names) if names else _PLAIN
        annotation = found[0]
    if any(map(_holds_many, alternatives(annotation))):
        return f"that field holds `{shown(annotation)}`", _PLAIN
    return None


def _field(annotation: Any, name: str, signatures: Signatures) -> Iterator[Any]:
    """Yield the annotation of a field, if what has `annotation` can have that field."""
    cls = get_origin(annotation) or annotation
    if not isinstance(cls, type) or cls is object:
        yield UNKNOWN
    elif issubclass(cls, Mapping) and not typing.is_typeddict(cls):
        yield (*get_args(annotation), UNKNOWN, UNKNOWN)[1]
    elif name in _names((annotation,), signatures):
        yield signatures.annotations(cls).get(name, UNKNOWN)


def _names(options: Iterable[Any], signatures: Signatures) -> set[str]:
    """Return the fields that a value of these types can have."""
    classes = [get_origin(one) or one for one in options]
    own = [one for one in classes if isinstance(one, type) and one.__module__ != "builtins"]
    return {name for one in own for name in (*fields_of(one), *signatures.annotations(one))}


def _holds_many(annotation: Any) -> bool:
    kind = get_origin(annotation) or annotation
    return dataclasses.is_dataclass(kind) or (isinstance(kind, type) and issubclass(kind, _MANY))
