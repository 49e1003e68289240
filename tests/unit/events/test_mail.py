"""From the bytes of a mail to an event."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

import pytest

from iocflow.events.envelope import UnreadableEventError
from iocflow.events.mail import read_mail
from iocflow.events.source import Event


def read(raw: bytes | EmailMessage, seed: str = "mail") -> Event:
    data = raw if isinstance(raw, bytes) else raw.as_bytes(policy=SMTP)
    return read_mail(data, source="imap://h", id="17", seed=seed)


def written(**headers: str) -> EmailMessage:
    letter = EmailMessage()
    for name, value in headers.items():
        letter[name.replace("_", "-")] = value
    return letter


def test_all_parts_of_a_mail() -> None:
    """Headers with encoded words, both texts and the names of attachments."""
    letter = written(
        Message_ID="<1@example.com>", From="Jörg <jo@example.com>", To="a@example.com, B <b@example.com>",
        Cc="c@example.com", Subject="Grüße", Date="Tue, 01 Dec 2026 10:00:00 +0100",
    )  # fmt: skip
    letter.set_content("plain ä\n")
    letter.add_alternative("<p>html</p>\n", subtype="html")
    letter.add_attachment(b"%PDF", "application", "pdf", filename="übersicht.pdf")
    event = read(letter)
    assert (event.id, event.subject) == ("<1@example.com>", "Grüße")
    assert event.time is not None
    assert event.time.astimezone(UTC) == datetime(2026, 12, 1, 9, tzinfo=UTC)
    data: Any = event.data
    assert (data["sender"], data["to"]) == ("jo@example.com", ["a@example.com", "b@example.com", "c@example.com"])
    assert (data["text"], data["html"], data["attachments"]) == ("plain ä\n", "<p>html</p>\n", ["übersicht.pdf"])


def test_a_mail_that_says_little() -> None:
    """Without Message-ID, Date and subject, the id is the server's, and the rest is empty."""
    event = read(b"From: jo@example.com\r\n\r\nhello\r\n")
    data: Any = event.data
    assert (event.id, event.time, event.subject) == ("17", None, "")
    assert (data["message_id"], data["text"], data["to"]) == ("", "hello\n", [])


@pytest.mark.parametrize(
    ("charset", "text"), [("iso-8859-1", "Grüße"), ("utf-8", "日本"), ("koi8-r", "привет"), ("us-ascii", "naïve")]
)
def test_character_sets(charset: str, text: str) -> None:
    """A text is read in the character set that it names; UTF-8 that calls itself ASCII is UTF-8."""
    body = text.encode("utf-8" if charset == "us-ascii" else charset)
    raw = f"From: a@example.com\r\nContent-Type: text/plain; charset={charset}\r\n\r\n".encode() + body
    data: Any = read(raw).data
    assert data["text"] == text


@pytest.mark.parametrize("where", ["the mail", "an attachment", "the text", "an envelope"])
def test_json(where: str) -> None:
    """JSON is the seed, wherever the mail has it; a CloudEvent tells its own id."""
    letter = written(From="a@example.com", Message_ID="<1@example.com>")
    document: Any = {"fare": 7}
    if where == "an envelope":
        letter.set_content(json.dumps({"specversion": "1.0", "id": "x", "data": document}))
    elif where == "an attachment":
        letter.set_content("see there")
        letter.add_attachment(json.dumps(document).encode(), "application", "json", filename="a.json")
    elif where == "the mail":
        letter.set_content(json.dumps(document).encode(), "application", "json")
    else:
        letter.set_content(json.dumps(document))
    event = read(letter, "json")
    assert (event.data, event.id) == (document, "x" if where == "an envelope" else "<1@example.com>")


@pytest.mark.parametrize(
    ("raw", "seed", "told"),
    [
        (b"", "mail", "no headers"),
        (b"\r\n\r\nhello", "mail", "no headers"),
        (b"From: a@b.example\r\nContent-Type: text/plain; charset=klingon\r\n\r\nx", "mail", "not known: klingon"),
        (b"From: a@b.example\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n\xff", "mail", "not utf-8 at byte 0"),
        (b"From: a@b.example\r\n\r\nhello", "json", "not JSON"),
        (b"From: a@b.example\r\nContent-Type: text/html\r\n\r\n<p>", "json", "brings no JSON"),
        (b"From: a@b.example\r\nContent-Type: application/json\r\n\r\n{", "mail", "not JSON"),
    ],
)
def test_what_is_no_event(raw: bytes, seed: str, told: str) -> None:
    """It is refused, and the reason says why."""
    with pytest.raises(UnreadableEventError, match=told):
        read(raw, seed)


def test_parts_in_parts_without_end() -> None:
    """Nesting that the reader cannot follow is refused like anything else that is no mail."""
    raw = b"From: a@b.example\r\n"
    for n in range(3000):
        raw += f"Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n".encode()
    with pytest.raises(UnreadableEventError, match="nested too deeply"):
        read(raw)
