"""From the headers and the body of a request to an event."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from iocflow.events.envelope import UnreadableEventError
from iocflow.events.http_reading import media_fault, posted_event
from iocflow.events.source import Event

JSON = {"content-type": "application/json"}
BINARY = {**JSON, "ce-specversion": "1.0", "ce-id": "e1", "ce-source": "/erp"}


def read(data: object, headers: dict[str, str] | None = None) -> Event:
    """Read a body that is JSON."""
    return posted_event(headers or JSON, json.dumps(data).encode(), "/orders")


def test_plain_json() -> None:
    """A document is the seed; it is like no other event, unless a key says which."""
    first, second = read({"a": 1}), read({"a": 1})
    assert (first.data, first.source, len(first.id)) == ({"a": 1}, "/orders", 36)
    assert first.id != second.id
    assert read({"a": 1}, {**JSON, "idempotency-key": "k"}) == Event("k", "/orders", {"a": 1})
    assert read({"a": 1}, {**JSON, "idempotency-key": ' "k" '}).id == "k"


def test_an_events_own_id_goes_first() -> None:
    """A CloudEvent has its key in itself; the header is for those that have none."""
    event = {"specversion": "1.0", "id": "e1", "source": "/erp", "data": 1}
    assert read(event, {**JSON, "idempotency-key": "k"}) == Event("e1", "/erp", 1)
    assert read({"data": 1}, {**JSON, "idempotency-key": "k"}) == Event("k", "/orders", 1)


def test_attributes_in_headers() -> None:
    """In binary form the headers hold the attributes, percent-encoded, and the body is the data as it is."""
    more = {"ce-type": "a%20b", "ce-subject": "Z%C3%BCrich", "ce-time": "2026-03-01T06:00:00Z"}
    moment = datetime(2026, 3, 1, 6, tzinfo=UTC)
    data = {"specversion": "1.0", "data": 1}
    assert read(data, {**BINARY, **more}) == Event("e1", "/erp", data, "a b", "Zürich", moment)


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({**JSON, "ce-id": "1"}, "ce-specversion and ce-source"),
        ({**BINARY, "ce-id": ""}, "needs ce-id"),
        ({**BINARY, "ce-time": "noon"}, "`time` is no date and time"),
        ({"content-type": "application/cloudevents+json"}, "needs `specversion`, `id` and `source`"),
        ({**JSON, "idempotency-key": ""}, "1 to 255 printable"),
        ({**JSON, "idempotency-key": "é"}, "1 to 255 printable"),
    ],
)
def test_what_is_no_event(headers: dict[str, str], why: str) -> None:
    """An attribute or key that is missing or wrong is refused with its name."""
    with pytest.raises(UnreadableEventError, match=why):
        read({"a": 1}, headers)


@pytest.mark.parametrize(
    ("kind", "good"),
    [
        ("application/json", True),
        ("Application/JSON ; charset=UTF-8", True),
        ('application/cloudevents+json; charset="utf-8"', True),
        ("application/vnd.acme.order+json", True),
        ("application/cloudevents-batch+json", False),
        ("application/json; charset=utf-16", False),
        ("application/jsonp", False),
        ("text/json", False),
        ("", False),
    ],
)
def test_media_types(kind: str, good: bool) -> None:
    """JSON in UTF-8 under any of its names is read, and nothing else is."""
    assert (media_fault({"content-type": kind} if kind else {}) == "") is good
