"""One daemon a file: its launchers would fire twice otherwise."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from iocflow.store.errors import StoreLockedError
from iocflow.store.sqlite.errors import translated

__all__ = ["DaemonLock"]


class DaemonLock:
    """A lock on a file beside the store, for as long as the process lives or until it is released."""

    def __init__(self, path: Path) -> None:
        """Take the store's path."""
        self._path = path.with_name(path.name + "-daemon")
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the lock, unless it is taken already by this object.

        Raises:
            StoreLockedError: Another daemon has it.
        """
        if self._descriptor is not None:
            return
        with translated(self._path):
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            store = self._path.with_name(self._path.name.removesuffix("-daemon"))
            raise StoreLockedError(
                f"another daemon serves launchers over {store}, and one at a time may; a further `iocflow worker` may"
                " work on its runs, and over PostgreSQL there may be many daemons"
            ) from None
        self._descriptor = descriptor

    def release(self) -> None:
        """Let others have it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
