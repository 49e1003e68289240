"""Mail headers that come out as they went in: what is refused, and how the rest is written down.

The email package is not relied on for either. Of its patch levels that are in use, some let an encoded line break
through (CPython gh-121650), drop the quotes of a long name so that it becomes several addresses (gh-80222, gh-121284),
or encode an address so that it cannot be delivered (gh-83938).
"""

from __future__ import annotations

import base64
import binascii
import email
import email.errors
import email.header
import email.policy
import email.utils
import re
from collections.abc import Iterable
from email.headerregistry import Address
from email.message import EmailMessage
from typing import Any

from iocflow.activities.errors import HeaderError

__all__ = ["MailPolicy", "check_header_name", "check_text", "mailbox", "shown", "verify"]

MAX_LINE = 998
"""Characters in a line of a message, without its end (RFC 5322, 2.1.1)."""

_FOLD_AT = 76
_SHOWN = 254  # characters: the longest address there is (RFC 5321, 4.5.3.1.3, without the angle brackets)
_WORD_BYTES = 45  # of UTF-8 that fit into an encoded word of 75 characters (RFC 2047, 2)
_ADDRESS_HEADERS = frozenset({"from", "to", "cc", "bcc", "reply-to", "sender"})
_STRUCTURED = frozenset({"date", "message-id", "mime-version", "content-type", "content-transfer-encoding"})
_RESERVED = _ADDRESS_HEADERS | _STRUCTURED | {"subject", "content-disposition", "return-path", "received"}

# str.splitlines, which the email package uses, breaks lines at more characters than CR and LF.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_LOCAL_PART = re.compile(r"""[^\s"(),:;<>@\[\\\].]+(\.[^\s"(),:;<>@\[\\\].]+)*""")
_DOMAIN = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*")
_DEVIATIONS = re.compile("[\u00df\u03c2\u200c\u200d]")


def check_text(text: str, what: str) -> str:
    """Return `text` when it can stand in a header, else raise about `what`.

    Raises:
        HeaderError: It holds a line break or another control character, one of these behind an encoding that readers
            undo, or a lone surrogate.
    """
    if not isinstance(text, str):
        raise HeaderError(f"{what} must be text, not {type(text).__name__}")
    for shown, how in ((text, ""), (_decoded(text), "an encoded ")):
        found = _FORBIDDEN.search(shown)
        if found:
            kind = "line break" if found[0] in "\r\n\x0b\x0c\x85\u2028\u2029" else "control character"
            kind = "lone surrogate" if "\ud800" <= found[0] <= "\udfff" else kind
            place = f"at position {found.start() + 1}"
            raise HeaderError(f"{what} holds {how or 'a '}{kind} {place}; take it out: {text!a:.200}")
    return text


def shown(address: str) -> str:
    """Return an address fit for a log line: others choose it, so that it may hold line breaks and be of any length."""
    return (address if address.isprintable() else ascii(address))[:_SHOWN]


def check_header_name(name: str) -> str:
    """Return `name` when it is the name of a header that users may set.

    Raises:
        HeaderError: It is no name of a header, or one that the mail itself sets.
    """
    if not re.fullmatch(r"[!-9;-~]{1,76}", name):
        raise HeaderError(f"{name!a:.100} is no name of a header; use letters, digits and hyphens")
    if name.lower() in _RESERVED:
        raise HeaderError(f"the header {name} is set by the mail itself; use the option for it")
    return name


def mailbox(address: str, name: str, what: str) -> Address:
    """Return the checked mailbox, its domain in the ASCII form that the DNS knows.

    The part before the `@` may have letters of any script; then the mail needs SMTPUTF8. Quoted ones are refused, and
    so are IP addresses in brackets: the releases of Python do not agree on how to read either.

    Raises:
        HeaderError: The name or the address cannot stand in a header, or it is no single address.
    """
    check_text(name, f"the name of {what}")
    check_text(address, f"the address of {what}")
    local, _, domain = address.rpartition("@")
    if "=?" in address or not _LOCAL_PART.fullmatch(local):
        raise HeaderError(f"{address!a:.100} ({what}) is no mail address; write it as in name@example.com")
    made = Address(name, local, _ascii_domain(domain, what))
    if local.isascii() and email.utils.parseaddr(made.addr_spec)[1] != made.addr_spec:
        raise HeaderError(f"{address!a:.100} ({what}) can be read as another address")
    return made


def _ascii_domain(domain: str, what: str) -> str:
    if domain.isascii():
        if not _DOMAIN.fullmatch(domain):
            raise HeaderError(f"{domain!a:.100} ({what}) is no domain")
        return domain
    if _DEVIATIONS.search(domain):
        # IDNA 2003, which Python knows, maps these to other letters: the mail would go to somebody else's domain.
        raise HeaderError(f"{domain!r} ({what}) means different domains in IDNA 2003 and 2008; write its xn-- form")
    try:
        return domain.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise HeaderError(f"{domain!a:.100} ({what}) is no domain: {error}") from error


