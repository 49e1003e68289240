"""`SendMail` in a processor, through a real server: what is sent, what is tried again, and what never is."""

from __future__ import annotations

import email
import email.policy
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from iocflow.activities import (
    Delivery,
    DeliveryError,
    DeliveryOutcome,
    HeaderError,
    Letter,
    MailError,
    Recipient,
    SendMail,
    SmtpConnectionError,
    SmtpSender,
    SmtpTemporaryError,
)
from iocflow.activity import activity
from iocflow.context import ProcessContext
from iocflow.error_handling import OnError, RetryingErrorHandler
from iocflow.run import Outcome, Run
from iocflow.sequence import SequenceProcessor

Start = Callable[..., Any]


class Mailing(ProcessContext):
    seed_data: list[str]
    recipients: list[Any]
    subject: str = "News"
    message: str = "<p>Hello</p>"
    deliveries: list[Delivery]


class Noted(SendMail):
    """Notes what it is told."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.told: list[tuple[str, str, bool]] = []

    def settled(self, context: Any, delivery: Delivery, *, again: bool) -> None:
        self.told.append((delivery.address, delivery.outcome.value, again))


def address(context: Mailing) -> None:
    """Make recipients of the seed's addresses."""
    context.recipients = [Recipient(each, "O'Neil, Müller") for each in context.seed_data]


def mail(send: SendMail, *addresses: str, attempts: int = 3) -> Run[Mailing]:
    """Run the activity for some addresses, with a handler that tries again what can be."""
    retry = OnError([ConnectionError, SmtpTemporaryError], RetryingErrorHandler(attempts=attempts))
    steps = [address, activity(send, on_error=retry)]
    processor = SequenceProcessor(steps, context=Mailing, name="mailing", on_error=RetryingErrorHandler(attempts=1))
    return processor.launch(list(addresses))


def outcomes(run: Run[Mailing]) -> list[tuple[str, str]]:
    """Return what became of each recipient."""
    return [(delivery.address, delivery.outcome.value) for delivery in run.context.deliveries]


A, B, C = "a@example.com", "b@example.com", "c@example.com"


def test_everybody_gets_a_letter_of_their_own(mail_server: Start) -> None:
    """Each recipient gets one message that names nobody else, with an id of its own; one address twice gets one."""
    server = mail_server()
    run = mail(Noted(SmtpSender("127.0.0.1", server.port), "fares@example.com"), A, B, A)
    assert run.raise_for_error().outcome is Outcome.COMPLETED
    assert outcomes(run) == [(A, "sent"), (B, "sent")]
    assert [recipients for recipients, _ in server.mail] == [[A], [B]]
    for (recipients, raw), other in zip(server.mail, (B, A), strict=True):
        assert recipients[0].encode() in raw
        assert other.encode() not in raw
    assert len({email.message_from_bytes(raw)["Message-ID"] for _, raw in server.mail}) == 2


def test_only_those_who_were_put_off_are_tried_again(mail_server: Start) -> None:
    """A 4xx is tried again for that recipient alone, under the same Message-ID, until it is sent."""
    server = mail_server()
    server.replies[B] = ["450 busy", "451 still busy"]
    run = mail(Noted(SmtpSender("127.0.0.1", server.port), "fares@example.com"), A, B, C)
    assert run.raise_for_error().steps[1].attempts == 3
    assert server.addresses() == [A, C, B]
    assert server.seen == [A, B, C, B, B]
    assert outcomes(run) == [(A, "sent"), (B, "sent"), (C, "sent")]


def test_a_refusal_is_final_and_no_success(mail_server: Start) -> None:
    """A 5xx is not tried again; the others are mailed; the run fails with every recipient's outcome."""
    server = mail_server()
    server.replies[B] = ["550 no such user"]
    run = mail(Noted(SmtpSender("127.0.0.1", server.port), "fares@example.com"), A, B, C)
    assert (run.outcome, run.steps[1].attempts) == (Outcome.FAILED, 1)
    assert server.addresses() == [A, C]
    assert outcomes(run) == [(A, "sent"), (B, "refused"), (C, "sent")]
    assert isinstance(run.error, DeliveryError)
    assert str(run.error) == "noted: 2 sent, 1 refused. b@example.com refused: 550 no such user"
    assert len(run.error.deliveries) == 3


