"""Numbers as people write them in addresses and expressions."""

from __future__ import annotations

__all__ = ["number_of"]

_LONGEST = 18
"""The most digits of a number that somebody means: Python refuses to read one of thousands."""


def number_of(text: str) -> int | None:
    """Return the number that the digits of `text` are; None when it is none, or a longer one than anybody means."""
    return int(text) if text.isdecimal() and len(text) <= _LONGEST else None
