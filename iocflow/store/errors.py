"""What can be wrong with a store."""

from __future__ import annotations

from iocflow.errors import IocflowError


class StoreError(IocflowError):
    """The base of all that is wrong with a store."""


class StoreUrlError(StoreError, ValueError):
    """The URL names no store that there is, or the extra for it is not installed."""


class StoreVersionError(StoreError):
    """The store was written by a newer version of iocflow, or is none at all."""


class StoreLostError(StoreError):
    """The connection is gone, or the database does not answer; what was under way may be tried again."""


class StoreFullError(StoreError):
    """The disk is full, or the store is read-only; nothing was written, and it may be tried again."""


class StoreLockedError(StoreError):
    """Another daemon serves the launchers of a store that has them served by one at a time."""


class FencedError(StoreError):
    """The worker's lease ran out and others took over; what it wanted to write was dropped."""


class TransactionError(StoreError, ValueError):
    """The connection of a caller is not to the store's own database, or the activity ended the step's transaction."""
