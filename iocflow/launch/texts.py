"""Texts that come from data, made fit for a line of a log or of a terminal."""

from __future__ import annotations

import json
import re

from iocflow.errors import RecordedError, text_of

__all__ = ["error_text", "json_line", "printable"]

_RAW_IN_JSON = re.compile("[\x7f-\x9f\u2028\u2029]")
"""What JSON may hold as it is, although terminals obey it and readers of lines take some of it for a line's end."""


def printable(text: str) -> str:
    """Return `text` on one line: what Python does not call printable is escaped, as line breaks and terminal codes.

    Whoever fills a file name, an event or an error message could otherwise write log lines of their own.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def error_text(error: BaseException) -> str:
    """Return an error as `Type: message`, just `Type` when it has no message; a recorded one as it was raised."""
    name = error.type if isinstance(error, RecordedError) else type(error).__qualname__
    return f"{name}: {text_of(error)}".removesuffix(": ")


def json_line(data: object) -> str:
    """Return `data` as JSON on one line, whoever counts the lines."""
    return _RAW_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(data, ensure_ascii=False))