def test_refused_and_put_off_together(mail_server: Start) -> None:
    """One refused and another put off: the second is tried again, and the run fails for the first in the end."""
    server = mail_server()
    server.replies[A], server.replies[B] = ["550 no"], ["450 later"]
    run = mail(Noted(SmtpSender("127.0.0.1", server.port), "fares@example.com"), A, B)
    assert outcomes(run) == [(A, "refused"), (B, "sent")]
    assert server.seen == [A, B, B]
    assert type(run.error) is DeliveryError


def test_patience_ends(mail_server: Start) -> None:
    """A recipient who is put off to the end leaves the run FAILED, as deferred."""
    server = mail_server()
    server.replies[A] = ["450 later"] * 9
    run = mail(Noted(SmtpSender("127.0.0.1", server.port), "fares@example.com"), A, B)
    assert (run.outcome, run.steps[1].attempts) == (Outcome.FAILED, 3)
    assert outcomes(run) == [(A, "deferred"), (B, "sent")]
    assert server.addresses() == [B]


def test_an_uncertain_mail_is_never_sent_again(rude_server: Start) -> None:
    """A connection lost after the text is uncertain: the rest goes out, the run fails, nothing comes twice."""
    server = rude_server(TEXT=["250 taken", "DROP"])
    run = mail(Noted(SmtpSender("127.0.0.1", server.port), "fares@example.com"), A, B, C)
    assert outcomes(run) == [(A, "sent"), (B, "uncertain"), (C, "sent")]
    assert (type(run.error), run.steps[1].attempts, len(server.texts)) == (DeliveryError, 1, 3)


def test_a_lost_connection_is_tried_again_for_the_rest(rude_server: Start) -> None:
    """A server that goes away in the middle gets, once it is back, only what it had not taken."""
    server = rude_server(MAIL=["250 OK", "DROP", "DROP"])
    send = Noted(SmtpSender("127.0.0.1", server.port), "fares@example.com")
    run = mail(send, A, B, C)
    assert run.raise_for_error().steps[1].attempts == 2
    assert len(server.texts) == 3
    assert send.told == [(A, "sent", False), (A, "sent", True), (B, "sent", False), (C, "sent", False)]


def test_no_server_at_all() -> None:
    """Without a server the run fails with a ConnectionError after all attempts, and nobody has an outcome."""
    run = mail(Noted(SmtpSender("127.0.0.1", 1), "fares@example.com"), A)
    assert isinstance(run.error, SmtpConnectionError)
    assert (run.steps[1].attempts, outcomes(run)) == (3, [])


def test_a_bad_recipient_is_refused_alone(mail_server: Start) -> None:
    """An address with a line break and one that is none are refused before any mail; the others get theirs."""
    server = mail_server()
    send = Noted(SmtpSender("127.0.0.1", server.port), "fares@example.com")
    run = mail(send, "a@example.com\r\nBcc: x@example.com", "nobody", B)
    assert server.addresses() == [B]
    assert [outcome for _, outcome in outcomes(run)] == ["refused", "refused", "sent"]
    assert [outcome for _, outcome, _ in send.told] == ["refused", "refused", "sent"]
    assert "line break" in str(run.error)


def test_a_bad_subject_is_refused_for_all(mail_server: Start) -> None:
    """A subject with a line break is refused for everybody, and no connection is made."""
    server = mail_server()
    send = Noted(SmtpSender("127.0.0.1", server.port), "fares@example.com")
    context = Mailing()
    context.recipients, context.subject = [A, B], "News\nBcc: x@example.com"
    with pytest.raises(DeliveryError, match=r"refused: the subject holds a line break at position 5"):
        send.execute(context)
    assert (server.sessions, [each.outcome.value for each in context.deliveries]) == (0, ["refused", "refused"])


def test_addresses_cannot_forge_lines(mail_server: Start) -> None:
    """An address with a line break is escaped wherever it is told: in the error and in the delivery's own text."""
    context = Mailing()
    context.recipients = [f"{A}\nroot: all is well", "\x1b[31m" + "a" * 1000]
    with pytest.raises(DeliveryError) as raised:
        SendMail(SmtpSender("127.0.0.1", mail_server().port), "fares@example.com").execute(context)
    for text in (str(raised.value), *map(str, context.deliveries)):
        assert text.isprintable()
        assert len(text) < 1500
    assert str(context.deliveries[0]).startswith(
        f"refused '{A}\\nroot: all is well' the address of the recipient holds"
    )


