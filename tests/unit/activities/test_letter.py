"""Letters: headers that are read as they were meant, and those that are refused."""

from __future__ import annotations

import email
import email.header
import email.policy
import email.utils
import random
from email.message import EmailMessage
from typing import Any

import pytest

from iocflow.activities import Draft, HeaderError, Letter, LetterError, Recipient

FROM = Recipient("fares@example.com", "Fares")


def letter(name: str = "", address: str = "x@example.com", **draft: Any) -> Letter:
    """Return a letter to somebody of that name and address."""
    return Draft(**{"sender": FROM, "subject": "News", "text": "Hello", **draft}).letter_to(
        Recipient(address, name), "run-1/send"
    )


def read(made: Letter) -> tuple[list[tuple[str, str]], str]:
    """Return the names and addresses of `To`, and the subject, as a reader of the raw bytes sees them."""
    raw = email.message_from_bytes(made.message.as_bytes(), policy=email.policy.compat32)

    def decoded(text: str) -> str:
        return str(email.header.make_header(email.header.decode_header(text)))

    to, subject = (raw[header].replace("\r", "").replace("\n", "") for header in ("To", "Subject"))
    return [(decoded(name), address) for name, address in email.utils.getaddresses([to])], decoded(subject)


NAMES = [
    "Müller, Jörg",
    "O'Neil",
    "王小明",
    "محمد بن عبد الله",
    "דוד כהן",
    "علی‌رضا",
    'Ann "Annie" \\ Smith; née Jones',
    "Bobby <bobby@example.org>, other@example.org",
    "x, y " * 80 + "z",
    "a" * 400,
    "a" * 1200,
    "王" * 400,
    "Ärger mit einem sehr langen Namen, der nicht enden will " * 20 + "Ende",
    "=?utf-8?q?not_encoded?=x",
    "(comment) [brackets]",
    "two  spaces",
    "\\",
    '"',
    "e\u0301 composed",
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name[:20])
def test_names_are_read_as_they_were_written(name: str) -> None:
    """Every name comes out as it went in, and stays the name of one address."""
    assert read(letter(name))[0] == [(name, "x@example.com")]


@pytest.mark.parametrize("subject", [name for name in NAMES if "=?" not in name], ids=lambda subject: subject[:20])
def test_subjects_are_read_as_they_were_written(subject: str) -> None:
    """Every subject comes out as it went in."""
    assert read(letter(subject=subject))[1] == subject


@pytest.mark.parametrize(
    "text",
    [
        "Hello\nBcc: victim@example.com",
        "Hello\r\nBcc: victim@example.com",
        "Hello\rx",
        "trailing\n",
        "=?utf-8?q?Hello=0ABcc:_victim?=",
        "Hello =?UTF-8?Q?=0D=0A?=Bcc: victim@example.com",
        "=?utf-8?b?Cg==?=",
        "next\x0bline",
        "next\x85line",
        "next\u2028line",
        "nul\x00",
        "tab\t",
        "\ud800 alone",
    ],
    ids=ascii,
)
def test_line_breaks_and_surrogates_are_refused_everywhere(text: str) -> None:
    """A name, a subject, an address, a sender and any other header with a line break, plain or encoded, is refused."""
    for make in (
        lambda: letter(text),
        lambda: letter(subject=text),
        lambda: letter(address=f"{text}@example.com"),
        lambda: letter(sender=Recipient("a@example.com", text)),
        lambda: letter(reply_to=Recipient("a@example.com", text)),
        lambda: letter(headers={"X-Route": text}),
        lambda: letter(headers={"X-Route": ["BWI", text]}),
    ):
        with pytest.raises(HeaderError, match=r"line break|control character|surrogate"):
            make()


@pytest.mark.parametrize(
    ("address", "sent_to"),
    [
        ("jörg@müller.example", "jörg@xn--mller-kva.example"),
        ("x@müller.example", "x@xn--mller-kva.example"),
        ("用户@例え.example", "用户@xn--r8jz45g.example"),
        ("o'neil+fares=1@example.ie", "o'neil+fares=1@example.ie"),
    ],
)
def test_domains_are_written_as_the_dns_knows_them(address: str, sent_to: str) -> None:
    """A domain in another script goes out in its ASCII form; letters before the @ stay, and ask for SMTPUTF8."""
    made = letter(address=address)
    assert made.address == sent_to
    assert made.international is not sent_to.isascii()


