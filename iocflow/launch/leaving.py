"""How the daemon hears that it shall stop, and how the process ends even if a thread hangs."""

from __future__ import annotations

import logging
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any, NoReturn

from iocflow.launch.exit_codes import ExitCode

__all__ = ["Signals", "leave_process", "within"]

LAST_SECONDS = 1.0
"""How long logging and flushing may each take before the process ends without them: a reader that stopped reading
blocks them for ever."""

ECHO_SECONDS = 0.1
"""Within what time a signal that comes again is still the same one: timeout(1) and some process managers send it to the
process and to its group, or pass on what a terminal has sent to the whole group."""

HEEDED = (signal.SIGTERM, signal.SIGINT)


def leave_process(code: int) -> NoReturn:
    """Flush logs and output, for one second at most, and end the process whatever its threads do."""
    within(LAST_SECONDS, _flush)
    os._exit(code)


def within(seconds: float, call: Callable[[], object]) -> None:
    """Wait for `call`, in a thread of its own, but no longer than that; it goes on if it takes longer."""
    calling = threading.Thread(target=call, name="iocflow-last", daemon=True)
    calling.start()
    calling.join(seconds)


def _flush() -> None:
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        # None: the process was started without it. What cannot be written any more, because it is closed or its reader
        # has gone, can be told to nobody either.
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()


class Signals:
    """Heeds SIGTERM and SIGINT: the first one asks to stop, the second one, unless it is its echo, ends the process.

    A signal's handler runs between two instructions of the main thread, which may hold any lock. So a handler only puts
    into a `SimpleQueue`, which is safe there, and a thread of its own does what may block.
    """

    def __init__(
        self, first: Callable[[str], None], forced: Callable[[str], None], leave: Callable[[int], NoReturn]
    ) -> None:
        """Take what is called.

        Args:
            first: Gets the first signal's name, in its handler.
            forced: Gets the reason why the process ends at once, to log it; it has a second for that.
            leave: Ends the process.
        """
        self._first = first
        self._forced = forced
        self._leave = leave
        self._heard: tuple[int, float] | None = None
        self._orders: queue.SimpleQueue[tuple[float, str]] = queue.SimpleQueue()
        self._before: dict[signal.Signals, Any] = {}

    def install(self) -> None:
        """Put the handlers in place, which only the main thread can; elsewhere signals are the program's business."""
        if threading.current_thread() is not threading.main_thread() or self._before:
            return
        threading.Thread(target=self._watch, name="iocflow-leave", daemon=True).start()
        self._before = {number: signal.signal(number, self._handle) for number in HEEDED}

    def restore(self) -> None:
        """Put the earlier handlers back."""
        for number, handler in self._before.items():
            # None: it was not installed from Python, and cannot be put back from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before = {}

    def leave_after(self, seconds: float, why: str) -> None:
        """End the process as forced in that many seconds, unless it has ended by then."""
        self._orders.put((seconds, why))

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if self._heard is None:
            self._heard = number, time.monotonic()
            self._first(name)
        elif number != self._heard[0] or time.monotonic() - self._heard[1] > ECHO_SECONDS:
            self._orders.put((0.0, f"another signal came, {name}"))

    def _watch(self) -> None:
        seconds, why = self._orders.get()
        due = time.monotonic() + seconds
        with suppress(queue.Empty):  # that is when the earliest order is due
            while True:
                seconds, other = self._orders.get(timeout=max(due - time.monotonic(), 0.0))
                due, why = min((due, why), (time.monotonic() + seconds, other))
        within(LAST_SECONDS, partial(self._forced, why))
        self._leave(ExitCode.FORCED)
