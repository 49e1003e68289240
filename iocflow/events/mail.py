"""From the bytes of a mail to an event."""

from __future__ import annotations

import email
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime

from iocflow.events.envelope import UnreadableEventError, read_event
from iocflow.events.source import Event

__all__ = ["Mail", "read_mail"]

_MESSAGE_ID = re.compile(r"<[!-;=?-~]{1,500}>")
_JSON = re.compile(r"application/(.+\+)?json")


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail as a seed; what it does not have is empty. As a seed's type it needs no code: `seed_data: Mail`.

    Attributes:
        sender: The address that it says it is from, without a name. Anybody can write anything there.
        to: The addresses in To and Cc.
        date: When it says it was sent, in ISO 8601.
        text: Its first part that is plain text and no attachment.
        html: Its first part that is HTML and no attachment.
        attachments: The names of its attachments, empty for one without a name.
    """

    message_id: str = ""
    subject: str = ""
    sender: str = ""
    to: list[str] = field(default_factory=list)
    date: str = ""
    text: str = ""
    html: str = ""
    attachments: list[str] = field(default_factory=list)


def read_mail(raw: bytes, *, source: str, id: str, seed: str) -> Event:
    """Return the event in a mail.

    Args:
        raw: The mail.
        source: The event's source; a CloudEvent in the mail may tell another.
        id: The event's id, for a mail without a Message-ID.
        seed: `mail`, or `json` for one that has to bring JSON.

    Raises:
        UnreadableEventError: It is no mail that could be read, or brings no JSON where it has to.
    """
    try:
        return _read(raw, source, id, seed)
    except RecursionError:
        raise UnreadableEventError("no mail that can be read: its parts are nested too deeply") from None
    except (MessageError, LookupError, ValueError, TypeError, AttributeError) as error:
        # What email raises for what it did not expect is of all these kinds.
        if isinstance(error, UnreadableEventError):
            raise
        raise UnreadableEventError(f"no mail that can be read: {error}") from error


def _read(raw: bytes, source: str, id: str, seed: str) -> Event:
    message = email.message_from_bytes(raw)
    if not message.keys():
        raise UnreadableEventError("no mail that can be read: it has no headers")
    written = _MESSAGE_ID.search(_header(message, "Message-ID"))
    id = written[0] if written else id
    parts = list(_parts(message))
    text, html = (_first(parts, kind) for kind in ("text/plain", "text/html"))
    if seed == "json" or _JSON.fullmatch(message.get_content_type()):
        document = next((part for part in parts if _JSON.fullmatch(part.get_content_type())), text)
        if document is None:
            raise UnreadableEventError(
                "the mail brings no JSON, neither as its text nor as a part; seed=mail would take it as it is"
            )
        return read_event(_decoded(document).strip().encode(), source=source, id=id)
    sent = _date(_header(message, "Date"))
    mail = Mail(
        message_id=written[0] if written else "",
        subject=_header(message, "Subject"),
        sender=next(iter(_addresses(message, "From")), ""),
        to=[*_addresses(message, "To"), *_addresses(message, "Cc")],
        date=sent.isoformat() if sent else "",
        text=_decoded(text) if text else "",
        html=_decoded(html) if html else "",
        attachments=[_filename(part) for part in parts if _attached(part)],
    )
    return Event(id, source, asdict(mail), subject=mail.subject, time=sent)


def _parts(message: Message) -> Iterator[Message]:
    """Yield the parts that are no containers; a mail in the mail is one part."""
    content = message.get_payload()
    if message.get_content_maintype() == "multipart" and isinstance(content, list):
        for part in content:
            if isinstance(part, Message):
                yield from _parts(part)
    else:
        yield message


def _attached(part: Message) -> bool:
    return part.get_content_disposition() == "attachment" or bool(part.get_filename()) or part.is_multipart()


def _first(parts: list[Message], kind: str) -> Message | None:
    return next((part for part in parts if part.get_content_type() == kind and not _attached(part)), None)


def _filename(part: Message) -> str:
    return _words(part.get_filename() or "")


def _decoded(part: Message) -> str:
    """Return the text of a part, with line feeds.

    Raises:
        UnreadableEventError: Its bytes are no text in the character set that it names, or none that is known.
    """
    content = part.get_payload(decode=True)
    charset = part.get_content_charset("utf-8")
    charset = "utf-8" if charset == "us-ascii" else charset
    try:
        text = content.decode(charset) if isinstance(content, bytes) else ""
    except LookupError:
        raise UnreadableEventError(f"its text is in a character set that is not known: {charset}") from None
    except UnicodeDecodeError as error:
        raise UnreadableEventError(f"its text is not {charset} at byte {error.start}") from None
    return text.replace("\r\n", "\n")


def _header(message: Message, name: str) -> str:
    """Return the first header of a name on one line, empty without one."""
    value = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    return _words(str(value))


def _words(written: str) -> str:
    """Return a text of a header with its encoded words decoded; a character that cannot be is U+FFFD."""
    text = re.sub(r"\r?\n[ \t]+", " ", written).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if "=?" not in text:
        return text.strip()
    found: list[str] = []
    for piece, charset in decode_header(text):
        try:
            found.append(piece if isinstance(piece, str) else piece.decode(charset or "utf-8", "replace"))
        except LookupError:
            found.append(piece.decode("utf-8", "replace") if isinstance(piece, bytes) else piece)
    return "".join(found).strip()


def _addresses(message: Message, name: str) -> list[str]:
    values = [str(value) for key, value in message.raw_items() if key.lower() == name.lower()]
    return [_words(address) for _, address in getaddresses(values) if address]


def _date(written: str) -> datetime | None:
    try:
        sent = parsedate_to_datetime(written)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return sent if sent.tzinfo else sent.replace(tzinfo=UTC)  # -0000: in UTC, from an unknown place
