"""From a request to an event: JSON documents, and CloudEvents in both of their forms."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from urllib.parse import unquote

from iocflow.events.envelope import UnreadableEventError, event_of, read_event, read_json
from iocflow.events.source import Event

__all__ = ["IDEMPOTENCY_KEY", "media_fault", "posted_event"]

IDEMPOTENCY_KEY = "idempotency-key"
_STRUCTURED = "application/cloudevents+json"
_JSON = re.compile(r"application/(?!cloudevents-batch)(?:[\w.-]+\+)?json", re.ASCII)
_KEY = re.compile(r"[ -~]{1,255}")
_BINARY = "ce-"


def media_fault(headers: Mapping[str, str]) -> str:
    """Return what is wrong with the form of a body, empty when it can be read."""
    if headers.get("content-encoding", "identity") != "identity":
        return "the body is compressed; send it as it is"
    kind, *parameters = (part.strip().lower() for part in headers.get("content-type", "").split(";"))
    charset = dict(part.partition("=")[::2] for part in parameters).get("charset", "utf-8").strip('"')
    if _JSON.fullmatch(kind) and charset in ("utf-8", "utf8", "us-ascii"):
        return ""
    what = f"Content-Type is {headers['content-type']}" if kind else "there is no Content-Type"
    return f"{what}; send one JSON document, in UTF-8, as application/json or {_STRUCTURED}"


def posted_event(headers: Mapping[str, str], body: bytes, source: str) -> Event:
    """Return the event in a request.

    What tells it from others is its own id and source if it is a CloudEvent, else `Idempotency-Key`; without either it
    is like no other.

    Args:
        headers: The request's headers, by names in lower case.
        body: What it brought.
        source: The event's source, unless it tells one.

    Raises:
        UnreadableEventError: It is none.
    """
    id = _given_key(headers) or str(uuid.uuid4())
    structured = headers.get("content-type", "").lower().startswith(_STRUCTURED)
    attributes = {
        name.removeprefix(_BINARY): unquote(value) for name, value in headers.items() if name.startswith(_BINARY)
    }
    if attributes and not structured:
        if lacking := [f"{_BINARY}{name}" for name in ("specversion", "id", "source") if not attributes.get(name)]:
            raise UnreadableEventError(f"a CloudEvent in headers needs {' and '.join(lacking)}")
        return event_of(attributes, read_json(body), source=source, id=id)
    event = read_event(body, source=source, id=id)
    if structured and (event.source, event.id) == (source, id):
        raise UnreadableEventError(f"{_STRUCTURED} needs `specversion`, `id` and `source`")
    return event


def _given_key(headers: Mapping[str, str]) -> str:
    key = headers.get(IDEMPOTENCY_KEY)
    if key is None:
        return ""
    key = key.strip().removeprefix('"').removesuffix('"')  # a structured field has the quotes, and many send none
    if not _KEY.fullmatch(key):
        raise UnreadableEventError("Idempotency-Key is no key; write 1 to 255 printable ASCII characters")
    return key
