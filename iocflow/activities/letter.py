"""What is mailed: recipients, letters, and what became of each."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage

from iocflow.activities.errors import LetterError
from iocflow.activities.headers import MailPolicy, check_header_name, check_text, mailbox, shown, verify

__all__ = ["Delivery", "DeliveryOutcome", "Draft", "Letter", "Recipient", "add_headers"]


@dataclass(frozen=True, slots=True)
class Recipient:
    """One mailbox: its address, as in `name@example.com`, and the name that is shown with it."""

    address: str
    name: str = ""


class DeliveryOutcome(enum.StrEnum):
    """What became of one recipient's mail."""

    SENT = "sent"
    """The server took it over."""
    REFUSED = "refused"
    """It was not sent and will not be: the server refused it for good, or the mail itself was refused here."""
    UNCERTAIN = "uncertain"
    """The connection was lost after the text was handed over and before the reply: it may have been sent."""
    DEFERRED = "deferred"
    """The server put it off (4xx): another attempt may succeed."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of the mail to one address; `detail` is the server's reply or the reason."""

    address: str
    outcome: DeliveryOutcome
    detail: str = ""

    def __str__(self) -> str:
        """Return the outcome, the address and the detail in one line, as a log shows them."""
        return f"{self.outcome.value} {shown(self.address)} {self.detail}".rstrip()

    @property
    def final(self) -> bool:
        """Whether nothing will be tried again."""
        return self.outcome is not DeliveryOutcome.DEFERRED


@dataclass(frozen=True, slots=True)
class Letter:
    """A finished, checked message to one recipient.

    Attributes:
        message: What is sent; a `Bcc` header in it would not be.
        sender: The address that the envelope is from.
        address: The address that it is for.
    """

    message: EmailMessage
    sender: str
    address: str

    @property
    def key(self) -> str:
        """What tells it from other letters, and is the same in every attempt: its Message-ID."""
        return str(self.message["Message-ID"])

    @property
    def international(self) -> bool:
        """Whether an address is not in ASCII, so that the server must offer SMTPUTF8."""
        return not (self.sender + self.address).isascii()


@dataclass(frozen=True, slots=True)
class Draft:
    """All of a message but its recipient.

    Attributes:
        sender: Who it is from, in the header and on the envelope.
        text: The plain text; beside `html`, the alternative for readers that show none.
        headers: Further headers; a list makes the header stand several times.
    """

    sender: Recipient
    subject: str
    text: str = ""
    html: str = ""
    reply_to: Recipient | None = None
    headers: Mapping[str, str | Sequence[str]] = field(default_factory=dict)

    def letter_to(self, recipient: Recipient, key: str) -> Letter:
        """Return the finished letter to `recipient`, who is the only one it names.

        Args:
            recipient: The one it is for.
            key: What the Message-ID is made of, together with the address: the same key gives the same id.

        Raises:
            LetterError: A header, a name or an address was refused, or the body is no text.
        """
        to = mailbox(recipient.address, recipient.name, "the recipient")
        sender = mailbox(self.sender.address, self.sender.name, "the sender")
        message = EmailMessage(policy=MailPolicy())
        message["Date"] = datetime.now(UTC)
        message["Message-ID"] = _message_id(key, to, sender)
        message["From"] = sender
        message["To"] = to
        if self.reply_to is not None:
            message["Reply-To"] = mailbox(self.reply_to.address, self.reply_to.name, "reply_to")
        message["Subject"] = check_text(self.subject, "the subject")
        add_headers(message, self.headers)
        self._add_body(message)
        letter = Letter(message, sender.addr_spec, to.addr_spec)
        verify(message, utf8=letter.international)
        return letter

    def _add_body(self, message: EmailMessage) -> None:
        """Set the body: quoted-printable, which every server lets through and which keeps lines short."""
        for part in (self.text, self.html):
            if not isinstance(part, str):
                raise LetterError(f"the body must be text, not {type(part).__name__}")
        first, second = (self.text, self.html) if self.text or not self.html else (self.html, "")
        try:
            message.set_content(first, subtype="plain" if first is self.text else "html", cte="quoted-printable")
            if second:
                message.add_alternative(second, subtype="html", cte="quoted-printable")
        except UnicodeEncodeError as error:
            raise LetterError(f"the body holds a lone surrogate at position {error.start + 1}; take it out") from error


def add_headers(message: EmailMessage, headers: Mapping[str, str | Sequence[str]]) -> None:
    """Add users' headers to `message`.

    Raises:
        HeaderError: A name or a value cannot stand in a header, or the mail sets the header itself.
    """
    for name, values in headers.items():
        for value in (values,) if isinstance(values, str) else values:
            message[check_header_name(name)] = check_text(value, f"the header {name}")


def _message_id(key: str, to: Address, sender: Address) -> str:
    """Return the id of the mail that `key` stands for to one recipient; other keys or recipients give other ids."""
    digest = hashlib.sha256(f"{key}\0{to.addr_spec}".encode()).hexdigest()[:32]
    return f"<{digest}.iocflow@{sender.domain}>"
