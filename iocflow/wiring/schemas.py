"""Pieces of JSON Schema for the values of sections, each of which may be a placeholder in a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["choice", "duration_schema", "number", "text"]

_PLACEHOLDER = {"type": "string", "pattern": r"\$\{"}


def duration_schema(description: str) -> dict[str, Any]:
    """Return the schema of a duration."""
    written = {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*(ms|s|m|h|d)\s*$"}
    return {
        "description": f"{description} Written as 500ms, 30s, 5m, 2h or 1d.",
        "anyOf": [written, _PLACEHOLDER],
    }


def number(description: str, least: int, most: int) -> dict[str, Any]:
    """Return the schema of a whole number."""
    return {
        "description": description,
        "anyOf": [{"type": "integer", "minimum": least, "maximum": most}, _PLACEHOLDER],
    }


def choice(description: str, values: Iterable[str]) -> dict[str, Any]:
    """Return the schema of one word out of several."""
    return {"description": description, "anyOf": [{"enum": [str(one) for one in values]}, _PLACEHOLDER]}


def text(description: str, pattern: str = "") -> dict[str, Any]:
    """Return the schema of a text, of a form if there is a pattern for it."""
    return {"description": description, "type": "string", **({"pattern": rf"{pattern}|\$\{{"} if pattern else {})}
