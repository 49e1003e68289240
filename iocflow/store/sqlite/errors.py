"""SQLite's errors in the terms of a store."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iocflow.store.errors import StoreError, StoreFullError, StoreLostError, StoreVersionError

_ROOM = "make room on the disk, and try again: nothing was written"
_RIGHTS = "give this user the right to write the file, the files beside it and their folder"
_MOUNT = "mount the file system for writing, or name a file in another one"
_LOCKED = "another program is writing to it: end its transaction, or try again later"
_DISK = "look after the disk, and try again"
_PATH = "write the path of a file in a folder that this user may enter"
_DAMAGED = "bring back a copy of it"
_OTHER = "name another file: this one is left as it is"

KINDS: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_FULL: (StoreFullError, _ROOM),
    sqlite3.SQLITE_READONLY: (StoreFullError, _RIGHTS),
    sqlite3.SQLITE_BUSY: (StoreLostError, _LOCKED),
    sqlite3.SQLITE_LOCKED: (StoreLostError, _LOCKED),
    sqlite3.SQLITE_IOERR: (StoreLostError, _DISK),
    sqlite3.SQLITE_CANTOPEN: (StoreLostError, _PATH),
    sqlite3.SQLITE_CORRUPT: (StoreVersionError, _DAMAGED),
    sqlite3.SQLITE_NOTADB: (StoreVersionError, _OTHER),
}
"""What a primary result code means for a store, and what to do then."""

CAUSES: dict[int | None, tuple[type[StoreError], str]] = {
    **dict.fromkeys((errno.EACCES, errno.EPERM), (StoreFullError, _RIGHTS)),
    errno.EROFS: (StoreFullError, _MOUNT),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), (StoreFullError, _ROOM)),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EISDIR), (StoreLostError, _PATH)),
}
"""The same of what the system says."""


def store_error(error: sqlite3.Error | OSError, path: Path) -> StoreError:
    """Return the error of the store in the file `path` that `error` is: with that file, and what to do."""
    if isinstance(error, OSError):
        kind, remedy = CAUSES.get(error.errno, (StoreLostError, _DISK))
        said = error.strerror or str(error)
    else:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        kind, remedy = KINDS.get(code, (StoreError, ""))
        said = f"{error} ({getattr(error, 'sqlite_errorname', type(error).__name__)})"
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) and (found := _read_only(path)):
            kind, (what, remedy) = StoreFullError, found
            said = f"{what}: {said}"
    return kind("; ".join(filter(None, (f"the store {path}: {said}", remedy))))


def _read_only(path: Path) -> tuple[str, str] | None:
    """Return what is read-only, and the remedy; SQLite itself tells of a file that it cannot open, whatever it is."""
    if not os.path.isdir(path.parent):
        return None
    if os.statvfs(path.parent).f_flag & os.ST_RDONLY:
        return "the file system is read-only", _MOUNT
    if path.exists() and not os.access(path, os.W_OK):
        return "this user may not write the file", _RIGHTS
    if not os.access(path.parent, os.W_OK):
        return "this user may not write in its folder", _RIGHTS
    return None


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether somebody else's lock is in the way."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise what goes wrong within as an error of the store in the file `path`."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise store_error(error, path) from error
