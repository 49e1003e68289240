"""Every mail is one run and is removed after it, whatever is cut in between: POP3 and IMAP."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from iocflow.launch.errors import LockedError
from tests.integration.events.conftest import Bench, eventually
from tests.integration.events.mailbox.conftest import WHY, ImapMailbox, Mailbox, Pop3Mailbox, Sources, dead, mail, one


@pytest.mark.usefixtures("started")
def test_every_mail_is_a_run_and_is_deleted(mailbox: Mailbox, bench: Bench) -> None:
    """What lies there and what comes later is run once each, in order as far as threads are free, and deleted."""
    mailbox.put(*map(mail, range(5)))
    eventually(lambda: not mailbox.mails())
    mailbox.put(mail(5))
    eventually(lambda: not mailbox.mails())
    bench.finish()
    assert sorted(bench.begun) == list(range(6))
    assert "#<0@example.com>/" in bench.keys[0]


def test_not_before_the_run_has_ended(mailbox: Mailbox, bench: Bench, sources: Sources) -> None:
    """A mail whose run goes on lies there, also when the mailbox is looked at again, and is not run twice."""
    bench.go.clear()
    bench.start(sources(mailbox.address))
    mailbox.put(mail(1))
    eventually(lambda: bench.begun == [1])
    mailbox.put(mail(2))
    eventually(lambda: sorted(bench.begun) == [1, 2])
    assert len(mailbox.mails()) == 2
    bench.go.set()
    eventually(lambda: not mailbox.mails())
    bench.finish()
    assert sorted(bench.begun) == [1, 2]


@pytest.mark.parametrize("where", ["login", "listing", "fetching", "removing", "removed"])
def test_a_connection_that_is_cut(
    mailbox: Mailbox, bench: Bench, sources: Sources, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is cut, every mail is run exactly once, and all are deleted in the end."""
    monkeypatch.setattr("iocflow.events.launcher.PAUSES", (0.01,))
    mailbox.put(*map(mail, range(3)))
    mailbox.trap(where)
    mailbox.trap(where)
    source = sources(mailbox.address)
    bench.start(source)
    eventually(lambda: not mailbox.mails())
    bench.finish()
    assert bench.times() == {0: 1, 1: 1, 2: 1}
    assert bench.counts()["errors"] >= 1
    assert dead(source) == []


BAD = {
    "no JSON": (mail("x", "{no json"), "not JSON"),
    "no mail": (b"\r\nnothing\r\n", "no headers"),
    "not UTF-8": (mail("x", '"Z"').replace(b'"Z"', b'"\xff\xfe"'), "not utf-8 at byte"),
    "no data": (mail("x", "null"), "no data"),
    "a failing run": (mail("bad"), "bad it is"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_mail_that_cannot_be_dealt_with(pop3: Pop3Mailbox, bench: Bench, sources: Sources, kind: str) -> None:
    """It is kept byte for byte with the reason, and out of the way of the next."""
    raw, reason = BAD[kind]
    put_aside(pop3, bench, sources, raw, reason)


def test_a_poisonous_mail_by_imap(imap: ImapMailbox, bench: Bench, sources: Sources) -> None:
    """The same holds for the other protocol."""
    put_aside(imap, bench, sources, *BAD["no JSON"])


def put_aside(mailbox: Mailbox, bench: Bench, sources: Sources, raw: bytes, reason: str) -> None:
    """Have a bad mail dealt with, and one behind it."""
    mailbox.put(raw, mail(2))
    source = sources(mailbox.address)
    bench.start(source)
    eventually(lambda: not mailbox.mails())
    bench.finish()
    ((body, told),) = dead(source)
    assert (body, 2 in bench.seen) == (raw, True)
    assert reason in told


def test_a_mail_that_is_too_large(mailbox: Mailbox, sources: Sources) -> None:
    """It is no event, and is kept whole all the same."""
    raw = mail(1, json.dumps("x" * 3000))
    mailbox.put(raw)
    source = sources(mailbox.address, limit=2000)
    source.open()
    delivery = one(source)
    assert "more than the 2,000 that are allowed" in delivery.refusal
    source.dead_letter(delivery, WHY)
    source.close()
    assert (dead(source), mailbox.mails()) == ([(raw, "because")], [])


def test_lines_longer_than_the_library_reads(mailbox: Mailbox, sources: Sources) -> None:
    """A mail of one long line, and one with lines of dots, are read as they are."""
    mailbox.put(mail(1, json.dumps("x" * 200_000)), mail(2, '["a",\r\n.\r\n..\r\n"b"]'.replace(".\r\n", "")))
    source = sources(mailbox.address)
    source.open()
    first = one(source)
    assert first.event is not None
    assert first.event.data == "x" * 200_000


def test_lines_of_dots(pop3: Pop3Mailbox, sources: Sources) -> None:
    """What POP3 doubles and ends with is told from what the mail says."""
    raw = b"Subject: dots\r\n\r\n.\r\n..\r\n.a\r\n"
    pop3.put(raw)
    source = sources(pop3.address)
    source.open()
    event = one(source).event
    assert event is not None
    assert isinstance(event.data, dict)
    assert event.data["text"] == ".\n..\n.a\n"


def test_dead_letters_are_brought_again(mailbox: Mailbox, sources: Sources) -> None:
    """A replayed one comes with its own id, once, and is gone when it is settled; failing again it is a dead letter."""
    mailbox.put(mail(1))
    source = sources(mailbox.address)
    source.open()
    source.dead_letter(one(source), WHY)
    (letter,) = source.dead_letters()
    assert source.replay([letter.id, "unknown"]) == [letter.id]
    again = one(source)
    assert again.event is not None
    assert (again.event.id, again.event.data, list(source.dead_letters())) == ("<1@example.com>", 1, [])
    assert source.receive(1, 0.0) == ()
    source.dead_letter(again, replace(WHY, reason="once more"))
    assert dead(source) == [(mail(1), "once more")]
    source.replay([letter.id])
    source.acknowledge(one(source))
    assert (dead(source), source.receive(1, 0.0)) == ([], ())


def test_given_back(mailbox: Mailbox, sources: Sources) -> None:
    """A mail that was not dealt with stays, and is brought again."""
    mailbox.put(mail(1))
    source = sources(mailbox.address)
    source.open()
    source.give_back(one(source))
    again = one(source)
    assert again.event is not None
    assert (again.event.data, len(mailbox.mails())) == (1, 1)


def test_one_daemon_of_a_machine(mailbox: Mailbox, sources: Sources) -> None:
    """A second source on the mailbox is kept out while the first one has it."""
    first, second = sources(mailbox.address), sources(mailbox.address)
    first.reserve()
    with pytest.raises(LockedError):
        second.reserve()
    first.close()
    second.open()


@pytest.mark.usefixtures("started")
def test_sessions_are_short(mailbox: Mailbox, bench: Bench) -> None:
    """Nobody stays logged in between two looks: what goes away then is not missed."""
    before = mailbox.logins()
    eventually(lambda: mailbox.logins() > before + 2)
    assert "errors" not in bench.counts()
