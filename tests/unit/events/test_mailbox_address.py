"""Addresses of mailboxes: their parts, every mistake told, and no password in anything that is shown."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from iocflow.container import check
from iocflow.events.address import Address, AddressError
from iocflow.events.mailbox_address import MailboxOptions
from iocflow.events.section import source_at
from iocflow.launch.errors import LauncherError

JO = "jo%40example.com:se%3Acret"


def of(written: str) -> MailboxOptions:
    return MailboxOptions.of(Address.parse(written))


def test_all_parts() -> None:
    """The options are read, and the name has neither password nor options."""
    found = of(
        f"imap://{JO}@mail.example:1143/Fares?every=30s&seed=json&done=Done&limit=1MB&timeout=5s&dead=lost&ca=ca.pem"
    )
    assert (found.user, found.password, found.host, found.port) == ("jo@example.com", "se:cret", "mail.example", 1143)
    assert (found.folder, found.done, found.seed, found.dead, found.ca) == (
        "Fares",
        "Done",
        "json",
        Path("lost"),
        "ca.pem",
    )
    assert (found.every, found.timeout, found.limit) == (timedelta(seconds=30), timedelta(seconds=5), 1_000_000)
    assert found.name == "imap://jo%40example.com@mail.example:1143/Fares"


@pytest.mark.parametrize(
    ("scheme", "host", "port", "tls"),
    [
        ("pop3", "mail.example", 110, "start"),
        ("pop3", "127.0.0.1", 110, "none"),
        ("imap", "[::1]", 143, "none"),
        ("imap", "localhost.example", 143, "start"),
        ("pop3s", "mail.example", 995, ""),
        ("imaps", "127.0.0.1", 993, ""),
    ],
)
def test_what_is_left_out(scheme: str, host: str, port: int, tls: str) -> None:
    """The ports are the protocols' own, and no password leaves this machine in clear unasked."""
    found = of(f"{scheme}://{JO}@{host}")
    assert (found.port, found.tls, found.folder) == (port, tls, "INBOX" if found.imap else "")
    assert of(f"{scheme}://{JO}@{host}").every == timedelta(seconds=60)


def test_one_mailbox_however_it_is_written() -> None:
    """TLS, the default port, the password and options make no other source; another folder does."""
    written = (f"imap://{JO}@h", "imaps://jo%40example.com:other@h:993/INBOX?every=5s")
    assert len({source_at(one).identity for one in written}) == 1
    assert source_at(f"imap://{JO}@h/Other").identity != source_at(written[0]).identity


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("pop3://h", "names no user and password; write pop3://USER:${secret:NAME}@HOST"),
        ("imaps://jo@h/INBOX", "names no user and password; write imaps://USER:${secret:NAME}@HOST/INBOX"),
        ("imaps:jo:x@h", "names no host and port"),
        ("pop3s://jo:x@h:port", "names no host and port"),
        ("imap://jo:a/b?c@h", "percent-encoded"),
        ("imap://jo:a#b@h", "percent-encoded"),
        ("pop3://jo:x@h/INBOX", "a mailbox of POP3 has no folders"),
        ("pop3://jo:x@h?done=Done", "has no option `done`"),
        ("imaps://jo:x@h?tls=none", "has no option `tls`"),
        ("imap://jo:x@h?evry=5s", "did you mean `every`?"),
        ("imap://jo:x@h?seed=jsn", "did you mean `json`?"),
        ("imap://jo:x@h?tls=starttls", "tls=starttls is no choice"),
        ("imap://jo:x@h?every=10ms", "every=10ms is out of bounds"),
        ("imap://jo:x@h?limit=big", "limit=big is no size"),
        ("imap://jo:x@h?done=INBOX", "is the folder that is read"),
        ("imap://jo:x@h?done=Entw%C3%BCrfe", "modified UTF-7"),
        ("imap://jo:x@h?tls=none&ca=ca.pem", "tls=none trusts anybody"),
        ("imap://jo:a%0Ab@h", "control character"),
    ],
)
def test_mistakes(written: str, told: str) -> None:
    """Each is refused before anything is connected, with what to write instead."""
    with pytest.raises(LauncherError) as caught:
        source_at(written)
    assert told in str(caught.value)


def test_all_mistakes_at_once() -> None:
    """Whatever is wrong with the options is told in one go."""
    with pytest.raises(AddressError) as caught:
        source_at("imap://jo:x@h?colour=red&seed=text&every=0s")
    assert len(caught.value.reasons) == 3


def test_check_tells_the_place(tmp_path: Path) -> None:
    """`check` names file, line and column of a wrong option, and shows no password."""
    file = tmp_path / "app.yaml"
    file.write_text(
        "iocflow: 1\nprocessors: {p: {context: iocflow.ProcessContext, sequence: []}}\n"
        'launchers:\n  x: {processor: p, source: "imaps://jo:hunter2hunter2@h?seeds=json"}\n',
        encoding="utf-8",
    )
    (found,) = [told for told in map(str, check(file).mistakes) if "seeds" in told]
    assert "app.yaml:4:" in found
    assert "did you mean `seed`?" in found
    assert "hunter2" not in found
