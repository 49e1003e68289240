"""From bytes to an event: envelopes, plain documents, and what is neither."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from iocflow.events.envelope import UnreadableEventError, read_event
from iocflow.events.source import Event


def read(document: object) -> Event:
    """Read a document that was written as JSON."""
    return read_event(json.dumps(document).encode(), source="folder:in", id="a.json")


@pytest.mark.parametrize(
    "document",
    [
        {"airline_id": 12, "rate_drop": "30.28"},
        {"id": 1, "source": "s"},
        {"id": 1, "data": 2, "airline": 3},
        [1, 2],
        "text",
        None,
        0,
        {},
    ],
)
def test_a_plain_document_is_the_seed(document: object) -> None:
    """What is no envelope is wrapped: the whole document is the seed, id and source are the file's."""
    assert read(document) == Event("a.json", "folder:in", document)


def test_an_envelope() -> None:
    """The attributes of CloudEvents are taken as they are, and `data` is the seed."""
    event = read(
        {
            "specversion": "1.0",
            "id": "e-1",
            "source": "/fares",
            "type": "fare.dropped",
            "subject": "X-Jet",
            "time": "2026-03-01T06:00:00Z",
            "data": {"airline_id": 12},
            "extension": "is ignored",
        }
    )
    moment = datetime(2026, 3, 1, 6, tzinfo=UTC)
    assert event == Event("e-1", "/fares", {"airline_id": 12}, "fare.dropped", "X-Jet", moment)


@pytest.mark.parametrize(
    ("document", "event"),
    [
        ({"data": {"a": 1}}, Event("a.json", "folder:in", {"a": 1})),
        ({"id": 7, "data": None}, Event("7", "folder:in", None)),
        ({"type": "t", "data": [1]}, Event("a.json", "folder:in", [1], "t")),
        ({"specversion": "1.0", "id": "x"}, Event("x", "folder:in", None)),
    ],
)
def test_a_short_envelope(document: object, event: Event) -> None:
    """An envelope may leave out what the file tells anyway."""
    assert read(document) == event


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "not JSON"),
        (b'{"a": ', "not JSON: Expecting value: line 1 column 7"),
        (b'{"a": 1}{"a": 2}', "not JSON: Extra data"),
        (b"<xml/>", "not JSON"),
        (b"\xff\xfe{", "not UTF-8 at byte 0"),
        (b'{"a": NaN}', "not JSON: NaN is no JSON number"),
        (b'{"a": [-Infinity]}', "not JSON: -Infinity is no JSON number"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" * 5_000_000, "nested too deeply"),
        (b"9" * 5000, "not JSON that can be read: it has a number of thousands of digits"),
        (b'{"specversion": "1.0", "data_base64": "eA=="}', "`data_base64` is not supported"),
        (b'{"data": 1, "time": "soon"}', "the envelope's `time` is no date and time"),
        (b'{"data": 1, "id": {"a": 1}}', "the envelope's `id` is no text"),
        (b'{"data": 1, "type": true}', "the envelope's `type` is no text"),
    ],
)
def test_refused(raw: bytes, says: str) -> None:
    """What is no JSON, or a broken envelope, is refused with the reason, and never ends the process."""
    with pytest.raises(UnreadableEventError) as refusal:
        read_event(raw, source="s", id="i")
    assert str(refusal.value).count("not JSON") <= 1
    assert says in str(refusal.value)


def test_a_byte_order_mark_is_no_mistake() -> None:
    """Files that were written on Windows begin with one."""
    assert read_event(b'\xef\xbb\xbf{"a": 1}', source="s", id="i").data == {"a": 1}
