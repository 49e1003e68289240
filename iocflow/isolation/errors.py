"""What can be wrong with an activity in a process of its own."""

from __future__ import annotations

from iocflow.errors import IocflowError


class IsolationError(IocflowError):
    """An activity cannot go to a process of its own, or what it made cannot come back; the message says what."""


class IsolatedProcessError(IsolationError):
    """The process of an activity is gone: it crashed, or somebody killed it.

    Attributes:
        code: Its exit code; the number of the signal that ended it, negative, as `subprocess` has it.
    """

    def __init__(self, message: str, code: int) -> None:
        """Take the parts."""
        super().__init__(message)
        self.code = code
