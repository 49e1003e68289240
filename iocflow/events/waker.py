"""Wakes a thread that waits for sockets, from any other thread."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterable

__all__ = ["Waker"]


class Waker:
    """A pipe that becomes readable when somebody calls `wake`."""

    def __init__(self) -> None:
        """Open no pipe yet."""
        self._lock = threading.Lock()
        self._pipe: tuple[int, int] | None = None
        self._woken = False

    def wake(self) -> None:
        """Let the present wait end now, or the next one when there is none."""
        with self._lock:
            if self._pipe and not self._woken:
                os.write(self._pipe[1], b"!")
            self._woken = True

    def wait(self, files: Iterable[int], seconds: float) -> None:
        """Wait until one of the files can be read, somebody calls `wake`, or the time is over."""
        waiting = select.poll()
        for file in (*files, self._read_end()):
            waiting.register(file, select.POLLIN | select.POLLERR | select.POLLHUP)
        waiting.poll(max(seconds, 0.0) * 1000)

    @property
    def woken(self) -> bool:
        """Whether somebody called `wake` since this was asked last."""
        with self._lock:
            if self._woken and self._pipe:
                os.read(self._pipe[0], 1)
            woken, self._woken = self._woken, False
            return woken

    def close(self) -> None:
        """Close the pipe; a later wait opens another one."""
        with self._lock:
            for file in self._pipe or ():
                os.close(file)
            self._pipe, self._woken = None, False

    def _read_end(self) -> int:
        with self._lock:
            if self._pipe is None:
                self._pipe = os.pipe()
                if self._woken:
                    os.write(self._pipe[1], b"!")
            return self._pipe[0]
