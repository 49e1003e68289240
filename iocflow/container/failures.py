"""The errors of an application: building it, looking into it, closing it."""

from __future__ import annotations

from iocflow.errors import IocflowError
from iocflow.wiring import ConfigurationError, Place

__all__ = [
    "BuildError",
    "CloseError",
    "ClosedError",
    "NotDurableError",
    "UnfitError",
    "UnknownIdError",
    "WrongTypeError",
]


class BuildError(ConfigurationError):
    """A bean could not be built, though the file is right; what was built before it is closed again.

    The cause is what its constructor, factory or `init` raised.
    """


class UnfitError(IocflowError):
    """A factory made something that is not what is wanted of it.

    Attributes:
        place: Where the file says what is wanted.
    """

    def __init__(self, text: str, place: Place) -> None:
        """Take the sentence, and where it belongs."""
        super().__init__(text)
        self.place = place


class CloseError(IocflowError, ExceptionGroup[Exception]):
    """Beans could not be closed; every other one was. Each error has a note that names its bean."""


class UnknownIdError(IocflowError, KeyError):
    """The application has no bean or processor of that id; the message says which one was probably meant."""

    def __str__(self) -> str:
        """Return the message as it is; a KeyError would quote it."""
        return str(self.args[0])


class WrongTypeError(IocflowError, TypeError):
    """A bean or processor is not of the type that was asked for."""


class ClosedError(IocflowError):
    """The application is closed; its beans are gone."""


class NotDurableError(IocflowError):
    """The application has no store, so that none of its runs are durable."""
