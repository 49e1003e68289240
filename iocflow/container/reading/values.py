"""The `values:` of several files, profiles and the caller as one mapping."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from iocflow.container.nodes import clipped, is_table
from iocflow.container.reading.resolving import key_paths
from iocflow.wiring import Findings, Listing, Node, Place, Scalar, Table, did_you_mean

__all__ = ["check_values", "given_keys", "overlaid", "with_given"]

_KEY = re.compile(r"\w[\w-]*")
_RESERVED = ("env", "secret", "here")


def check_values(values: Table, findings: Findings) -> None:
    """Note keys that no placeholder can name, and tags: values are plain data."""
    for key in _RESERVED:
        if key in values.keys:
            findings.error(values.keys[key], f"the value `{key}` cannot be named `{key}`", "placeholders use that word")
    _check_keys(values, findings)


def _check_keys(node: Node, findings: Findings) -> None:
    if node.tag:
        findings.error(
            node.place, f"the tag `!{node.tag}` in `values:`", "values are plain data; write it where it is used"
        )
    if isinstance(node, Listing):
        for item in node.items:
            _check_keys(item, findings)
    elif isinstance(node, Table):
        for key, place, child in node:
            if not _KEY.fullmatch(key):
                remedy = (
                    "nest it: `smtp: {host: …}` is `${smtp.host}`" if "." in key else "use letters, digits, `-` and `_`"
                )
                findings.error(place, f"no placeholder can name the value `{clipped(key)}`", remedy)
            _check_keys(child, findings)


def overlaid(
    base: Table, top: Table, unknown: Callable[[str, Place], None] | None = None, *, prefix: str = ""
) -> Table:
    """Return `base` with what `top` says in its place, mappings merged by key.

    Args:
        base: What is overlaid; it is not changed.
        top: What wins.
        unknown: Is told the key and place of what is not in `base`, which is then left out; None lets it in.
        prefix: The key of both, with a dot.
    """
    entries, keys = dict(base.entries), dict(base.keys)
    for key, place, node in top:
        old = entries.get(key)
        if old is None and unknown:
            unknown(f"{prefix}{key}", place)
            continue
        if is_table(old) and is_table(node):
            node = overlaid(old, node, unknown, prefix=f"{prefix}{key}.")  # noqa: PLW2901 - what is put at the key
        entries[key], keys[key] = node, place
    return Table(top.place, entries, keys)


def with_given(values: Table, given: Mapping[str, Any], findings: Findings) -> Table:
    """Return `values` with those in their place that the caller gave, by dotted key or nested.

    What is given is taken as it is: a `${` in it is no placeholder.
    """
    for key, value in _flat(given, ""):
        values = _put(values, key, key.split("."), value, values, findings)
    return values


def given_keys(given: Mapping[str, Any]) -> frozenset[str]:
    """Return the dotted keys of what the caller gave."""
    return frozenset(key for key, _ in _flat(given, ""))


def _flat(given: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in given.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _put(table: Table, key: str, path: list[str], value: Any, values: Table, findings: Findings) -> Table:
    """Return `table` with `value` at `path`, which is the rest of `key`; note it when there is no such key."""
    old = table.entries.get(path[0])
    place = _key_place(values, key)
    new: Node | None
    if old is None or (len(path) > 1 and not isinstance(old, Table)):
        findings.error(place, f"no value `{clipped(key)}` to set", did_you_mean(key, key_paths(values)))
        return table
    if len(path) > 1 and isinstance(old, Table):
        new = _put(old, key, path[1:], value, values, findings)
    elif isinstance(old, Table):
        known = ", ".join(f"`{name}`" for name in key_paths(old, f"{key}."))
        findings.error(place, f"the value `{clipped(key)}` to set is a mapping", f"set one of its own: {known}")
        return table
    else:
        new = _node(value, old.place)
        if new is None:
            what = f"the value `{clipped(key)}` to set is of type {type(value).__name__}"
            findings.error(place, what, "give a text, a number, true or false, a path, or a list of those")
            return table
    return Table(table.place, {**table.entries, path[0]: new}, table.keys)


def _key_place(values: Table, key: str) -> Place:
    """Return where the last part of the dotted `key` stands that there is."""
    node: Node | None = values
    place = values.place
    for part in key.split("."):
        if not isinstance(node, Table) or part not in node.entries:
            break
        place, node = node.keys[part], node.entries[part]
    return place


def _node(value: Any, place: Place) -> Node | None:
    """Return the caller's `value` as a node, or None when it cannot be one."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        return Scalar(place, value.replace("${", "$${"), value)
    if value is None or isinstance(value, bool):
        return Scalar(place, value, {None: "null", True: "true", False: "false"}[value])
    if isinstance(value, int | float):
        return Scalar(place, value, str(value))
    if isinstance(value, list | tuple):
        items = [_node(item, place) for item in value]
        return None if None in items else Listing(place, tuple(item for item in items if item is not None))
    return None
