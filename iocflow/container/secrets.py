"""Secrets are masked by their value, wherever text leaves the application."""

from __future__ import annotations

import html
import json
import logging
import re
import traceback
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import quote, quote_plus

__all__ = ["MASK", "SHORTEST", "OwnLoggers", "Secrets"]

MASK = "***"
_OWN = "iocflow"
SHORTEST = 3
"""Characters of the shortest secret that is masked: `***` in place of every `a` would hide the text, not the secret."""
_SHORTEST_INSIDE = 5
"""Shorter secrets are masked as whole words only, for the same reason."""
_MOST_BACKSLASHES = 16
"""What becomes of one backslash that is escaped four times over, as by `repr` of `repr` of `repr` in JSON."""
_LINE_ALONE = 8
"""Characters from which on a line of a secret of several lines (a key) is masked alone, as loggers indent lines."""


class Secrets:
    """The secret values that an application was given, and the means to keep them out of messages, logs and pages.

    A secret is found by its value: as it was given, as `repr`, JSON, HTML and URLs write it, also one in the other (a
    `repr` in a `KeyError`), and as the number that it may have become. Secrets of fewer than 3 characters are not
    masked; of fewer than 5, only where they stand as a word.
    """

    def __init__(self) -> None:
        """Begin without any secret."""
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: object) -> bool:
        """Remember `value` (what `str` makes of it; bytes are UTF-8); return whether it is long enough to be masked."""
        text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        if len(text.strip()) < SHORTEST:
            return False
        self._forms.update(form for form in _forms(text) if len(form) >= SHORTEST)
        # longest first, so that a secret which begins another one leaves no rest of it
        longest_first = sorted(self._forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(_pattern, longest_first)))
        return True

    def mask(self, text: str) -> str:
        """Return `text` with every secret replaced by `***`."""
        return self._pattern.sub(MASK, text) if self._pattern else text

    @property
    def empty(self) -> bool:
        """Whether there is nothing to mask."""
        return self._pattern is None

    def filter(self) -> logging.Filter:
        """Return a filter for loggers and log handlers: it masks message, arguments, exception, stack and extra fields.

        It sees secrets that are added later, too. It changes the record itself: an exception whose text holds a secret
        is replaced by a stand-in of the same name, and its text (`exc_text`) by the masked one, so that no formatter
        can print the original. The variables of the traceback's frames stay as they are.
        """
        return _MaskingFilter(self)


class OwnLoggers:
    """Keeps a filter on the logger `iocflow` and on those below it, as a logger's filter sees only its own records."""

    def __init__(self, filter: logging.Filter | None) -> None:
        """Take the filter; with None there is nothing to put on."""
        self._filter = filter

    def put_on(self) -> None:
        """Put the filter on every such logger that exists now; call it again when there may be more."""
        if self._filter is None:
            return
        known = list(logging.Logger.manager.loggerDict.items())  # a copy: another thread may make a logger meanwhile
        below = (found for name, found in known if name.startswith(f"{_OWN}.") and isinstance(found, logging.Logger))
        for logger in (logging.getLogger(_OWN), *below):
            logger.addFilter(self._filter)

    def take_off(self) -> None:
        """Take the filter off again, wherever it is."""
        if self._filter is None:
            return
        for logger in list(logging.Logger.manager.loggerDict.values()):
            if isinstance(logger, logging.Logger):
                logger.removeFilter(self._filter)


