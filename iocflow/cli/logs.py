"""Log lines on standard error, for people or for machines."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import TextIO

from iocflow.cli.terminal import described
from iocflow.launch.log_filter import LaunchLogFilter
from iocflow.launch.texts import error_text, json_line, printable
from iocflow.run import RunLogFilter

__all__ = ["LogFormat", "LogLevel", "Masked", "logging_to_stderr"]

RUN_ID = 8
"""How many characters of a run's id tell it from the others in a text log."""

_ORDINARY = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}
"""What every log record has; the rest was given as `extra`."""


_PARTS = 20
"""How many errors of a group a text log tells of."""


class LogFormat(StrEnum):
    """How a log line looks."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """The least severe records that are shown."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Masked(logging.Formatter):
    """Formats records after `mask` has taken the secrets out of their text.

    It masks the finished text of message and traceback, because a secret that was handed over as an argument, or sits
    in an exception, is not in the record's own message. `traceback` tells whether tracebacks are shown in text.
    """

    def __init__(self, *, traceback: bool = True) -> None:
        """Start without secrets."""
        super().__init__()
        self.mask: Callable[[str], str] = str
        self.traceback = traceback

    def exception(self, record: logging.LogRecord) -> str:
        """Return the record's traceback as text, empty without one."""
        if record.exc_info and record.exc_info[0] is not None:
            return self.mask(self.formatException(record.exc_info))
        return self.mask(record.exc_text or "")

    def format(self, record: logging.LogRecord) -> str:
        """Return `time LEVEL [run] where: message`, then the traceback when it is wanted, or else just the error.

        All but the traceback is on one line: control characters in a message may come from data, and are escaped.
        """
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3]
        where = "/".join(filter(None, (getattr(record, "processor", ""), getattr(record, "activity", ""))))
        run = str(getattr(record, "run_id", ""))[:RUN_ID]
        message = printable(self.mask(record.getMessage()))
        head = printable(f"{time} {record.levelname} {f'[{run}] ' if run else ''}{where or record.name}")
        line = f"{head}: {message}"
        if self.traceback and (exception := self.exception(record)):
            # Set off, so that no line of a message in it passes for a record.
            return "\n  ".join((line, *map(printable, exception.splitlines())))
        return line + self._cause(record, message)

    def _cause(self, record: logging.LogRecord, message: str) -> str:
        """Return what of a record's error its message does not say already."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return ""
        cause, parts = printable(self.mask(error_text(error))), self._parts(error)
        if cause in message:
            return parts
        name, _, text = cause.partition(": ")
        return f" ({name}){parts}" if text and message.endswith(f": {text}") else f": {cause}{parts}"

    def _parts(self, error: BaseException) -> str:
        """Return what a group of errors is made of, each with its notes, which name the bean that it is of, say."""
        errors = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
        parts = [printable(self.mask(described(one))) for one in errors[:_PARTS]]
        more = [f"and {len(errors) - _PARTS} more"] if len(errors) > _PARTS else []
        return "".join(f"; {part}" for part in (*parts, *more))


class JsonLines(Masked):
    """One JSON object a line: always the same keys, then whatever the record was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        extra = {key: value for key, value in vars(record).items() if key not in _ORDINARY}
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": self.mask(record.getMessage()),
            "run_id": getattr(record, "run_id", ""),
            "processor": getattr(record, "processor", ""),
            "activity": getattr(record, "activity", ""),
            # An attempt is one of an activity; the filter's number means nothing outside of a run.
            "attempt": getattr(record, "attempt", 0) if getattr(record, "activity", "") else 0,
            "launcher": getattr(record, "launcher", ""),
            "message_id": getattr(record, "message_id", ""),
            "exception": self.exception(record),
        }
        return json_line({**self._texts(extra), **fields})

    def _texts(self, extra: dict[str, object]) -> dict[str, object]:
        """Return the values as JSON has them: numbers stay, everything else becomes masked text."""
        plain = (int, float, bool, type(None))
        return {key: value if isinstance(value, plain) else self.mask(str(value)) for key, value in extra.items()}


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to what is `sys.stderr` at the moment: a live display puts itself before it."""

    @property
    def stream(self) -> TextIO:
        """The stream to write to."""
        return sys.stderr

    @stream.setter
    def stream(self, stream: TextIO) -> None:
        """Heed nothing: the base class sets what it was constructed with."""


@contextmanager
def logging_to_stderr(form: LogFormat, level: LogLevel, *, traceback: bool) -> Iterator[Masked]:
    """Send every record from `level` on to standard error while the block runs; yield the formatter, for its `mask`."""
    handler = _StandardError()
    formatter = JsonLines() if form is LogFormat.JSON else Masked(traceback=traceback or level is LogLevel.DEBUG)
    handler.setFormatter(formatter)
    handler.addFilter(RunLogFilter())
    handler.addFilter(LaunchLogFilter())
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(level.upper())
    try:
        yield formatter
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
