"""From the bytes of a JSON document to an event: CloudEvents as they are, anything else wrapped."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

from iocflow.errors import IocflowError
from iocflow.events.source import Event
from iocflow.wiring.json_floats import read_float

__all__ = ["UnfinishedEventError", "UnreadableEventError", "event_of", "read_event", "read_json"]

_ATTRIBUTES = frozenset(
    (
        "specversion", "id", "source", "type", "subject", "time", "data", "datacontenttype", "dataschema",
        "traceparent", "tracestate",
    )
)  # fmt: skip


class UnreadableEventError(IocflowError, ValueError):
    """The bytes are no event; the message says why."""


class UnfinishedEventError(UnreadableEventError):
    """The bytes are no JSON, which they may become when whoever writes them is done."""


def read_event(raw: bytes, *, source: str, id: str) -> Event:
    """Return the event in a JSON document.

    An object is an envelope when it has `specversion`, or when it has `data` and no key that is not an attribute of
    CloudEvents; its `data` is the seed. Any other document is the seed itself. A plain object that happens to look like
    an envelope is put into one: `{"data": {…}}`. `null`, or an envelope without `data`, is an event without data, which
    the launcher refuses.

    Args:
        raw: The document, in UTF-8.
        source: The event's source, unless it tells one.
        id: The event's id, unless it tells one.

    Raises:
        UnfinishedEventError: It is no JSON as far as it goes.
        UnreadableEventError: It is JSON but no event: a broken envelope, say.
    """
    document = read_json(raw)
    if not _is_envelope(document):
        return Event(id, source, document)
    if "data_base64" in document:
        raise UnreadableEventError("`data_base64` is not supported; send the data as JSON in `data`")
    return event_of(document, document.get("data"), source=source, id=id)


def event_of(attributes: Mapping[str, Any], data: object, *, source: str, id: str) -> Event:
    """Return the event with those attributes of CloudEvents.

    Args:
        attributes: By their names; what is not there, or None, is left out.
        data: The seed.
        source: The event's source, unless it tells one.
        id: The event's id, unless it tells one.

    Raises:
        UnreadableEventError: An attribute is none.
    """
    return Event(
        id=_text(attributes, "id") or id,
        source=_text(attributes, "source") or source,
        data=data,
        type=_text(attributes, "type"),
        subject=_text(attributes, "subject"),
        time=_time(_text(attributes, "time")),
        traceparent=_text(attributes, "traceparent"),
        tracestate=_text(attributes, "tracestate"),
    )


def read_json(raw: bytes) -> Any:
    """Return what a JSON document in UTF-8 says.

    Raises:
        UnfinishedEventError: It is no JSON as far as it goes.
        UnreadableEventError: It is none that can be read.
    """
    try:
        text = raw.removeprefix(codecs.BOM_UTF8).decode()
        return json.loads(text, parse_constant=_refuse, parse_float=read_float)
    except UnicodeDecodeError as error:
        raise UnfinishedEventError(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise UnfinishedEventError(f"not JSON: {error}") from None
    except UnreadableEventError:
        raise
    except RecursionError:
        raise UnreadableEventError("not JSON that can be read: nested too deeply") from None
    except OverflowError as error:
        raise UnreadableEventError(f"not JSON that can be read: {error}") from None
    except ValueError:
        raise UnreadableEventError("not JSON that can be read: it has a number of thousands of digits") from None


def _is_envelope(document: object) -> bool:
    if not isinstance(document, dict):
        return False
    return "specversion" in document or ("data" in document and document.keys() <= _ATTRIBUTES)


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise UnreadableEventError(f"the envelope's `{name}` is no text")


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        raise UnreadableEventError("the envelope's `time` is no date and time (2026-03-01T06:00:00Z)") from None


def _refuse(constant: str) -> NoReturn:
    raise UnreadableEventError(f"not JSON: {constant} is no JSON number")
