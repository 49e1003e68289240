"""The sample's own mail server, its sender, and the people it mails to."""

from __future__ import annotations

import email
import email.policy
import sys
from pathlib import Path

import pytest

from iocflow.activities import Draft, LibraryMissingError, MailError, Recipient, SmtpSender
from samples.fare_drop import SendMessage
from samples.fare_drop import SmtpSender as SampleSender
from samples.fare_drop.local_mail import LocalMail
from samples.fare_drop.people import subscribers

DRAFT = Draft(Recipient("fares@example.com"), "News", "Hello")


def forever() -> None:
    """Say that there is no time limit."""
    return


def test_messages_become_files_of_their_own(tmp_path: Path) -> None:
    """Each message lies in a file of its own, whatever its address, and none lies outside the folder."""
    server = LocalMail(tmp_path / "new" / "mail")
    server.start()
    addresses = ["a@example.com", "a@example.com", "/etc/a/b@example.com", "用户@example.com"]
    letters = [DRAFT.letter_to(Recipient(address), f"run-{number}") for number, address in enumerate(addresses)]
    sender = SmtpSender(server.host, server.port)
    assert [delivery.outcome.value for delivery in sender.send(letters, remaining=forever)] == ["sent"] * 4
    server.stop()
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert {file.parent for file in files} == {tmp_path / "new" / "mail"}
    assert [file.suffix for file in files] == [".eml"] * 4
    read = [email.message_from_bytes(file.read_bytes(), policy=email.policy.default) for file in files]
    assert [message["To"] for message in read] == addresses


def test_it_can_be_stopped_at_any_time(tmp_path: Path) -> None:
    """Stopping a server that never started, or twice, does nothing; it can be started again."""
    server = LocalMail(tmp_path)
    server.stop()
    for _ in range(2):
        server.start()
        assert server.port
        server.stop()
        server.stop()
        assert not server.port


def test_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without aiosmtpd the local server says what to install, or to name a real server."""
    monkeypatch.setitem(sys.modules, "aiosmtpd.smtp", None)
    with pytest.raises(LibraryMissingError, match=r"install iocflow\[samples\], or name a server: --set smtp\.host="):
        SampleSender("local", folder=str(tmp_path)).connect()


def test_local_must_be_started(tmp_path: Path) -> None:
    """A sender for the local server that was not started sends nothing, to nobody."""
    sender = SampleSender("local", folder=str(tmp_path))
    with pytest.raises(MailError, match="the local server is not started"):
        list(sender.send([DRAFT.letter_to(Recipient("a@example.com"), "run")], remaining=forever))


def test_everybody_is_told_of_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A daemon mails to the same people again: the summary names each of them once, and the number of mails."""
    sender = SampleSender("local", folder=str(tmp_path))
    sender.connect()
    for run in ("first", "second"):
        assert len(list(sender.send([DRAFT.letter_to(Recipient("a@example.com", "Ann"), run)], remaining=forever))) == 1
    list(sender.send([DRAFT.letter_to(Recipient("b@example.com"), "first")], remaining=forever))
    sender.disconnect()
    told = f"2 notified by 3 mails; the messages lie in {tmp_path}:\n  Ann <a@example.com>\n  b@example.com\n"
    assert capsys.readouterr().out == told


def test_what_the_sample_would_refuse_is_known_while_its_file_is_checked() -> None:
    """The settings of a server are checked unless it is the local one, and so is the sender's address."""
    settings = {"host": "local", "port": 99999, "headers": {"To": "x"}}
    assert [name for name, _ in SampleSender.check_arguments(settings)] == ["headers"]
    assert [name for name, _ in SampleSender.check_arguments({**settings, "host": "h"})] == ["port", "headers"]
    assert [name for name, _ in SendMessage.check_arguments({"sender": "nobody"})] == ["sender"]


def test_everybody_can_be_mailed_to() -> None:
    """The 1,200 subscribers are the same each time, have an address of their own, and a name that mail can carry."""
    people = list(subscribers())
    assert people == list(subscribers())
    assert len({person.address for person in people}) == len(people) == 1200
    for person in (*people[:20], *people[20::4]):
        DRAFT.letter_to(Recipient(person.address, person.name), "run")
    everything = "".join(person.name for person in people)
    for piece in ("Müller, Jörg", "O'Neil", "王小明", "محمد", "דוד"):
        assert piece in everything
    assert max(len(person.name) for person in people) > 150
