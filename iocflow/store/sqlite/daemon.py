"""Locks on files beside the store: one daemon a file serves launchers, which would fire twice else; one relay sends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from iocflow.store.errors import StoreLockedError
from iocflow.store.sqlite.errors import translated

__all__ = ["DaemonLock", "FileLock"]


class FileLock:
    """A lock on a file, for as long as the process lives or until it is released."""

    def __init__(self, path: Path) -> None:
        """Take the path of the file, which is made when it is wanted first."""
        self._path = path
        self._descriptor: int | None = None

    def hold(self) -> bool:
        """Take the lock, unless it is taken already by this object; False when another one has it."""
        if self._descriptor is not None:
            return True
        with translated(self._path):
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Let others have it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class DaemonLock(FileLock):
    """The lock of the daemon that serves the launchers of a store."""

    def __init__(self, store: Path) -> None:
        """Take the store's path."""
        super().__init__(store.with_name(store.name + "-daemon"))
        self._store = store

    def take(self) -> None:
        """Take the lock, unless it is taken already by this object.

        Raises:
            StoreLockedError: Another daemon has it.
        """
        if not self.hold():
            raise StoreLockedError(
                f"another daemon serves launchers over {self._store}, and one at a time may; a further `iocflow worker`"
                " may work on its runs, and over PostgreSQL there may be many daemons"
            )
