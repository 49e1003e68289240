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
from types import FrameType
from typing import Any, NoReturn

from iocflow.launch.exit_codes import ExitCode

__all__ = ["Signals", "leave_process"]

FLUSH_SECONDS = 1.0
"""How long flushing may take before the process ends without it; a reader that stopped reading blocks it for ever."""

HEEDED = (signal.SIGTERM, signal.SIGINT)


def leave_process(code: int) -> NoReturn:
    """Flush logs and output, for one second at most, and end the process whatever its threads do."""
    flushing = threading.Thread(target=_flush, name="iocflow-flush", daemon=True)
    flushing.start()
    flushing.join(FLUSH_SECONDS)
    os._exit(code)


def _flush() -> None:
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


class Signals:
    """Heeds SIGTERM and SIGINT: the first one asks to stop, the second one ends the process.

    A signal's handler runs between two instructions of the main thread, which may hold any lock. So a handler only puts
    into a `SimpleQueue`, which is safe there, and a thread of its own does what may block.
    """

    def __init__(self, first: Callable[[str], None], leave: Callable[[int], NoReturn]) -> None:
        """Call `first` with the first signal's name, in its handler; call `leave` at the second."""
        self._first = first
        self._leave = leave
        self._heard = 0
        self._orders: queue.SimpleQueue[float] = queue.SimpleQueue()
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

    def leave_after(self, seconds: float) -> None:
        """End the process as forced in that many seconds, unless it has ended by then."""
        self._orders.put(seconds)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self._heard += 1
        if self._heard == 1:
            self._first(signal.Signals(number).name)
        else:
            self._orders.put(0.0)

    def _watch(self) -> None:
        due: float | None = None
        while True:
            try:
                asked = time.monotonic() + self._orders.get(timeout=due and max(due - time.monotonic(), 0.0))
                due = min(asked, due or asked)
            except queue.Empty:
                self._leave(ExitCode.FORCED)
                return
