"""Dead letters of a broker: messages in a queue of their own, as they came, with a header that tells why."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from iocflow.events.broker_message import REPLAYED, Message
from iocflow.events.broker_options import BrokerOptions
from iocflow.events.source import DeadLetter, Reason

__all__ = ["buried", "dead_letters", "replay"]

RECORD = "x-iocflow-dead"
"""The header that tells of a dead letter, as JSON."""
REASON_MOST = 4000
"""Characters of the reason that are kept."""
HEADERS_MOST = 60_000
"""Characters of headers that are kept as such: AMQP sends all of them in one frame, of 128 KB with RabbitMQ."""
_NO_PROPERTIES = ("user_id", "expiration", "delivery_mode")
"""Properties that would have the broker refuse the letter, or throw it away after some time."""
_NO_HEADERS = ("cc", "bcc", "x-delivery-count")
"""Headers that would have the broker send copies elsewhere, and its own."""
_DIRECT_REPLY = "amq.rabbitmq.reply-to"


class Queues(Protocol):
    """What is wanted of a connection."""

    def look(self, queue: str) -> Message | None:
        """Take the next message of a queue into hand, None when there is none."""

    def send(self, queue: str, message: Message) -> None:
        """Put a message into a queue, durably; it is there when this returns."""

    def acknowledge(self, tag: Any) -> None:
        """Let the broker forget a message."""

    def requeue(self, tag: Any) -> None:
        """Let the broker bring a message again."""


def buried(message: Message, reason: Reason, arrived: datetime, queue: str) -> Message:
    """Return a message as a dead letter: body and headers as they came, and the record of what happened."""
    headers = {name: value for name, value in message.headers.items() if name.lower() not in _NO_HEADERS}
    properties = {name: value for name, value in message.properties.items() if name not in _NO_PROPERTIES}
    if str(properties.get("reply_to", "")).startswith(_DIRECT_REPLY):
        del properties["reply_to"]
    for name in sorted(headers, key=lambda name: len(repr(headers[name])), reverse=True):
        if len(repr(headers)) > HEADERS_MOST:
            del headers[name]
    withheld = {
        name: repr(value)[:REASON_MOST]
        for kept, came in ((headers, message.headers), (properties, message.properties))
        for name, value in came.items()
        if name not in kept
    }
    record = {
        "id": uuid.uuid4().hex[:12],
        "queue": queue,
        "arrived_at": arrived.isoformat(),
        "failed_at": datetime.now(UTC).isoformat(),
        "withheld": withheld,
        **reason.as_dict(),
        "reason": reason.reason[:REASON_MOST],
    }
    return Message(message.body, {**headers, RECORD: json.dumps(record)}, properties, None)


def dead_letters(queues: Queues, dead: str) -> Iterator[DeadLetter]:
    """Yield the messages of a queue of dead letters, the oldest first; all of them are in it again in the end."""
    with _Looking(queues, dead) as found:
        for message in found:
            yield _letter(message)


def replay(queues: Queues, options: BrokerOptions, ids: Collection[str]) -> Sequence[str]:
    """Put dead letters into the queue that they came from, as they came; return the ids of those that were there."""
    wanted, replayed = set(ids), list[str]()
    with _Looking(queues, options.dead) as found:
        for message in found:
            letter = _letter(message)
            if letter.id in wanted:
                headers = {name: value for name, value in message.headers.items() if name != RECORD}
                headers[REPLAYED] = f"{letter.id} {datetime.now(UTC).isoformat()}"
                record = _record(message)
                queues.send(
                    str(record.get("queue") or options.queue), Message(message.body, headers, message.properties, None)
                )
                found.settle(message)
                wanted.discard(letter.id)
                replayed.append(letter.id)
            if not wanted:
                break
    return replayed


class _Looking:
    """Takes the messages of a queue into hand one by one, and puts back in the end those that were not settled."""

    def __init__(self, queues: Queues, queue: str) -> None:
        self._queues, self._queue = queues, queue
        self._taken: list[Message] = []

    def __enter__(self) -> _Looking:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        while kind is None and self._taken:  # else the broker does so when the connection is closed
            self._queues.requeue(self._taken.pop(0).tag)

    def __iter__(self) -> Iterator[Message]:
        while (message := self._queues.look(self._queue)) is not None:
            self._taken.append(message)
            yield message

    def settle(self, message: Message) -> None:
        self._queues.acknowledge(message.tag)
        self._taken.remove(message)


def _record(message: Message) -> dict[str, Any]:
    try:
        record = json.loads(message.headers.get(RECORD, "{}"))
    except (TypeError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _letter(message: Message) -> DeadLetter:
    """Return a message as a dead letter; one that others put there has no record."""
    record = _record(message)
    headers = {**message.properties, **{name: value for name, value in message.headers.items() if name != RECORD}}
    id = record.get("id") or message.properties.get("message_id") or message.stamp
    return DeadLetter.of(str(id), message.body, headers, record)
