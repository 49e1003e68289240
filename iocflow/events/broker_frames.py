"""AMQP messages whose properties cannot be decoded arrive all the same.

The client library raises in the middle of a frame then (a text that is not UTF-8, a time out of range), and would do it
again each time the broker brings the message.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from amqp.exceptions import FrameSyntaxError  # type: ignore[import-untyped]
from amqp.method_framing import frame_handler  # type: ignore[import-untyped]

from iocflow.events.broker_message import UNREAD

__all__ = ["tolerant_frame_handler"]

Frame = tuple[int, int, bytes]

_HEADER = 2
_FIXED = 12
"""Bytes of a content header before its properties: class, weight, size of the body."""
_ONLY_HEADERS = 0x2000


def tolerant_frame_handler(connection: Any, callback: Callable[..., None]) -> Callable[[Frame], bool]:
    """Return what takes in frames as the library's own does, but gives a message with `UNREAD` instead of raising."""
    read = frame_handler(connection, callback)

    def on_frame(frame: Frame) -> bool:
        try:
            return bool(read(frame))
        except (ValueError, OverflowError, struct.error, FrameSyntaxError):
            kind, channel, content = frame
            if kind != _HEADER:
                raise
            return bool(read((kind, channel, _without_properties(content))))

    return on_frame


def _without_properties(content: bytes) -> bytes:
    """Return a content header with one property only: headers with what stood there, undecoded."""
    name, unread = UNREAD.encode(), bytes(content[_FIXED:])
    table = struct.pack(">B", len(name)) + name + b"x" + struct.pack(">I", len(unread)) + unread
    return bytes(content[:_FIXED]) + struct.pack(">HI", _ONLY_HEADERS, len(table)) + table
