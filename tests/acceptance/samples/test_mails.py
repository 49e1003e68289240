"""The notifier started by a mail, by changing nothing but the file."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path

import pytest

from tests.mail_servers import Pop3Server

from .conftest import ended, until

FILE = "config/fare_drop_mails.yaml"


def test_a_mail_starts_a_run(
    clone: Path,
    serve: Callable[..., subprocess.Popen[str]],
    shell: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sample's event as an attachment mails everybody, and is deleted; a mail without one is a dead letter."""
    server = Pop3Server()
    letter = EmailMessage()
    letter["From"], letter["Message-ID"] = "airline@example.com", "<117@example.com>"
    letter.set_content("The fare was lowered, see the attachment.")
    event = (clone / "samples" / "fare_drop" / "event.json").read_bytes()
    letter.add_attachment(event, "application", "json", filename="event.json")
    server.mails |= {"1": letter.as_bytes(policy=SMTP), "2": b"From: jo@example.com\r\n\r\nhello\r\n"}
    try:
        shell("iocflow run config/fare_drop.yaml fare-drop-polled --profile test")  # there is nothing to be polled then
        monkeypatch.setenv("MAILBOX_PASSWORD", "se%3Acret")
        options = ("--set", f"mailbox.host=127.0.0.1:{server.port}", "--set", "mailbox.user=jo%40example.com")
        daemon = serve(*options, file=FILE)
        until(lambda: len(list((clone / "var" / "mail").glob("*.eml"))) == 32 and not server.mails)
        ended(daemon)
        done = shell(f"iocflow events list {FILE} fare-mails {' '.join(options)}")
        assert "1 dead letter\n" in done.stdout  # type: ignore[attr-defined]
    finally:
        server.stop()
