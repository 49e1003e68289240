"""What a mailbox source does with a mail server, whichever protocol that speaks."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from typing import Protocol

from iocflow.errors import IocflowError
from iocflow.events.mailbox_address import MailboxOptions
from iocflow.launch.errors import ImpossibleSourceError

__all__ = ["MailRefusedError", "MailboxLostError", "MailboxSession", "tls_context"]


class MailboxLostError(IocflowError):
    """A mail server cannot be reached, does not let us in now, or broke off; the launcher tries again."""


class MailRefusedError(IocflowError):
    """A server does not hand out one mail; the session goes on."""


class MailboxSession(Protocol):
    """A login to a mailbox, and what lay in it then. Once a method raised anything but `MailRefusedError`, it is over.

    Raises:
        MailboxLostError: From every method but `drop`.
    """

    def mails(self) -> Sequence[str]:
        """Return the keys of the mails, the oldest first: the same in every session, and never another mail's."""

    def fetch(self, key: str) -> bytes:
        """Return a mail as it came, without marking it.

        Raises:
            MailRefusedError: The server does not give it.
        """

    def remove(self, key: str) -> None:
        """Delete or move a mail, for good when `end` returns; one that is not there (any more) is removed already."""

    def end(self) -> None:
        """Log out, which carries out what was removed."""

    def drop(self) -> None:
        """Close the connection as it is; what was removed may or may not be."""


def tls_context(options: MailboxOptions) -> ssl.SSLContext:
    """Return how certificates and names of servers are verified.

    Raises:
        ImpossibleSourceError: The file of the authorities is none.
    """
    ca = options.ca or None
    if ca and not os.path.isfile(ca):
        raise ImpossibleSourceError(f"{options.name}: there is no file {ca} with certificate authorities")
    try:
        return ssl.create_default_context(cafile=ca)
    except ssl.SSLError as error:
        raise ImpossibleSourceError(f"{options.name}: {ca} holds no certificate: {error}") from error
