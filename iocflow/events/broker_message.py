"""A message of a broker, and the event in it: CloudEvents in structured or binary mode, or plain JSON."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from iocflow.events.envelope import UnreadableEventError, event_of, read_event, read_json
from iocflow.events.source import Event

__all__ = ["REPLAYED", "UNREAD", "Message", "fingerprint", "named_id", "read_message"]

PREFIXES = ("cloudevents:", "cloudevents_", "ce-", "ce_")
"""How headers with attributes of CloudEvents begin: the AMQP binding's two ways, and the short ones of others."""
TRACE = ("traceparent", "tracestate")
"""Headers of W3C Trace Context, which stand there under their own names too."""
REPLAYED = "x-iocflow-replayed"
"""The header that tells a message that was brought again by command from what it was before."""

UNREAD = "x-iocflow-unread-properties"
"""The header in which properties and headers that could not be decoded stand, as AMQP writes them."""


@dataclass(slots=True, eq=False)
class Message:
    """A message as it came.

    Attributes:
        body: Byte for byte.
        headers: The application's headers.
        properties: What AMQP calls properties, without the headers: `message_id`, `content_type` and so on.
        tag: How the broker wants it settled; another one when it is brought again.
        redelivered: Whether the broker says that it may have been brought before.
        stamp: What the transport itself calls the message, for ever; empty where it has no such name.
    """

    body: bytes
    headers: dict[str, Any]
    properties: dict[str, Any]
    tag: Any
    redelivered: bool = False
    stamp: str = ""


def read_message(message: Message, *, source: str) -> tuple[Event, bool]:
    """Return the event in a message, and whether it has an id that is the same whenever the message comes.

    That is the property `message_id`, else the attribute of CloudEvents in the headers, else that of an envelope in the
    body, else the transport's own name of the message. Without any, the event gets a new one each time.

    Raises:
        UnreadableEventError: There is no event in it; the message says why.
    """
    if UNREAD in message.headers:
        raise UnreadableEventError("its properties or headers cannot be decoded; send texts in UTF-8")
    if compression := message.headers.get("compression"):
        raise UnreadableEventError(f"its body is compressed ({compression}); send it as it is")
    kind = str(message.properties.get("content_type") or "").partition(";")[0].strip().lower()
    if kind.startswith("application/cloudevents-batch"):
        raise UnreadableEventError("it is a batch of CloudEvents; send each one as a message of its own")
    attributes = _attributes(message)
    try:
        if "specversion" in attributes:
            event = event_of(attributes, read_json(message.body), source=source, id="")
        else:
            event = read_event(message.body, source=source, id="")
    except UnreadableEventError as error:
        said = f" (it calls itself {kind})" if kind and "json" not in kind else ""
        raise UnreadableEventError(f"{error}{said}") from None
    id = named_id(message) or event.id or message.stamp
    told = event_of(attributes, None, source=source, id="")
    return (
        Event(
            id or uuid.uuid4().hex, event.source, event.data, event.type or told.type, event.subject or told.subject,
            event.time or told.time, event.traceparent or told.traceparent, event.tracestate or told.tracestate,
        ),
        bool(id),
    )  # fmt: skip


def named_id(message: Message) -> str:
    """Return the id that a message was given outside of its body, empty without one."""
    return str(message.properties.get("message_id") or _attributes(message).get("id") or "")


def fingerprint(message: Message, event: Event | None, *, named: bool) -> str:
    """Return what tells a message from others: its id, when it has one, else all that is in it."""
    if message.stamp:
        return f"stamp {message.stamp}"
    if named and event:
        return f"id {message.headers.get(REPLAYED, '')} {event.source} {event.id}"
    digest = hashlib.sha256(repr((sorted(message.headers.items()), sorted(message.properties.items()))).encode())
    digest.update(message.body)
    return f"digest {digest.hexdigest()}"


def _attributes(message: Message) -> dict[str, Any]:
    """Return the attributes of CloudEvents in headers and properties; the trace may stand there under its own name."""
    properties = message.properties
    found: dict[str, Any] = {"type": properties.get("type"), "time": _moment(properties.get("timestamp"))}
    for header, value in message.headers.items():
        name = header.lower()
        if name in TRACE:
            found.setdefault(name, value)
        for prefix in PREFIXES:
            if name.startswith(prefix):
                found[name.removeprefix(prefix)] = value
    return {name: _plain(value) for name, value in found.items() if value is not None}


def _plain(value: object) -> object:
    """Return a value of AMQP as JSON would have it."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _moment(timestamp: object) -> datetime | None:
    """Return AMQP's own timestamp, seconds since 1970, None when it is none that Python knows."""
    try:
        return datetime.fromtimestamp(timestamp, UTC) if isinstance(timestamp, int) else None
    except (ValueError, OverflowError, OSError):
        return None
