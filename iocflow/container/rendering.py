"""Mistakes as text: the place, what is wrong, what to write instead, and the line with a caret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from iocflow.wiring import Mistake

__all__ = ["in_order", "render"]


def in_order(mistakes: Iterable[Mistake]) -> tuple[Mistake, ...]:
    """Return the mistakes by file and line, each one once."""
    return tuple(sorted(dict.fromkeys(mistakes), key=lambda mistake: (mistake.place, mistake.what)))


def render(mistakes: Iterable[Mistake], sources: Mapping[str, Sequence[str]], *, colour: bool = False) -> str:
    """Return all mistakes as text, with the lines of `sources` and a count at the end."""
    return "\n".join(map(str, in_order(mistakes)))
