"""Servers of mail that lack something, refuse something, or want TLS."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from iocflow.events.mailbox import MailboxSource
from iocflow.events.mailbox_session import MailboxLostError
from iocflow.events.section import source_at
from iocflow.launch.errors import ImpossibleSourceError
from tests.broker import Proxy
from tests.integration.events.conftest import Bench, eventually
from tests.integration.events.mailbox.conftest import ImapMailbox, Mailbox, Pop3Mailbox, Sources, mail, one
from tests.mail_servers import CERTIFICATE, ImapServer, Pop3Server


def test_a_wrong_password(mailbox: Mailbox, sources: Sources) -> None:
    """A server that says it is the password ends the daemon, and the password is not told."""
    source = sources(mailbox.address, password="sesame")
    with pytest.raises(ImpossibleSourceError) as caught:
        source.open()
    assert "sesame" not in str(caught.value)


def test_a_mailbox_that_another_program_locks(pop3: Pop3Mailbox, sources: Sources) -> None:
    """It is tried again later: the refusal of a login does not mean the password then."""
    source = sources(pop3.address)
    with pop3.server.lock, pytest.raises(Exception, match=r"IN-USE") as caught:
        source.open()
    assert not isinstance(caught.value, ImpossibleSourceError)
    source.open()


def test_a_mail_that_the_server_does_not_give(pop3: Pop3Mailbox, bench: Bench, sources: Sources) -> None:
    """It is left there and told once; the next one is run."""
    pop3.put(mail(1), mail(2))
    pop3.server.refused.add(next(iter(pop3.server.mails)))
    bench.start(sources(pop3.address))
    eventually(lambda: len(pop3.mails()) == 1)
    bench.finish()
    assert (bench.begun, pop3.mails()) == ([2], [mail(1)])


def test_a_server_without_uidl(tmp_path: Path, sources: Sources) -> None:
    """It cannot be read, and the error names another way."""
    server = Pop3Server(uidl=False)
    with pytest.raises(ImpossibleSourceError, match=r"by no UIDL .*; read it by imap:"):
        sources(Pop3Mailbox(server, tmp_path / "dead").address).open()
    server.stop()


@pytest.fixture(params=["pop3s", "pop3", "imaps", "imap"])
def encrypted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the address of a mailbox behind TLS, from the first byte on or after STLS or STARTTLS."""
    scheme, dead = request.param, f"?dead={tmp_path / 'dead'}"
    if scheme.startswith("pop3"):
        server = Pop3Server(tls=scheme == "pop3s", starts_tls=scheme == "pop3")
        server.mails["u1"] = mail(1)
        where, stop = f"localhost:{server.port}", server.stop
    else:
        imap = request.getfixturevalue("imap_server") if scheme == "imaps" else ImapServer(starts_tls=True)
        proxy = Proxy(f"imap://127.0.0.1:{imap.port}", CERTIFICATE) if scheme == "imaps" else None
        folder = f"F{uuid.uuid4().hex}"
        if proxy:
            imap.make(folder)
            imap.put(mail(1), folder)
        where, stop = (
            f"localhost:{(proxy or imap).port}/{folder if proxy else ''}",
            (proxy.close if proxy else imap.stop),
        )
    yield f"{scheme}://jo%40example.com:se%3Acret@{where}{dead}{'' if scheme.endswith('s') else '&tls=start'}"
    stop()


def test_tls(tmp_path: Path, sources: Sources, encrypted: str) -> None:
    """Over TLS the mail is read from a server whose certificate is trusted, and from no other."""
    with pytest.raises(MailboxLostError, match="certificate verify failed"):
        sources(encrypted).open()
    source = sources(f"{encrypted}&ca={CERTIFICATE}", dead=tmp_path / "trusted")
    source.open()
    if not encrypted.startswith("imap:"):
        assert one(source).event is not None


@pytest.mark.parametrize("protocol", ["pop3", "imap"])
def test_a_server_that_does_not_turn_to_tls(request: pytest.FixtureRequest, sources: Sources, protocol: str) -> None:
    """No password is sent in clear instead."""
    there: Mailbox = request.getfixturevalue(protocol)
    sent: list[str] = []
    there.trap("login", lambda: sent.append("password"))
    with pytest.raises(Exception, match=r"STLS|TLS"):
        sources(there.address + "&tls=start").open()
    assert sent == []


def test_a_server_that_says_nothing(mailbox: Mailbox, sources: Sources) -> None:
    """It is given up after the time-out."""
    go = threading.Event()
    mailbox.trap("listing", lambda: go.wait(30) and None)
    with pytest.raises(Exception, match="timed out"):
        sources(mailbox.address, timeout=timedelta(milliseconds=200)).open()
    go.set()


WITHOUT_MOVE = {b" MOVE": b""}
WITHOUT_UIDPLUS = {b" UIDPLUS": b""}


@pytest.mark.parametrize("changes", [{}, WITHOUT_MOVE, {**WITHOUT_MOVE, **WITHOUT_UIDPLUS}])
def test_moved_when_done(imap: ImapMailbox, sources: Sources, changes: dict[bytes, bytes]) -> None:
    """With `done` a mail is moved into a folder, which is made, whatever the server is able to do."""
    imap.gate.changes.update(changes)
    done = f"done {uuid.uuid4().hex}"
    imap.put(mail(1))
    source = sources(f"{imap.address}&done={done}")
    source.open()
    source.acknowledge(one(source))
    assert imap.server.mails(f'"{done}"') == [mail(1)]
    source.open()
    assert source.receive(1, 0.0) == ()


def test_flagged_where_it_cannot_be_deleted_alone(imap: ImapMailbox, sources: Sources) -> None:
    """A server without UIDPLUS keeps the mail flagged, and what others flagged; it is not brought again."""
    imap.gate.changes.update(WITHOUT_UIDPLUS)
    imap.put(mail(1))
    source = sources(imap.address)
    source.open()
    source.acknowledge(one(source))
    source.open()
    assert (source.receive(1, 0.0), imap.mails()) == ((), [mail(1)])


def test_a_folder_that_is_not_there(imap: ImapMailbox, sources: Sources) -> None:
    """The server's word for it is told, and it is tried again."""
    with pytest.raises(Exception, match=r"imap://.*: ") as caught:
        sources(imap.address.replace(imap.folder, "nowhere")).open()
    assert not isinstance(caught.value, ImpossibleSourceError)


def test_a_source_at_an_address(mailbox: Mailbox) -> None:
    """The entry points lead to it."""
    assert isinstance(source_at(mailbox.address), MailboxSource)
