"""Durations as people write them: `500ms`, `30s`, `5m`, `2h`, `1d`."""

from __future__ import annotations

import re
from datetime import timedelta

_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_of(text: str) -> float | None:
    """Return the seconds of a duration as people write it, None when the text is none."""
    found = _WRITTEN.fullmatch(text)
    return float(found[1]) * _SECONDS[found[2]] if found else None


def duration_text(length: timedelta) -> str:
    """Return the duration as it would be written, in the largest unit that gives a whole number."""
    milliseconds = round(length / timedelta(milliseconds=1))
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms" if milliseconds else "0s"
