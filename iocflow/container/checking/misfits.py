"""What a message says of a value that does not fit its annotation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from iocflow.container.inspecting.annotations import alternatives, shown
from iocflow.container.inspecting.coercion import Misfit
from iocflow.container.nodes import described, is_literal
from iocflow.wiring import Listing, Node, Table

__all__ = ["Refusal", "refusals"]


_DURATIONS = "write a duration, as `500ms`, `30s`, `5m`, `2h` or `1d`"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A value, or a part of one, that is refused: `text` says so, `why` tells what would fit."""

    node: Node
    text: str
    why: str


def refusals(node: Node, annotation: Any, what: str, misfits: tuple[Misfit, ...]) -> Iterator[Refusal]:
    """Yield what is wrong with a value; for a union of several types it is one thing, whatever each of them says."""
    if len(alternatives(annotation)) > 1:
        yield Refusal(node, _text(node, what, annotation), "write one that does")
        return
    for misfit in misfits:
        inside, path, rest = _inside(node, misfit.path)
        parts = "".join(f"item {part + 1} of " if isinstance(part, int) else f"`{part}` in " for part in reversed(path))
        if timedelta in alternatives(annotation) or misfit.kind == "time_delta_parsing":
            yield Refusal(inside, f"{parts}{what} is {described(inside)}, which is no duration", _DURATIONS)
        elif misfit.kind.startswith("missing") and rest:
            lacking = f"item {rest[-1] + 1}" if isinstance(rest[-1], int) else f"`{rest[-1]}`"
            text = f"{parts}{what} lacks {lacking}, which `{shown(annotation)}` needs"
            yield Refusal(inside, text, "add it" if isinstance(inside, Listing) else f"add `{rest[-1]}:`")
        elif misfit.kind in ("unexpected_keyword_argument", "extra_forbidden"):
            text = f"{parts}{what} is no part of `{shown(annotation)}`"
            yield Refusal(inside, text, "remove it, or correct its name")
        else:
            # What a class says when it refuses a value may quote it, and a placeholder's value is not for printing.
            hidden = misfit.quotes_value and not is_literal(node)
            why = "write another one" if hidden else misfit.why.replace("input should", "it should")
            yield Refusal(inside, _text(inside, parts + what, annotation), why)


def _text(node: Node, what: str, annotation: Any) -> str:
    return f"{what} is {described(node)}, which does not fit `{shown(annotation)}`"


def _inside(node: Node, path: tuple[int | str, ...]) -> tuple[Node, tuple[int | str, ...], tuple[int | str, ...]]:
    """Follow pydantic's path into the node as far as the file goes; return also what was followed, and the rest."""
    for i, part in enumerate(path):
        if isinstance(node, Listing) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
        elif isinstance(node, Table) and str(part) in node.entries:
            node = node.entries[str(part)]
        else:
            return node, path[:i], path[i:]
    return node, path, ()
