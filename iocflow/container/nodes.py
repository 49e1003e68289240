"""What can be asked of the node of a file, whatever it describes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeGuard

from iocflow.wiring import Listing, Node, Scalar, Table

__all__ = [
    "Size",
    "Unresolved",
    "clipped",
    "described",
    "has_unresolved",
    "is_empty",
    "is_literal",
    "is_table",
    "is_tagged",
    "is_unresolved",
    "parts",
    "plain",
    "size_of",
    "with_article",
]


class Size(NamedTuple):
    """How many nodes a node holds with itself, and how deep they are nested in it."""

    nodes: int = 1
    height: int = 0


class Unresolved(str):
    """In `Scalar.value`: the value cannot be had and the mistake is noted; later checks pass over such a scalar."""

    __slots__ = ()


def is_unresolved(node: Node) -> bool:
    """Return whether a mistake is noted for `node` already, so that nothing more can be said of it."""
    return isinstance(node, Scalar) and isinstance(node.value, Unresolved)


def is_empty(node: Node) -> bool:
    """Return whether nothing is written after a key, so that it says nothing."""
    return isinstance(node, Scalar) and node.value is None and not node.tag


def is_table(node: Node | None) -> TypeGuard[Table]:
    """Return whether `node` is a mapping of data, not an inner bean."""
    return isinstance(node, Table) and not node.tag


def parts(node: Node) -> Iterable[Node]:
    """Return the nodes that stand directly in `node`."""
    if isinstance(node, Scalar):
        return ()
    return node.items if isinstance(node, Listing) else node.entries.values()


def size_of(node: Node, known: dict[int, tuple[Node, Size]]) -> Size:
    """Return the size of `node`, shared parts counted as often as they stand in it.

    `known` keeps what was found, by the id of the node, with the node itself so that no other one gets that id.
    """
    if isinstance(node, Scalar):
        return Size()
    if id(node) not in known:
        inner = [size_of(part, known) for part in parts(node)]
        size = Size(1 + sum(one.nodes for one in inner), 1 + max((one.height for one in inner), default=0))
        known[id(node)] = node, size
    return known[id(node)][1]


def has_unresolved(node: Node) -> bool:
    """Return whether a mistake about the node, or about a part of it, is noted already."""
    if isinstance(node, Scalar):
        return isinstance(node.value, Unresolved)
    return any(map(has_unresolved, parts(node)))


def is_tagged(node: Node) -> bool:
    """Return whether there is any tag in the node: a reference, an inner bean, a provider, a type."""
    return bool(node.tag) or (not isinstance(node, Scalar) and any(map(is_tagged, parts(node))))


def is_literal(node: Node) -> bool:
    """Return whether no placeholder was replaced in the node, so that its values may be printed."""
    return "${" not in node.text if isinstance(node, Scalar) else all(map(is_literal, parts(node)))


def plain(node: Node) -> Any:
    """Return the node as plain data."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Listing):
        return [plain(item) for item in node.items]
    return {key: plain(value) for key, value in node.entries.items()}


def clipped(text: str, *, length: int = 60) -> str:
    """Return `text` as a message quotes it: one line, cut after `length` characters, blanks around it in quotes."""
    line = " ".join(text.split())
    if line and text != text.strip():
        line = f'"{" " * text[0].isspace()}{line}{" " * text[-1].isspace()}"'
    return line if len(line) <= length else f"{line[: length - 1]}…"


def with_article(noun: str) -> str:
    """Return `noun`, or the name of a class in backticks, with `a` or `an` before it."""
    return f"{'an' if noun.lstrip('`')[:1].lower() in 'aeiou' else 'a'} {noun}"


def described(node: Node) -> str:
    """Return what the file says there, as a message may print it."""
    if isinstance(node, Scalar):
        return f"`{clipped(node.text)}`" if node.text else "empty"
    return "a list" if isinstance(node, Listing) else "an inner bean" if node.tag else "a mapping"
