"""What PostgreSQL and its driver raise, told in iocflow's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from iocflow.store.errors import StoreError, StoreFullError, StoreLostError

AGAIN = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable)
"""A transaction was rolled back only because another one was in its way."""

_FULL = ("25006", "53100", "53200", "53400")
"""SQLSTATEs: read-only, disk full, out of memory, a limit of the configuration."""

_LOST = ("08", "40", "53", "55P03", "57", "25P03", "25P04")
"""Beginnings of SQLSTATEs: connections, rolled back, resources, lock timeout, ended by an operator, idle too long."""


@contextmanager
def told() -> Iterator[None]:
    """Turn what the driver raises within into a `StoreError`."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error) from error


def translated(error: psycopg.Error) -> StoreError:
    """Return the `StoreError` that tells of `error`."""
    text = str(error).strip() or type(error).__name__
    state = error.sqlstate
    if state in _FULL:
        return StoreFullError(f"PostgreSQL writes nothing: {text}")
    if state is not None and state.startswith(_LOST):
        return StoreLostError(f"PostgreSQL gave up: {text}")
    if state is None and isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return StoreLostError(f"PostgreSQL does not answer: {text}")
    return StoreError(f"PostgreSQL refuses: {text}")