@pytest.mark.parametrize(
    "address",
    [
        "",
        "x",
        "@example.com",
        "x@",
        "x@y@example.com",
        "a b@example.com",
        "x@example.com, y@example.com",
        "<x@example.com>",
        "X <x@example.com>",
        "x(comment)@example.com",
        '"quoted"@example.com',
        "x@[192.0.2.1]",
        ".x@example.com",
        "x..y@example.com",
        "x@exam ple.com",
        "x@example..com",
        "x@example.com;y",
        f"x@{'a' * 64}.com",
        "x@straße.example",
        f"{'x' * 1000}@example.com",
    ],
)
def test_what_is_no_single_address_is_refused(address: str) -> None:
    """Nothing is an address that could be read as another one, as several, or as somebody else's domain."""
    with pytest.raises(HeaderError):
        letter(address=address)


def test_random_names_never_become_headers() -> None:
    """Of 300 random names and subjects made of what mail is written with, none adds a header or an address."""
    draw = random.Random(20050411)
    pieces = [
        *"abXY ,.;:<>@\"'\\()[]=?_-",
        "é",
        "王",
        "م",
        "=?",
        "?=",
        "=?utf-8?q?",
        "=?utf-8?b?",
        "=0A",
        "=?utf-8?q?a?=",
    ]
    made, refusals = 0, set()
    for _ in range(300):
        name, subject = ("".join(draw.choices(pieces, k=draw.randint(0, draw.choice([5, 30, 120])))) for _ in "12")
        try:
            mail = letter(name, subject=subject)
        except HeaderError as error:
            refusals.add(str(error).partition(" holds ")[2].partition(" line")[0].partition(" control")[0])
            continue
        made += 1
        raw = mail.message.as_bytes()
        lines = raw.partition(b"\r\n\r\n")[0].split(b"\r\n")
        headers = [line.partition(b":")[0].decode() for line in lines if not line.startswith(b" ")]
        assert headers == mail.message.keys()
        assert max(map(len, lines)) <= 998
        modern = email.message_from_bytes(raw, policy=email.policy.default)
        assert [address.addr_spec for address in modern["To"].addresses] == ["x@example.com"]
    assert made > 200
    assert refusals <= {"an encoded"}


def test_the_message_id_is_stable() -> None:
    """The same key and recipient give the same Message-ID, others another one; a date is always there."""
    first, again, other = letter(), letter("Other Name"), letter(address="y@example.com")
    assert first.key == again.key
    assert first.key != other.key
    assert first.key.endswith("@example.com>")
    assert email.utils.parsedate_to_datetime(first.message["Date"]).tzinfo is not None


def test_bodies_are_in_seven_bits_and_short_lines() -> None:
    """Both parts come out as they went in, through servers that know only ASCII and lines of 998 characters."""
    long = "Grüße, 王! " * 300
    raw = letter(text=long, html=f"<p>{long}</p>").message.as_bytes()
    assert raw.isascii()
    assert max(map(len, raw.split(b"\r\n"))) <= 78
    both = email.message_from_bytes(raw, policy=email.policy.default)
    assert both.get_content_type() == "multipart/alternative"
    parts: list[Any] = list(both.iter_parts())
    assert [part.get_content_type() for part in parts] == ["text/plain", "text/html"]
    assert [part.get_content().rstrip("\r\n") for part in parts] == [long, f"<p>{long}</p>"]


def test_one_part_alone() -> None:
    """A text alone is text/plain, an HTML alone is text/html, and none of them an empty text."""
    kinds = [letter(**body).message.get_content_type() for body in ({}, {"text": "", "html": "<p/>"}, {"text": ""})]
    assert kinds == ["text/plain", "text/html", "text/plain"]


def test_bodies_that_are_no_text_are_refused() -> None:
    """Bytes, None and lone surrogates are refused as a body."""
    for body in (b"bytes", None, "\ud800"):
        with pytest.raises(LetterError, match=r"the body (must be text|holds a lone surrogate)"):
            letter(text=body)


@pytest.mark.parametrize(
    "name", ["Bcc", "to", "Subject", "Content-Type", "Message-ID", "X Y", "X:Y", "X-Ü", "", "X\r\nY"]
)
def test_headers_that_users_may_not_set(name: str) -> None:
    """What is no name of a header is refused, and so are the headers that the mail itself sets."""
    with pytest.raises(HeaderError, match=r"no name of a header|set by the mail itself"):
        letter(headers={name: "x"})


def test_users_headers_may_stand_several_times() -> None:
    """A list makes a header stand once for each of its values."""
    made: EmailMessage = letter(headers={"X-Route": ["BWI", "LGA"], "X-Kind": "Ä"}).message
    assert made.get_all("X-Route") == ["BWI", "LGA"]
    assert b"X-Kind: =?utf-8?b?w4Q=?=" in made.as_bytes()
