"""Mailboxes of real servers, and sources that look at them often."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pytest

from iocflow.events.address import Address
from iocflow.events.mailbox import MailboxSource
from iocflow.events.mailbox_address import MailboxOptions
from iocflow.events.source import Delivery, Reason
from tests.integration.events.conftest import Bench, eventually
from tests.mail_servers import Gate, ImapServer, Pop3Server, cut

QUICK = timedelta(milliseconds=30)
Sources = Callable[..., MailboxSource]
WHY = Reason("because", "x", "p")


def mail(number: int | str, text: str = "", headers: str = "") -> bytes:
    """Return a mail that brings a number, or a text, as JSON."""
    return (
        f"Message-ID: <{number}@example.com>\r\nFrom: Jo <jo@example.com>\r\nSubject: no. {number}\r\n"
        f"Content-Type: application/json\r\n{headers}\r\n{text or json.dumps(number)}\r\n"
    ).encode()


class Mailbox(Protocol):
    """A mailbox of a real server."""

    address: str

    def put(self, *mails: bytes) -> None: ...

    def mails(self) -> list[bytes]: ...

    def left(self) -> list[bytes]: ...

    def trap(self, where: str, act: Callable[[], None] = cut) -> None: ...

    def logins(self) -> int: ...


class Pop3Mailbox:
    """The mailbox of our own POP3 server."""

    TRAPS: ClassVar = {
        "removing": "DELE",
        "removed": "QUIT done",
        "fetching": "RETR half",
        "listing": "UIDL",
        "login": "PASS",
    }

    def __init__(self, server: Pop3Server, dead: Path) -> None:
        self.server = server
        self.address = f"pop3://jo%40example.com:se%3Acret@127.0.0.1:{server.port}?dead={dead}"

    def put(self, *mails: bytes) -> None:
        for raw in mails:
            self.server.mails[f"u{uuid.uuid4().hex}"] = raw

    def mails(self) -> list[bytes]:
        return list(self.server.mails.values())

    def left(self) -> list[bytes]:
        return self.mails()

    def trap(self, where: str, act: Callable[[], None] = cut) -> None:
        self.server.traps.setdefault(self.TRAPS[where], []).append(act)

    def logins(self) -> int:
        return self.server.logins


class ImapMailbox:
    """A folder of pymap, behind a gate."""

    TRAPS: ClassVar = {
        "removing": b"STORE", "removed": b"EXPUNGE completed", "fetching": b"BODY[] {", "listing": b"SEARCH",
        "login": b"AUTHENTICATE",
    }  # fmt: skip

    def __init__(self, server: ImapServer, gate: Gate, dead: Path) -> None:
        self.server, self.gate = server, gate
        self.folder = f"F{uuid.uuid4().hex}"
        server.make(self.folder)
        self.address = f"imap://jo%40example.com:se%3Acret@127.0.0.1:{gate.port}/{self.folder}?dead={dead}"

    def put(self, *mails: bytes) -> None:
        for raw in mails:
            self.server.put(raw, self.folder)

    def mails(self) -> list[bytes]:
        time.sleep(0.05)  # the server is asked in vain often enough
        return self.server.mails(self.folder)

    def left(self) -> list[bytes]:
        return self.server.mails(self.folder, "UNDELETED")

    def trap(self, where: str, act: Callable[[], None] = cut) -> None:
        self.gate.traps.setdefault(self.TRAPS[where], []).append(act)

    def logins(self) -> int:
        return self.gate.connections


@pytest.fixture
def pop3(tmp_path: Path) -> Iterator[Pop3Mailbox]:
    """Return a mailbox of POP3."""
    server = Pop3Server()
    yield Pop3Mailbox(server, tmp_path / "dead")
    server.stop()


@pytest.fixture(scope="session")
def imap_server() -> Iterator[ImapServer]:
    """Return a server of IMAP."""
    server = ImapServer()
    yield server
    server.stop()


@pytest.fixture
def imap(imap_server: ImapServer, tmp_path: Path) -> Iterator[ImapMailbox]:
    """Return a mailbox of IMAP."""
    gate = Gate(imap_server.port)
    yield ImapMailbox(imap_server, gate, tmp_path / "dead")
    gate.close()


@pytest.fixture(params=["pop3", "imap"])
def mailbox(request: pytest.FixtureRequest) -> Mailbox:
    """Return a mailbox of either protocol."""
    found: Mailbox = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def sources() -> Iterator[Callable[..., MailboxSource]]:
    """Return a function that makes a source at an address, which looks often; it is closed at the end."""
    made: list[MailboxSource] = []

    def make(address: str, **changes: Any) -> MailboxSource:
        options = replace(MailboxOptions.of(Address.parse(address)), **{"every": QUICK, **changes})
        made.append(MailboxSource(options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def started(mailbox: Mailbox, bench: Bench, sources: Sources) -> Iterator[MailboxSource]:
    """Return a source on the mailbox with a launcher on it, that is stopped before the server."""
    source = sources(mailbox.address)
    bench.start(source)
    yield source
    bench.finish()


def dead(source: MailboxSource) -> list[tuple[bytes | None, str]]:
    """Return the dead letters and their reasons."""
    return [(one.body, one.reason.reason if one.reason else "") for one in source.dead_letters()]


def one(source: MailboxSource) -> Delivery:
    """Receive one event."""
    found: list[Delivery] = []
    eventually(lambda: bool(found) or found.extend(source.receive(1, 0.01)) or bool(found))
    return found[0]