def test_what_a_recipient_may_be(mail_server: Start) -> None:
    """Recipients may be addresses, or anything with an address and perhaps a name; other things are refused."""

    class Customer:
        address = B

    server = mail_server()
    send = SendMail(SmtpSender("127.0.0.1", server.port), Recipient("fares@example.com", "Fares"))
    context = Mailing()
    context.recipients = [A, Customer(), Recipient("x@müller.example", "王")]
    send.execute(context)
    assert server.addresses() == [A, B, "x@xn--mller-kva.example"]
    assert context.deliveries[2].address == "x@müller.example"
    context.recipients = [3]
    with pytest.raises(MailError, match=r"recipients holds a int; hand over Recipient\(address, name\)"):
        send.execute(context)


def test_the_memo_is_plain_data_and_is_written_at_once(mail_server: Start) -> None:
    """What is done stands in the step's memo as JSON-able data, before the next recipient is mailed."""
    server = mail_server()
    context = Mailing()
    context.recipients = [A, B]
    seen: list[list[str]] = []

    class Watching(SendMail):
        def settled(self, context: Any, delivery: Delivery, *, again: bool) -> None:
            seen.append([key for key in context.step.memo if key.startswith("to:")])

    Watching(SmtpSender("127.0.0.1", server.port), "fares@example.com").execute(context)
    assert seen == [[f"to:{A}"], [f"to:{A}", f"to:{B}"]]
    assert json.loads(json.dumps(context.step.memo)) == context.step.memo


def test_a_hook_that_fails_sends_nothing_twice(mail_server: Start) -> None:
    """When recording an outcome fails, the next attempt tells it again and mails only the rest."""
    server = mail_server()

    class Failing(Noted):
        def settled(self, context: Any, delivery: Delivery, *, again: bool) -> None:
            super().settled(context, delivery, again=again)
            if len(self.told) == 1:
                raise ConnectionError("the audit is not there")

    send = Failing(SmtpSender("127.0.0.1", server.port), "fares@example.com")
    mail(send, A, B).raise_for_error()
    assert server.addresses() == [A, B]
    assert send.told == [(A, "sent", False), (A, "sent", True), (B, "sent", False)]


class Vague:
    """A delegate that does not keep to its contract."""

    def __init__(self, *told: str) -> None:
        self.told = told

    def send(self, letters: Sequence[Letter], *, remaining: Any) -> Iterator[Delivery]:
        return (Delivery(each, DeliveryOutcome.SENT) for each in self.told)


def test_a_delegate_must_tell_of_every_letter() -> None:
    """A delegate that leaves a letter out, or tells of another one, is an error and no success."""
    for told, said in (((A,), f"did not say what became of {B}"), ((B,), f"told of {B} instead of {A}")):
        context = Mailing()
        context.recipients = [A, B]
        with pytest.raises(MailError, match=said):
            SendMail(Vague(*told), "fares@example.com").execute(context)


def test_nobody_to_mail_to() -> None:
    """Without recipients nothing is connected to, and the activity is done."""
    context = Mailing()
    context.recipients = []
    SendMail(SmtpSender("127.0.0.1", 1), "fares@example.com").execute(context)
    assert context.deliveries == []


def test_wiring_mistakes_are_found_at_once() -> None:
    """A sender that is no address, a path that is none, and a mail without a body are refused at construction."""
    sender = SmtpSender("127.0.0.1", 25)
    for options in ({"sender": "fares"}, {"sender": "f@example.com", "reply_to": "a\nb@example.com"}):
        with pytest.raises(HeaderError):
            SendMail(sender, **options)
    for options in ({"html": ""}, {"subject": "no path"}):
        with pytest.raises(ValueError, match=r"no body|no path"):
            SendMail(sender, "fares@example.com", **options)


def test_text_and_html_and_reply_to(mail_server: Start, tmp_path: Path) -> None:
    """The named fields become the two parts, and answers go where they should."""
    server = mail_server()
    context = Mailing()
    context.recipients = [A]
    SendMail(SmtpSender("127.0.0.1", server.port), "f@example.com", text="subject", reply_to="r@example.com").execute(
        context
    )
    message = email.message_from_bytes(server.mail[0][1], policy=email.policy.default)
    assert [part.get_content().strip() for part in message.iter_parts()] == ["News", "<p>Hello</p>"]
    assert message["Reply-To"] == "r@example.com"
