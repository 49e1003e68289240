"""Mistakes as text: the place, what is wrong, what to write instead, and the line with a caret."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from iocflow.wiring import Mistake, Place

__all__ = ["in_order", "render"]

_WIDTH = 120
_BEFORE = 80  # columns that are kept before the caret of a long line
_COLOURS = {"error": "\033[1;31m", "warning": "\033[1;33m", "place": "\033[36m", "caret": "\033[1;32m"}
_PLAIN = "\033[0m"
_HIDDEN = frozenset(
    {"Cc", "Cf", "Cs", "Zl", "Zp"}
)  # control, direction and the like: they could forge a terminal's text


def in_order(mistakes: Iterable[Mistake]) -> tuple[Mistake, ...]:
    """Return the mistakes by file and line, each one once."""
    return tuple(sorted(dict.fromkeys(mistakes), key=lambda mistake: (mistake.place, mistake.warning, mistake.what)))


def render(mistakes: Iterable[Mistake], sources: Mapping[str, Sequence[str]], *, colour: bool = False) -> str:
    """Return all mistakes as text: each with its line and a caret, related places likewise, and a count at the end.

    Args:
        mistakes: What was found.
        sources: The lines of each file.
        colour: Whether to add the escapes that terminals show as colours.
    """
    ordered = in_order(mistakes)
    if not ordered:
        return ""
    parts = []
    for mistake in ordered:
        kind = "warning" if mistake.warning else "error"
        lines = [_headline(mistake.place, mistake.what, mistake.remedy, kind, colour=colour)]
        lines += _excerpt(mistake.place, sources, "", colour=colour)
        for place, what in mistake.related:
            lines.append(f"    {_painted(str(place), 'place', colour=colour)}: {_visible(what)}")
            if place != mistake.place:
                lines += _excerpt(place, sources, "    ", colour=colour)
        parts.append("\n".join(lines))
    warnings = sum(mistake.warning for mistake in ordered)
    counts = [_count(len(ordered) - warnings, "mistake"), _count(warnings, "warning")]
    return "\n".join([*parts, ", ".join(count for count in counts if count)])


def _headline(place: Place, what: str, remedy: str, kind: str, *, colour: bool) -> str:
    said = _painted(f"{'warning: ' if kind == 'warning' else ''}{_visible(what)}", kind, colour=colour)
    return (
        f"{_painted(_visible(str(place)), 'place', colour=colour)}: {said}{f'; {_visible(remedy)}' if remedy else ''}"
    )


def _excerpt(place: Place, sources: Mapping[str, Sequence[str]], indent: str, *, colour: bool) -> list[str]:
    """Return the line at `place` and the caret below it; nothing when the line is not known."""
    lines = sources.get(place.file, ())
    if not 0 < place.line <= len(lines):
        return []
    line = lines[place.line - 1]
    if not line.strip():
        return []
    at = place.column - 1
    before, after = _visible(line[max(0, at - _BEFORE) : at]), _visible(line[at : at + _WIDTH])
    if at > _BEFORE:
        before = f"…{before}"
    if len(line) > at + _WIDTH:
        after += "…"
    number = f"{indent}{place.line:>6} | "
    caret = _painted("^", "caret", colour=colour)
    return [f"{number}{before}{after}".rstrip(), f"{indent}{'':>6} | {' ' * _columns(before)}{caret}"]


def _columns(text: str) -> int:
    """Return how many columns a terminal needs for `text`."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def _visible(text: str) -> str:
    """Return `text` in one line, tabs as a space, and what a terminal would obey instead of show as an escape."""
    if text.isprintable():
        return text
    return "".join(
        " "
        if character == "\t"
        else ascii(character)[1:-1]
        if unicodedata.category(character) in _HIDDEN
        else character
        for character in text
    )


def _painted(text: str, role: str, *, colour: bool) -> str:
    return f"{_COLOURS[role]}{text}{_PLAIN}" if colour else text


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}" if number else ""
