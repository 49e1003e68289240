"""The fare-drop notifier from the outside: one run, a poll, an event, a real server, and bad input."""

from __future__ import annotations

import asyncio
import email
import email.policy
import json
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP

from tests.web import ask, free_port, listens

from .conftest import ended, until

RUN = "iocflow run config/fare_drop.yaml"
SEED = "--seed @samples/fare_drop/seed.json"
NAMES = ["build-recipients", "construct-document", "apply-xslt", "write-audit", "send-message"]

NO_FARES = ["abc", "NaN", "Infinity", "-5", "-0.5", "0", "0.00", "1e3", "99.999", "1_000", "99,99", "1000000", "٣"]

Shell = Callable[..., "subprocess.CompletedProcess[str]"]
Serve = Callable[..., "subprocess.Popen[str]"]


def messages(clone: Path) -> list[EmailMessage]:
    """Return the messages that lie in the clone."""
    folder = clone / "var" / "mail"
    files = sorted(folder.glob("*.eml")) if folder.exists() else []
    return [email.message_from_bytes(file.read_bytes(), policy=email.policy.default) for file in files]


def audit(clone: Path) -> list[tuple[str, str]]:
    """Return recipient and status of all audit rows."""
    with closing(sqlite3.connect(clone / "var" / "fares.db")) as connection:
        return connection.execute("SELECT recipient, status FROM audit").fetchall()


def result(done: subprocess.CompletedProcess[str]) -> tuple[str, list[str]]:
    """Return the outcome and the trail of a run that printed JSON."""
    run = json.loads(done.stdout)
    return run["outcome"], [step["activity"] for step in run["steps"]]


