"""Items of a Redis list that are no messages of kombu's arrive all the same.

kombu takes an item off the list before it decodes it, and raises when that fails: the item is gone then. An item that
another program pushed becomes a message with the item as its body.
"""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any

__all__ = ["foreign_items"]


def foreign_items(channel: Any) -> None:
    """Let a channel of kombu's Redis transport give messages for all items of its lists."""
    parse = channel.client.parse_response

    def parse_response(connection: Any, command: str, **options: Any) -> Any:
        answer = parse(connection, command, **options)
        if command == "BRPOP" and answer:
            place, item = answer
            return place, item if _is_message(item) else _wrapped(item)
        return answer

    channel.client.parse_response = parse_response


def _is_message(item: bytes) -> bool:
    try:
        payload = json.loads(item)
        properties = payload["properties"]
        body = payload["body"]
        encoding = properties.get("body_encoding")
        known = isinstance(properties["delivery_info"], dict) and {"exchange", "routing_key"} <= {
            *properties["delivery_info"]
        }
        if encoding == "base64":
            base64.b64decode(body, validate=True)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return known and isinstance(properties["delivery_tag"], str) and isinstance(payload.get("headers") or {}, dict)


def _wrapped(item: bytes) -> bytes:
    """Return an item as kombu writes a message."""
    properties = {
        "delivery_info": {"exchange": "", "routing_key": ""},
        "delivery_tag": str(uuid.uuid4()),
        "body_encoding": "base64",
    }
    payload = {"body": base64.b64encode(item).decode(), "headers": {}, "properties": properties}
    return json.dumps(payload).encode()