def _decoded(text: str) -> str:
    """Return `text` as a reader shows it who undoes encoded words; it stays as it is when it cannot be undone."""
    if "=?" not in text:
        return text
    try:
        return str(email.header.make_header(email.header.decode_header(text)))
    except (email.errors.HeaderParseError, LookupError, UnicodeError, binascii.Error, ValueError):
        return text


class MailPolicy(email.policy.EmailPolicy):
    """The SMTP policy, but names and texts are written by this module, and bodies are in 7 bit for every server."""

    def __init__(self, **options: Any) -> None:
        """Begin with the options of `email.policy.SMTP`."""
        super().__init__(**{"linesep": "\r\n", "cte_type": "7bit", **options})

    def fold(self, name: str, value: Any) -> str:
        """Return the header's lines."""
        if name.lower() in _ADDRESS_HEADERS:
            return self._lines(name, _written_addresses(value.addresses))
        if name.lower() in _STRUCTURED:
            return str(super().fold(name, value))
        return self._lines(name, _written_text(str(value)))

    def fold_binary(self, name: str, value: Any) -> bytes:
        """Return the header's lines as bytes."""
        return self.fold(name, value).encode("utf-8" if self.utf8 else "ascii")

    def _lines(self, name: str, pieces: Iterable[str]) -> str:
        """Return a header of `pieces`, with a new line before each that would make the last one too long."""
        lines, line = [], f"{name}:"
        for piece in pieces:
            if len(line) + 1 + len(piece) > _FOLD_AT and line.strip() and not line.endswith(":"):
                lines.append(line)
                line = ""
            line += f" {piece}"
        return self.linesep.join([*lines, line, ""])


def _written_text(text: str) -> list[str]:
    """Return the pieces of an unstructured header, between which a line may end."""
    plain = text.isascii() and "=?" not in text and text == " ".join(text.split())
    pieces = text.split(" ")
    return pieces if plain and all(len(piece) < MAX_LINE - _FOLD_AT for piece in pieces) else _encoded_words(text)


def _written_addresses(addresses: Iterable[Address]) -> list[str]:
    pieces: list[str] = []
    for address in addresses:
        if pieces:
            pieces[-1] += ","
        named = address.display_name
        pieces += [*_written_name(named), f"<{address.addr_spec}>"] if named else [address.addr_spec]
    return pieces


def _written_name(name: str) -> list[str]:
    if name.isascii() and "=?" not in name and len(name) < MAX_LINE // 2:
        return ['"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"']
    return _encoded_words(name)


def _encoded_words(text: str) -> list[str]:
    """Return `text` as encoded words, cut between words where that is possible and never within a character."""
    chunks = [b""]
    for word in re.findall(r"\S+\s*|\s+", text):
        raw = word.encode()
        parts = [raw] if len(raw) <= _WORD_BYTES else [char.encode() for char in word]
        for part in parts:
            if len(chunks[-1]) + len(part) > _WORD_BYTES:
                chunks.append(b"")
            chunks[-1] += part
    return [f"=?utf-8?b?{base64.b64encode(chunk).decode()}?=" for chunk in chunks if chunk]


def verify(message: EmailMessage, utf8: bool) -> None:
    """Write the headers down, read them again, and compare: what was meant is what every reader will see.

    Raises:
        HeaderError: A header was not read as it was meant, or a line is too long.
    """
    policy = MailPolicy(utf8=utf8)
    written = b"".join(policy.fold_binary(name, value) for name, value in message.items())
    if any(len(line) > MAX_LINE for line in written.split(b"\r\n")):
        raise HeaderError(f"a header has a line of more than {MAX_LINE} characters; shorten the address or the text")
    again = email.message_from_string(written.decode() + "\r\n", policy=email.policy.compat32)
    if [name for name, _ in again.items()] != message.keys():
        raise HeaderError("the headers would be read as other headers")
    for (name, value), read in zip(message.items(), again.values(), strict=True):
        if name.lower() in _STRUCTURED:
            continue
        unfolded = str(read).replace("\r\n", "").replace("\n", "")
        if name.lower() in _ADDRESS_HEADERS:
            found = str([(_decoded(shown), spec) for shown, spec in email.utils.getaddresses([unfolded])])
            meant = str([(address.display_name, address.addr_spec) for address in value.addresses])
        else:
            found, meant = _decoded(unfolded), str(value)
        if found != meant:
            raise HeaderError(f"the header {name} would be read as {found!a:.300} instead of {meant!a:.300}")
