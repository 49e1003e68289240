"""Sending mail as an activity."""

from __future__ import annotations

import dataclasses
import logging
import uuid
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from iocflow.activities.arguments import Rule, complaints, demanded, keep, path_rules
from iocflow.activities.errors import DeliveryError, LetterError, MailError, SmtpTemporaryError
from iocflow.activities.fields import read_field, read_items, write_field
from iocflow.activities.headers import mailbox, shown
from iocflow.activities.letter import Delivery, DeliveryOutcome, Draft, Letter, Recipient
from iocflow.activities.smtp import Sender
from iocflow.activity import Activity

__all__ = ["SendMail"]

logger = logging.getLogger("iocflow.mail")

_KEY = "key"
_SHOWN = 3  # recipients, and reasons, that an error names


class SendMail(Activity[Any]):
    """Mails a message to each of several recipients, to every one by a letter of their own.

    It works on any context that offers the fields it is told to read. All letters are made and checked before the first
    one is sent. What became of a recipient for good (sent, refused, uncertain) is kept in `context.step.memo` at once,
    so that another attempt of the step mails only those that the server had put off or that were not reached, and none
    twice. Unless all of them were sent, the activity fails.
    """

    def __init__(
        self,
        delegate: Sender,
        sender: str | Recipient,
        recipients: str = "recipients",
        subject: str = "subject",
        text: str = "",
        html: str = "message",
        reply_to: str = "",
        target: str = "deliveries",
    ) -> None:
        """Take the collaborator and the fields.

        Args:
            delegate: Sends the letters.
            sender: The address that the mail is from, or a `Recipient` for one with a name.
            recipients: The field with the recipients: `Recipient`s, what has `address` and `name`, or bare addresses.
            subject: The field with the subject.
            text: The field with the plain text; none unless given.
            html: The field with the HTML; empty for none. With `text`, that becomes its alternative.
            reply_to: The address that answers go to, if another.
            target: The field that gets the list of `Delivery`s, also when the activity fails.

        Raises:
            HeaderError: An address cannot stand in a mail.
            ValueError: A path is none, or the mail would have no body.
        """
        fields = {"recipients": recipients, "subject": subject, "text": text, "html": html, "target": target}
        keep(_rules({**fields, "sender": sender, "reply_to": reply_to}))
        self.delegate = delegate
        self.sender = sender if isinstance(sender, Recipient) else Recipient(sender)
        self.reply_to = Recipient(reply_to) if reply_to else None
        self.recipients = recipients
        self.subject = subject
        self.text = text
        self.html = html
        self.target = target

    @classmethod
    def check_arguments(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Yield what the constructor would refuse."""
        return complaints(_rules(arguments)) if cls.__init__ is SendMail.__init__ else ()

    def draft(self, context: Any) -> Draft:
        """Return the message without its recipient. Override it to make another one of the context."""
        return Draft(
            sender=self.sender,
            subject=read_field(context, self.subject, self.name),
            text=read_field(context, self.text, self.name) if self.text else "",
            html=read_field(context, self.html, self.name) if self.html else "",
            reply_to=self.reply_to,
        )

    def settled(self, context: Any, delivery: Delivery, *, again: bool) -> None:
        """Learn what became of a recipient, right after it happened. Override it to record that; this one does nothing.

        Args:
            context: The run's context.
            delivery: The outcome, a deferred one too.
            again: Whether it was told in an earlier attempt of the step, which may have ended before it was recorded.
        """

    def execute(self, context: Any) -> None:
        """Mail everybody who is not settled yet.

        Raises:
            SmtpTemporaryError: The server put some recipients off, or cannot be reached; another attempt mails those.
            DeliveryError: Some were refused for good, or their mail may or may not have been sent. Final.
            MailError: The mail cannot be sent at all.
        """
        recipients = list(self._recipients(context))
        outcomes: dict[str, Delivery] = {}
        try:
            self._send(context, self._letters(context, recipients, outcomes), outcomes)
        finally:
            told = [outcomes[each.address] for each in recipients if each.address in outcomes]
            write_field(context, self.target, told, self.name)
        self._judge(told)

    def _letters(
        self, context: Any, recipients: Iterable[Recipient], outcomes: dict[str, Delivery]
    ) -> dict[str, Letter]:
        """Return the letters to send, by the recipient's address; note the outcomes that stand already."""
        memo = context.step.memo
        if _KEY not in memo:
            memo[_KEY] = context.step.idempotency_key or uuid.uuid4().hex
        draft = self.draft(context)
        letters: dict[str, Letter] = {}
        for recipient in recipients:
            known = memo.get(f"to:{recipient.address}")
            if known is not None:
                delivery = Delivery(recipient.address, DeliveryOutcome(known[0]), known[1])
                outcomes[recipient.address] = delivery
                self.settled(context, delivery, again=True)
                continue
            try:
                letters[recipient.address] = draft.letter_to(recipient, memo[_KEY])
            except LetterError as error:
                self._settle(context, Delivery(recipient.address, DeliveryOutcome.REFUSED, str(error)), outcomes)
        return letters

    def _recipients(self, context: Any) -> Iterator[Recipient]:
        """Yield the recipients, each address once."""
        seen: set[str] = set()
        for entry in read_items(context, self.recipients, self.name):
            if isinstance(entry, str):
                recipient = Recipient(entry)
            elif isinstance(getattr(entry, "address", None), str):
                recipient = Recipient(entry.address, getattr(entry, "name", ""))
            else:
                kind = type(entry).__name__
                raise MailError(f"{self.name}: {self.recipients} holds a {kind}; hand over Recipient(address, name)")
            if recipient.address not in seen:
                seen.add(recipient.address)
                yield recipient

    def _send(self, context: Any, letters: Mapping[str, Letter], outcomes: dict[str, Delivery]) -> None:
        """Send the letters; note what became of each before the next one."""
        sending: Iterable[Delivery] = self.delegate.send(list(letters.values()), remaining=context.step.remaining)
        left = dict(letters)
        try:
            for (address, letter), delivery in zip(letters.items(), sending, strict=False):
                if delivery.address != letter.address:
                    raise MailError(
                        f"{self.name}: the delegate told of {shown(delivery.address)} instead of {letter.address}"
                    )
                del left[address]
                self._settle(context, dataclasses.replace(delivery, address=address), outcomes)
        finally:
            if isinstance(sending, Generator):
                sending.close()
        if left:
            raise MailError(f"{self.name}: the delegate did not say what became of {', '.join(map(shown, left))}")

    def _settle(self, context: Any, delivery: Delivery, outcomes: dict[str, Delivery]) -> None:
        outcomes[delivery.address] = delivery
        if delivery.final:
            context.step.memo[f"to:{delivery.address}"] = [delivery.outcome.value, delivery.detail]
        self.settled(context, delivery, again=False)

    def _judge(self, deliveries: list[Delivery]) -> None:
        """Raise unless everybody was sent their mail."""
        counts = Counter(delivery.outcome for delivery in deliveries)
        told = ", ".join(f"{count} {outcome.value}" for outcome, count in counts.items()) or "nobody to mail to"
        logger.info("%s: %s", self.name, told)
        missed = [delivery for delivery in deliveries if delivery.outcome is not DeliveryOutcome.SENT]
        if missed:
            kind = SmtpTemporaryError if counts[DeliveryOutcome.DEFERRED] else DeliveryError
            raise kind(f"{self.name}: {told}. {_reasons(missed)}", deliveries)


def _rules(given: Mapping[str, Any]) -> Iterator[Rule]:
    """Yield the rules about the arguments that are `given`."""
    if {"text", "html"} <= given.keys():
        why = "the mail would have no body; name the field of its text or its html"
        yield demanded("html", given["text"] or given["html"], why)
    for name in ("sender", "reply_to"):
        if name in given and (name == "sender" or given[name]):
            box = given[name] if isinstance(given[name], Recipient) else Recipient(given[name])
            yield name, partial(mailbox, box.address, box.name, name)
    yield from path_rules(given, "recipients", "subject", "target")
    yield from path_rules({name: path for name, path in given.items() if path}, "text", "html")


def _reasons(missed: list[Delivery]) -> str:
    """Return why some were not sent, each reason once, with the first of those it holds for."""
    whom: dict[str, list[str]] = {}
    for delivery in missed:
        whom.setdefault(f"{delivery.outcome.value}: {delivery.detail}", []).append(shown(delivery.address))
    return _some([f"{_some(addresses)} {reason}" for reason, addresses in whom.items()], "; ")


def _some(texts: list[str], separator: str = ", ") -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return separator.join(texts[:_SHOWN]) + more
