"""Which launch a log record belongs to: what launching knows of it and the run does not."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["LaunchLogFilter", "launched_by"]

_Origin = tuple[str, str]
"""The launcher and the message id."""

_origin: ContextVar[_Origin] = ContextVar("iocflow_launch", default=("", ""))
"""The launch that the calling thread or task performs; it comes along where a context is copied, as into branches."""


@contextmanager
def launched_by(launcher: str, message_id: str) -> Iterator[None]:
    """Let the records of what runs in the block, its branches and tasks too, tell who launched it."""
    token = _origin.set((launcher, message_id))
    try:
        yield
    finally:
        _origin.reset(token)


class LaunchLogFilter(logging.Filter):
    """Adds `launcher` and `message_id` to the records of a log handler; empty outside of a launch.

    `RunLogFilter` adds what the run itself knows.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields that the record was not given, and let it pass."""
        launcher, message_id = _origin.get()
        for name, value in (("launcher", launcher), ("message_id", message_id)):
            if not hasattr(record, name):
                setattr(record, name, value)
        return True