class _MaskingFilter(logging.Filter):
    """Masks the secrets in every record that passes."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self._secrets = secrets
        self._mask = secrets.mask

    def filter(self, record: logging.LogRecord) -> bool:
        """Mask `record`; let every record pass."""
        if self._secrets.empty:
            return True
        self._mask_message(record)
        if isinstance(record.exc_info, tuple) and record.exc_info[1]:
            text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            masked = self._mask(text)
            if masked != text:
                error = _stand_in(record.exc_info[1], self._mask)
                record.exc_text, record.exc_info = masked, (type(error), error, error.__traceback__)
        for name, value in vars(record).items():
            if name in _MASKED_TEXTS or name not in _STANDARD_FIELDS:
                record.__dict__[name] = self._masked(value)
        return True

    def _mask_message(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except Exception as error:  # noqa: BLE001 - arguments may raise anything, and logging would print them unmasked
            message, record.args = f"{record.msg!s} (its arguments do not fit: {type(error).__name__}: {error})", ()
            record.msg = self._mask(message)
            return
        masked = self._mask(message)
        if masked != message:
            record.msg, record.args = masked, ()

    def _masked(self, value: object) -> object:
        """Return `value` itself, or its masked text when it holds a secret."""
        if value is None or isinstance(value, bool):
            return value
        text = str(value)
        masked = self._mask(text)
        return value if masked == text else masked


_STANDARD_FIELDS = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime"})
_MASKED_TEXTS = frozenset({"exc_text", "stack_info", "message"})


def _stand_in(
    error: BaseException, mask: Callable[[str], str], made: dict[int, BaseException] | None = None
) -> BaseException:
    """Return an exception that is shown as `error` is, with its texts, causes and members masked.

    A formatter that reads a record's exception, rather than its text, finds the name, the message and the frames there.
    """
    made = {} if made is None else made
    if id(error) in made:  # causes may go round in a circle
        return made[id(error)]
    kind = type(error)
    named: dict[str, Any] = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    other: BaseException
    if isinstance(error, BaseExceptionGroup):
        members = [_stand_in(one, mask, made) for one in error.exceptions]
        other = type(kind.__name__, (BaseExceptionGroup,), named)(mask(error.message), members)
    else:
        text = mask(str(error))
        other = type(kind.__name__, (Exception,), {**named, "__str__": lambda _: text})(text)
    made[id(error)] = other
    for note in getattr(error, "__notes__", ()):
        other.add_note(mask(str(note)))
    other.__cause__ = None if error.__cause__ is None else _stand_in(error.__cause__, mask, made)
    other.__context__ = None if error.__context__ is None else _stand_in(error.__context__, mask, made)
    other.__suppress_context__ = error.__suppress_context__
    return other.with_traceback(error.__traceback__)


def _pattern(form: str) -> str:
    """Return a pattern for `form`, in which every character may be escaped: once, or several times over."""
    pattern, backslashes = "", 0
    for character in form:
        if character == "\\":
            backslashes += 1
            continue
        pattern += _escapable(character, backslashes)
        backslashes = 0
    pattern += _backslashes(backslashes)
    return pattern if len(form) >= _SHORTEST_INSIDE else rf"(?<![^\W_]){pattern}(?![^\W_])"


def _escapable(character: str, before: int) -> str:
    """Return a pattern for `before` backslashes and then `character`, which begins with another one when escaped.

    How many there are is counted once for both, with a bound: no text makes the search go back and forth.
    """
    plain = _backslashes(before, _MOST_BACKSLASHES - 1 if character in "\"'" else 0) + re.escape(character)
    if character.isascii() and character.isprintable():
        return plain
    utf8 = repr(character.encode(errors="replace"))[2:-1]
    written = {repr(character)[1:-1], ascii(character)[1:-1], json.dumps(character)[1:-1], utf8}
    each = sorted(one.split("\\")[1:] for one in written if one.startswith("\\"))
    escaped = "|".join(_backslashes(1).join(map(re.escape, parts)) for parts in each)
    return f"(?:{plain}|{_backslashes(before + 1)}(?:{escaped}))"


def _backslashes(count: int, more: int = 0) -> str:
    """Return a pattern for `count` backslashes and up to `more`, as they are or escaped."""
    most = count * _MOST_BACKSLASHES + more
    return rf"\\{{{count},{most}}}" if most else ""


def _forms(text: str) -> Iterator[str]:
    """Yield the ways in which the secret `text` may be written, apart from escapes with backslashes."""
    for form in (text, text.strip(), *(line.strip() for line in text.splitlines() if len(line) >= _LINE_ALONE)):
        yield form
        yield html.escape(form)
        yield quote(form, safe="", errors="replace")
        yield quote_plus(form, errors="replace")
    if any(character.isdecimal() for character in text):
        for number in (int, float, Decimal):
            try:
                yield str(number(text))
            except (ValueError, InvalidOperation):
                continue
