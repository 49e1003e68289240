"""Waiting for the turn to write to a SQLite file: told when it takes long, and not for ever."""

from __future__ import annotations

import _thread
import fcntl
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from iocflow.store.errors import StoreLostError
from iocflow.store.sqlite.errors import is_busy

T = TypeVar("T")
_LOGGER = logging.getLogger("iocflow.store")

PATIENCE = 30.0
"""Seconds to wait for somebody who writes to the file without our lock: a caller's transaction, a backup. They count
from when the waiting for the turn began, so that those who queue behind one another do not wait one after the other."""

QUEUE = 600.0
"""Seconds to wait for other processes of ours, which may have transactions of long steps."""

TELL = 2.0
"""Seconds after which it is told what is waited for."""

SLICE = 0.25
"""Seconds for which SQLite itself waits; a signal is heeded after that."""


SPINS = (0.0001,) * 30
"""Pauses, in seconds, between tries before a thread waits for the lock: most commits are shorter than all of them."""


class Turn:
    """The waiting for one turn.

    Attributes:
        began: When it began, as `time.monotonic` has it.
    """

    def __init__(self, path: Path) -> None:
        """Begin to wait for the file `path`."""
        self._path = path
        self._told = ""
        self.began = time.monotonic()

    def at_lock(self, file: int) -> None:
        """Take the lock that all processes of ours share, on an open file.

        Raises:
            StoreLostError: It took too long; the file is closed then, as soon as that can be.
        """
        try:
            if _had_soon(file):
                return
        except BaseException:
            os.close(file)
            raise
        lock = _Lock(file)
        what = "another process of iocflow is writing to it"
        try:
            while not lock.had(TELL):
                self._tell(what)
                if time.monotonic() - self.began >= QUEUE:
                    raise StoreLostError(
                        f"the store {self._path}: {what}, for {QUEUE:g} s now; look whether it is stopped or hangs"
                    )
        except BaseException:
            lock.give_up()
            raise

    def at_file(self, begin: Callable[[], T]) -> T:
        """Return what `begin` returns, tried again while somebody writes to the file without our lock.

        Raises:
            sqlite3.Error: It took too long, or something else is wrong.
        """
        while True:
            try:
                return begin()
            except sqlite3.Error as error:
                if not is_busy(error) or time.monotonic() - self.began >= PATIENCE:
                    raise
            self._tell("another program is writing to it")

    def _tell(self, what: str) -> None:
        """Say once what is waited for, when it takes long."""
        if what != self._told and time.monotonic() - self.began >= TELL:
            self._told = what
            _LOGGER.warning("waiting for the store %s: %s", self._path, what)


def _had_soon(file: int) -> bool:
    """Take the lock if it comes free within a short commit or two, which costs less than a thread that waits."""
    for pause in (0.0, *SPINS):
        time.sleep(pause)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        return True
    return False


class _Lock:
    """A lock that is waited for in a thread of its own, since the system knows no time limit for it."""

    def __init__(self, file: int) -> None:
        """Begin to wait."""
        self._file = file
        self._wanted, self._got = True, False
        self._deciding = threading.Lock()
        self._missing = threading.Lock()
        self._missing.acquire()
        _thread.start_new_thread(self._wait, ())  # a `threading.Thread` would be waited for until it has begun

    def _wait(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        with self._deciding:
            if not self._wanted:
                leave(self._file)
            self._got = True
        self._missing.release()

    def had(self, timeout: float) -> bool:
        """Return whether it is had within so many seconds."""
        return self._missing.acquire(timeout=timeout)

    def give_up(self) -> None:
        """Let the next one have it, now or as soon as it is had."""
        with self._deciding:
            self._wanted = False
            if self._got:
                leave(self._file)


def leave(file: int) -> None:
    """Let the next one write: by unlocking, too, for a child may have the file open."""
    fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)
