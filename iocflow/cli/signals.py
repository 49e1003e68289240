"""SIGTERM in a command: heeded as Ctrl-C is, so that beans are closed and somebody is told."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

__all__ = ["Terminated", "terminable"]


class Terminated(KeyboardInterrupt):
    """The process was told to end, by SIGTERM.

    It is a `KeyboardInterrupt` because all code that deals with one has to deal with this in the same way.
    """


@contextmanager
def terminable() -> Iterator[None]:
    """Raise `Terminated` at SIGTERM while the block runs; only in the main thread, and not if SIGTERM is ignored."""
    before = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread() or before is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated
