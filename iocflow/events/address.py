"""Addresses of event sources: `scheme:path?option=value`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from urllib.parse import parse_qsl

from iocflow.events.source import EventSource
from iocflow.launch.duration import duration
from iocflow.launch.errors import LauncherError
from iocflow.wiring import did_you_mean

__all__ = ["Address", "SourceKind"]

_SIZE = re.compile(r"\s*(\d+)\s*(B|kB|MB|GB)\s*", re.IGNORECASE)
_BYTES = {"b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3}


class SourceKind(Protocol):
    """Makes the sources of one scheme; found through the entry point group `iocflow.sources` by the scheme."""

    @classmethod
    def at(cls, address: Address) -> EventSource:
        """Return the source at that address, without opening it or touching anything outside.

        Raises:
            LauncherError: The address or one of its options is wrong.
        """


@dataclass(frozen=True, slots=True)
class Address:
    """An address in its parts; the path is taken as it is, with no percent-encoding."""

    text: str
    scheme: str
    path: str
    options: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> Address:
        """Return the parts.

        Raises:
            LauncherError: It has no scheme, no path, or an option twice.
        """
        scheme, colon, rest = text.partition(":")
        path, _, query = rest.partition("?")
        if not (colon and scheme and path):
            raise LauncherError(
                f"`{text}` is no address of a source; write its kind and its place, as folder:var/inbox"
            )
        pairs = parse_qsl(query, keep_blank_values=True)
        if len(dict(pairs)) < len(pairs):
            raise LauncherError(f"`{text}` gives an option twice")
        return cls(text, scheme, path, dict(pairs))

    def only(self, known: Iterable[str]) -> None:
        """Refuse options that are not `known`.

        Raises:
            LauncherError: There is one.
        """
        for name in self.options:
            if name not in known:
                raise LauncherError(f"a {self.scheme}: source has no option `{name}`; {did_you_mean(name, known)}")

    def duration(self, name: str, default: timedelta, least: timedelta, most: timedelta) -> timedelta:
        """Return an option that is a duration.

        Raises:
            LauncherError: It is none, or out of its bounds.
        """
        value = duration(self.options[name], name) if name in self.options else default
        if not least <= value <= most:
            raise LauncherError(f"{name}={self.options[name]} is out of bounds; write {least} to {most}")
        return value

    def number(self, name: str, default: int) -> int:
        """Return an option that is a number from 1 on.

        Raises:
            LauncherError: It is none.
        """
        written = self.options.get(name, str(default))
        if not written.isdecimal() or int(written) < 1:
            raise LauncherError(f"{name}={written} is no number; write 1 or more")
        return int(written)

    def size(self, name: str, default: int) -> int:
        """Return an option that is a number of bytes, as 500kB, 10MB, 1GB (powers of 1,000).

        Raises:
            LauncherError: It is none.
        """
        if name not in self.options:
            return default
        found = _SIZE.fullmatch(self.options[name])
        if not found or int(found[1]) < 1:
            raise LauncherError(f"{name}={self.options[name]} is no size; write 500kB, 10MB or 1GB")
        return int(found[1]) * _BYTES[found[2].lower()]
