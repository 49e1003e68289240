"""Python values as the binary parameters of PostgreSQL: a list in one go, where the driver takes each value alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct, pack
from typing import Any

Encoder = Callable[[Any], bytes | None]

_int8, _int4, _float8 = Struct(">q").pack, Struct(">i").pack, Struct(">d").pack
_header = Struct(">iiiii").pack
_NULL = b"\xff\xff\xff\xff"


def _plain(encode: Callable[[Any], bytes]) -> Encoder:
    """Return an encoder that leaves None as it is."""
    return lambda value: None if value is None else encode(value)


def _fixed(oid: int, code: str) -> Encoder:
    """Return an encoder of lists of numbers of 8 bytes; where there may be a None it goes through each of them."""

    def encode(values: Sequence[Any]) -> bytes:
        count = len(values)
        if None in values:
            return _parts(oid, [None if value is None else pack(f">{code}", value) for value in values])
        flat = [8] * (2 * count)
        flat[1::2] = values
        return _header(1, 0, oid, count, 1) + pack(">" + f"i{code}" * count, *flat)

    return encode


def _parts(oid: int, values: Sequence[bytes | None]) -> bytes:
    """Return an array of values that are encoded already."""
    parts = [_header(1, 1, oid, len(values), 1)]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts += (_int4(len(value)), value)
    return b"".join(parts)


def _texts(values: Sequence[str | None]) -> bytes:
    """Return an array of texts."""
    return _parts(25, [None if value is None else value.encode() for value in values])


ENCODERS: dict[str, tuple[int, Encoder]] = {
    "bigint": (20, _plain(_int8)),
    "double precision": (701, _plain(_float8)),
    "text": (25, _plain(str.encode)),
    "bytea": (17, _plain(bytes)),
    "bigint[]": (1016, _fixed(20, "q")),
    "double precision[]": (1022, _fixed(701, "d")),
    "text[]": (1009, _texts),
    "bytea[]": (1001, lambda values: _parts(17, values)),
}
"""By the name of the type: its number, and what makes a binary parameter of a value."""


def storable(text: str | None) -> str | None:
    """Return a text of a user's code as PostgreSQL can hold it: U+0000 and halves of characters are replaced."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
