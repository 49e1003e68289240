"""One activity alone: `send-message` with a collaborator that pretends. No server, no file, no processor is needed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

import iocflow
from iocflow.activities import DeliveryError, DeliveryOutcome, Recipient, SmtpTemporaryError
from samples.fare_drop import FareDrop, FareDropContext, SendMessage, WriteAudit
from samples.fare_drop.fakes import FakeSender

CONFIG = Path(__file__).parents[3] / "config" / "fare_drop.yaml"

MUELLER = Recipient("joerg.mueller@example.com", "Müller, Jörg")
O_NEIL = Recipient("s.o'neil@example.net", "Siobhán O'Neil")


@pytest.fixture
def context() -> FareDropContext:
    """Return the context as it is when the first four activities are done."""
    context = FareDropContext()
    context.seed_data = FareDrop(12, "X-Jet", 117, "BWI", "LGA", Decimal("30.28"))
    context.recipients = [MUELLER, O_NEIL]
    context.subject, context.text, context.message = "Cheaper!", "It is cheaper.", "<p>It is cheaper.</p>"
    return context


def statuses(database: Path) -> list[tuple[str, str]]:
    """Return the audit rows: who, and how it stands."""
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("SELECT recipient, status FROM audit ORDER BY rowid").fetchall()


def test_each_recipient_gets_a_letter(context: FareDropContext) -> None:
    """Everybody gets a letter of their own, with the HTML and the plain text, that names nobody else."""
    sender = FakeSender()
    SendMessage(sender).execute(context)
    assert [letter.address for letter in sender.sent] == [MUELLER.address, O_NEIL.address]
    first = sender.sent[0].message
    assert first["To"].addresses[0].display_name == "Müller, Jörg"
    assert [part.get_content_type() for part in first.iter_parts()] == ["text/plain", "text/html"]
    assert O_NEIL.address not in first.as_string()


def test_a_refused_recipient_fails_the_activity(context: FareDropContext) -> None:
    """When one is refused the others get their mail, and the activity fails all the same."""
    sender = FakeSender(outcomes={MUELLER.address: DeliveryOutcome.REFUSED})
    with pytest.raises(DeliveryError, match=r"1 refused, 1 sent"):
        SendMessage(sender).execute(context)
    assert [letter.address for letter in sender.sent] == [O_NEIL.address]


def test_another_attempt_mails_only_the_rest(context: FareDropContext) -> None:
    """An attempt after the server put somebody off mails only that one."""
    sender = FakeSender(outcomes={MUELLER.address: DeliveryOutcome.DEFERRED})
    activity = SendMessage(sender)
    with pytest.raises(SmtpTemporaryError):
        activity.execute(context)
    sender.outcomes.clear()
    activity.execute(context)
    assert [letter.address for letter in sender.sent] == [O_NEIL.address, MUELLER.address]


def test_the_audit_tells_what_became_of_each(context: FareDropContext, tmp_path: Path) -> None:
    """write-audit notes everybody as prepared; send-message enters what became of them, but for those put off."""
    database = tmp_path / "fares.db"
    WriteAudit(str(database)).execute(context)
    assert statuses(database) == [(MUELLER.address, "prepared"), (O_NEIL.address, "prepared")]
    sender = FakeSender(outcomes={MUELLER.address: DeliveryOutcome.DEFERRED})
    activity = SendMessage(sender)
    with pytest.raises(SmtpTemporaryError):
        activity.execute(context)
    assert statuses(database) == [(MUELLER.address, "prepared"), (O_NEIL.address, "sent")]
    sender.outcomes[MUELLER.address] = DeliveryOutcome.UNCERTAIN
    with pytest.raises(DeliveryError):
        activity.execute(context)
    assert statuses(database) == [(MUELLER.address, "uncertain"), (O_NEIL.address, "sent")]


def test_a_line_break_in_the_airlines_name_mails_nobody(context: FareDropContext) -> None:
    """A subject that would become a second header is refused before anything is sent."""
    sender = FakeSender()
    context.subject = "X-\nBcc: somebody@example.com"
    with pytest.raises(DeliveryError, match=r"2 refused\. .* the subject holds a line break"):
        SendMessage(sender).execute(context)
    assert sender.sent == []


def test_the_wired_activity_with_a_fake_in_place_of_its_collaborator(context: FareDropContext) -> None:
    """The activity as the container file wires it, with a fake delegate: the real one is never built."""
    sender = FakeSender()
    with iocflow.load(CONFIG, override={"smtp-sender": sender}) as app:
        app.get("send-message", SendMessage).execute(context)
    assert [letter.sender for letter in sender.sent] == ["fares@example.com"] * 2
