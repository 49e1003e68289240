"""What can be wrong with a launcher."""

from __future__ import annotations

from iocflow.errors import IocflowError

__all__ = ["ImpossibleSourceError", "LauncherError", "LockedError"]


class LauncherError(IocflowError, ValueError):
    """A launcher is described in a way that cannot work; the message says what to write instead."""


class ImpossibleSourceError(IocflowError):
    """A source can never be opened as it is configured, so that trying again is no use; the daemon exits with 3."""


class LockedError(IocflowError):
    """Another process has what a source needs; the daemon exits with 4."""
