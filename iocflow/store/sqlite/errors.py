"""SQLite's errors in the terms of a store."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from iocflow.store.errors import StoreError, StoreFullError, StoreLostError, StoreVersionError

KINDS: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_FULL: StoreFullError,
    sqlite3.SQLITE_READONLY: StoreFullError,
    sqlite3.SQLITE_BUSY: StoreLostError,
    sqlite3.SQLITE_LOCKED: StoreLostError,
    sqlite3.SQLITE_IOERR: StoreLostError,
    sqlite3.SQLITE_CANTOPEN: StoreLostError,
    sqlite3.SQLITE_CORRUPT: StoreVersionError,
    sqlite3.SQLITE_NOTADB: StoreVersionError,
}
"""What a primary result code means for a store."""

FULL = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
"""What the system says when nothing can be written."""


def store_error(error: sqlite3.Error | OSError) -> StoreError:
    """Return the error of the store that `error` is."""
    if isinstance(error, OSError):
        return (StoreFullError if error.errno in FULL else StoreLostError)(str(error))
    code = getattr(error, "sqlite_errorcode", None)
    kind = StoreError if code is None else KINDS.get(code & 0xFF, StoreError)
    return kind(f"{error} ({getattr(error, 'sqlite_errorname', type(error).__name__)})")


@contextmanager
def translated() -> Iterator[None]:
    """Raise what goes wrong within as an error of the store."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise store_error(error) from error
