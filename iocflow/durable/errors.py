"""What can be wrong with durable runs."""

from __future__ import annotations

from iocflow.errors import IocflowError


class ContextError(IocflowError):
    """The base of all that is wrong with the stored form of a context or a seed."""


class ContextTypeError(ContextError, TypeError):
    """A context class has fields that cannot be stored; the message names all of them, and what to write instead."""


class ContextValueError(ContextError, ValueError):
    """A field holds what would not come back as it is; the message names it, as in `Order.lines[3].price`."""


class ContextTooLargeError(ContextValueError):
    """A context is larger than the limit.

    Attributes:
        size: Its size in bytes, as JSON.
        limit: The most that is taken, in bytes.
        field: The name of its biggest field.
    """

    def __init__(self, message: str, *, size: int, limit: int, field: str) -> None:
        """Take the parts."""
        super().__init__(message)
        self.size = size
        self.limit = limit
        self.field = field


class ContextReadError(ContextError, ValueError):
    """The class cannot read a stored context, as after a change of it; the message names the field and the reason."""


class ConflictError(IocflowError, ValueError):
    """The submitter used this number before, for something else.

    Attributes:
        run: The id of the run that has the number.
    """

    def __init__(self, message: str, run: int) -> None:
        """Take the run that is there."""
        super().__init__(message)
        self.run = run


class SubmitError(IocflowError, ValueError):
    """A submission, a signal or an operator's word cannot be taken as it is; the message says why."""


class UnknownRunError(IocflowError, LookupError):
    """There is no such run in the store."""


class NotTransactionalError(IocflowError):
    """The step's transaction was asked for in a step whose mode is not `transactional`."""


class SignalTimeoutError(IocflowError, TimeoutError):
    """No signal came in time."""


class SignalOrderError(IocflowError):
    """An activity waits for its signals in another order than in its earlier execution."""