class Relay:
    """A real mail server, for the length of a test."""

    def __init__(self) -> None:
        self.taken: list[tuple[list[str], bytes]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        listening = self._loop.create_server(
            lambda: SMTP(self, loop=self._loop, hostname="localhost", enable_SMTPUTF8=False), "127.0.0.1", 0
        )
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result(10)
        self.port = self._server.sockets[0].getsockname()[1]

    async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:  # noqa: N802
        self.taken.append((envelope.rcpt_tos, envelope.original_content))
        return "250 OK"

    def stop(self) -> None:
        async def wind_up() -> None:
            self._server.close()
            await self._server.wait_closed()

        asyncio.run_coroutine_threadsafe(wind_up(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@pytest.fixture
def relay() -> Iterator[Relay]:
    """Return a running mail server that does not offer SMTPUTF8."""
    running = Relay()
    yield running
    running.stop()


def test_one_run(clone: Path, shell: Shell) -> None:
    """The command of the README mails everybody who asked, each alone, and says who and where the mail lies."""
    printed = shell(f"{RUN} fare-drop {SEED}").stdout
    sent = messages(clone)
    recipients = [str(message["To"].addresses[0].addr_spec) for message in sent]
    assert len(set(recipients)) == len(sent) > 15
    assert f"{len(sent)} notified; the messages lie in var/mail" in printed
    for name in ("Müller, Jörg", "Siobhán O'Neil", "王小明", "محمد بن عبد الله"):
        assert name in printed
    for name in NAMES:
        assert name in printed
    for message in sent:
        written, own = message.as_string(), message["To"].addresses[0].addr_spec
        assert [address for address in recipients if address in written] == [own]
        html = message.get_body(("html",))
        assert html is not None
        assert "X-Jet" in html.get_content()
    assert sorted(status for _, status in audit(clone)) == ["sent"] * len(sent)


def test_json_is_one_object(shell: Shell) -> None:
    """With --json the run is one object on standard output, whatever the sample itself prints."""
    assert result(shell(f"{RUN} fare-drop {SEED} --json")) == ("COMPLETED", NAMES)


def test_polled(clone: Path, shell: Shell) -> None:
    """The polled form mails the fare that fell once; the next poll finds nothing and mails nobody."""
    names = ["poll-fares", *(f"fare-drop/{name}" for name in NAMES), "fare-drop"]
    assert result(shell(f"{RUN} fare-drop-polled --json")) == ("COMPLETED", names)
    before = len(messages(clone))
    assert result(shell(f"{RUN} fare-drop-polled --json")) == ("STOPPED", ["poll-fares"])
    assert len(messages(clone)) == before


def test_a_fare_is_published_where_the_container_file_looks(clone: Path, shell: Shell) -> None:
    """`new_fare` uses the database that `FARES_DB` names, as the container file does, and makes no other."""
    shell("FARES_DB=var/other.db python -m samples.fare_drop.new_fare 117 99.99")
    assert [path.name for path in (clone / "var").glob("*.db")] == ["other.db"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        *((f"117 {fare}", f"argument fare: '{fare}' is no fare; write a price, as in 99.99") for fare in NO_FARES),
        ("117 -- -5e1", "'-5e1' is no fare"),
        ("117", "the following arguments are required: fare"),
        ("BWI 99.99", "argument route_id: invalid int value: 'BWI'"),
        ("9 99.99", "no airline flies route 9; there are 117, 118, "),
        ("99999999999999999999 99.99", "int too large"),
        ("117 99.99 --database samples", "samples: this is a folder; name a file in it"),
    ],
)
def test_what_is_no_fare_is_not_published(clone: Path, shell: Shell, given: str, told: str) -> None:
    """It is told in one line, the program ends with exit code 2, and the fares are as they were."""
    shell("python -m samples.fare_drop.new_fare 118 100")
    done = shell(f"python -m samples.fare_drop.new_fare {given}", status=2)
    assert told in done.stderr.splitlines()[-1]
    assert (done.stdout, "Traceback" in done.stderr) == ("", False)
    with closing(sqlite3.connect(clone / "var" / "fares.db")) as connection:
        assert connection.execute("SELECT count(*), max(cents) FROM fares WHERE route_id = 118").fetchone() == (
            2,
            15149,
        )
        assert connection.execute("SELECT count(*) FROM fares").fetchone() == (9,)


@pytest.mark.parametrize("profile", [(), ("--profile", "poll-many")], ids=["activity", "bean"])
def test_the_daemon_polls(clone: Path, serve: Serve, profile: tuple[str, ...]) -> None:
    """The daemon finds the fare that fell, in both forms of polling, mails everybody once, and ends when told to."""
    daemon = serve(*profile)
    until(lambda: len(messages(clone)) >= 32)
    printed = ended(daemon)
    assert len(messages(clone)) == 32
    assert "32 notified" in printed


def test_an_event_starts_a_run(clone: Path, serve: Serve, shell: Shell) -> None:
    """An event file in the inbox mails everybody and is moved aside; one that is no JSON is kept with the reason."""
    shell(f"{RUN} fare-drop-polled --profile test")
    daemon = serve()
    inbox = clone / "var" / "inbox"
    until(inbox.exists)
    (inbox / "bad.json").write_text("{no json", encoding="utf-8")
    shutil.copy(clone / "samples" / "fare_drop" / "event.json", inbox / "event.part")
    (inbox / "event.part").rename(inbox / "event.json")
    until(lambda: (inbox / "done" / "event.json").exists() and (inbox / "failed" / "bad.json").exists())
    ended(daemon)
    assert len(messages(clone)) == 32


def test_a_post_starts_a_run(clone: Path, serve: Serve, shell: Shell) -> None:
    """Posted to the other file's launcher, the same event mails everybody before the answer comes."""
    shell(f"{RUN} fare-drop-polled --profile test")
    port = free_port()
    ports = ("--set", f"http.port={port}", "--set", f"http.health={free_port()}")
    daemon = serve(*ports, file="config/fare_drop_http.yaml")
    event = (clone / "samples" / "fare_drop" / "event.json").read_bytes()
    until(lambda: listens(port))
    answer = ask(port, "POST", "/fares", event, Content_Type="application/cloudevents+json")
    assert (answer.status, answer.json["outcome"]) == (200, "completed")
    assert len(messages(clone)) == 32
    assert ask(port, "POST", "/fares", {"airline_id": 1}).status == 400
    ended(daemon)


def test_a_real_server(clone: Path, shell: Shell, relay: Relay) -> None:
    """With another host and port that server gets the mail, one envelope a recipient, and nothing lies in files."""
    printed = shell(f"{RUN} fare-drop {SEED} --set smtp.host=127.0.0.1 --set smtp.port={relay.port}").stdout
    assert len(relay.taken) == 32
    assert {len(recipients) for recipients, _ in relay.taken} == {1}
    assert f"32 notified; 127.0.0.1:{relay.port} took the mail" in printed
    assert not (clone / "var" / "mail").exists()


def test_no_server_and_no_fallback(clone: Path, shell: Shell) -> None:
    """When the real server does not answer the send is tried five times, then the run has failed; no file is made."""
    line = f"{RUN} fare-drop {SEED} --json --set smtp.host=127.0.0.1 --set smtp.port=1 --set smtp.retry-after=1ms"
    run = json.loads(shell(line, status=1).stdout)
    assert (run["outcome"], run["steps"][-1]["attempts"]) == ("FAILED", 5)
    assert "cannot reach the mail server 127.0.0.1:1" in run["error"]
    assert not (clone / "var" / "mail").exists()
    assert {status for _, status in audit(clone)} == {"prepared"}


def test_a_line_break_in_the_airlines_name(clone: Path, shell: Shell) -> None:
    """A seed whose airline has a line break in its name mails nobody; the audit says refused."""
    seed = json.loads((clone / "samples" / "fare_drop" / "seed.json").read_text(encoding="utf-8"))
    seed["airline_name"] = "X-Jet\r\nBcc: everybody@example.com"
    (clone / "bad.json").write_text(json.dumps(seed), encoding="utf-8")
    run = json.loads(shell(f"{RUN} fare-drop --seed @bad.json --json", status=1).stdout)
    assert run["outcome"] == "FAILED"
    assert "the subject holds a line break" in run["error"]
    assert messages(clone) == []
    assert {status for _, status in audit(clone)} == {"refused"}


def test_nobody_asked(clone: Path, shell: Shell) -> None:
    """Without takers the sequence stops after its first activity, and the choice goes another way."""
    seed = json.loads((clone / "samples" / "fare_drop" / "seed.json").read_text(encoding="utf-8"))
    (clone / "none.json").write_text(json.dumps({**seed, "origin": "ZZZ"}), encoding="utf-8")
    assert result(shell(f"{RUN} fare-drop --seed @none.json --json")) == ("STOPPED", NAMES[:1])
    assert result(shell(f"{RUN} fare-drop-choice --seed @none.json --json")) == (
        "COMPLETED",
        ["build-recipients", "no-takers"],
    )
    assert messages(clone) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<xsl:template match='/'>", "fare_drop.xsl:"),
        ("<xsl:include href='/etc/passwd'/>", "must not read other files"),
    ],
    ids=["broken", "includes a file"],
)
def test_a_bad_stylesheet(clone: Path, shell: Shell, body: str, said: str) -> None:
    """A stylesheet that is broken or asks for files is refused when the file is loaded, and nothing runs."""
    head = '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">'
    (clone / "config" / "fare_drop.xsl").write_text(f"{head}{body}</xsl:stylesheet>", encoding="utf-8")
    done = shell(f"{RUN} fare-drop {SEED}; test $? -ne 0")
    assert said in done.stderr
    assert not (clone / "var" / "fares.db").exists()
