"""The errors of the ready-made activities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iocflow.errors import IocflowError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iocflow.activities.letter import Delivery

__all__ = [
    "ContextFieldError",
    "DatabaseBusyError",
    "DatabaseError",
    "DeliveryError",
    "HeaderError",
    "LetterError",
    "LibraryMissingError",
    "MailError",
    "MailTimeoutError",
    "SmtpConnectionError",
    "SmtpLoginError",
    "SmtpTemporaryError",
    "SmtpTlsError",
    "StylesheetError",
    "TemplateError",
    "TransformError",
]


class ContextFieldError(IocflowError, AttributeError):
    """The context does not offer a field that an activity was told to read or write."""


class LibraryMissingError(IocflowError, ImportError):
    """A library is not installed; the message names the extra that brings it."""


class EventDataError(IocflowError, ValueError):
    """What an event is to tell cannot be written as JSON."""


class StylesheetError(IocflowError, ValueError):
    """A stylesheet cannot be compiled, or asks for another file; the message begins with `file:line`."""


class TransformError(IocflowError, ValueError):
    """A document cannot be transformed: it is not well formed, or the stylesheet failed on it."""


class TemplateError(IocflowError, ValueError):
    """A template cannot be compiled or rendered; the message begins with `file:line`."""


class DatabaseError(IocflowError):
    """A database refused a statement, is missing, or has other columns than expected."""


class DatabaseBusyError(DatabaseError):
    """A database stayed locked by others for the whole of the busy time-out; another attempt may succeed."""


class MailError(IocflowError):
    """The base of what can go wrong with mail."""


class LetterError(MailError, ValueError):
    """A letter cannot be made; it was not sent."""


class HeaderError(LetterError):
    """A header, a name or an address holds what must not be in it, such as a line break."""


class MailTimeoutError(MailError, TimeoutError):
    """The step's time limit ended before all the mail was sent; what was sent is kept for the next attempt."""


class SmtpTlsError(MailError):
    """The connection cannot be encrypted as demanded: no STARTTLS, or a certificate that does not verify. Final."""


class SmtpLoginError(MailError):
    """The server refused the user and password, or offers no login. Final."""


class DeliveryError(MailError):
    """Some recipients did not get their mail, for good: the server refused them, or what became of it is uncertain.

    Attributes:
        deliveries: What became of every recipient of the step, those who got their mail too.
    """

    def __init__(self, message: str, deliveries: Sequence[Delivery] = ()) -> None:
        """Take the outcomes of the whole step."""
        super().__init__(message)
        self.deliveries = tuple(deliveries)


class SmtpTemporaryError(DeliveryError):
    """Some recipients were put off by the server (4xx); another attempt of the step mails those, and only those."""


class SmtpConnectionError(SmtpTemporaryError, ConnectionError):
    """The server cannot be reached, or hung up before it took over a mail; another attempt mails the rest.

    It is a `ConnectionError` too, for handlers that know nothing of mail.
    """
