"""Addresses of event sources: `scheme:path?option=value`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol
from urllib.parse import parse_qsl, unquote

from iocflow.events.source import EventSource
from iocflow.launch.duration import duration
from iocflow.launch.errors import LauncherError
from iocflow.wiring import did_you_mean
from iocflow.wiring.duration import duration_text
from iocflow.wiring.numbers import number_of

__all__ = ["Address", "AddressError", "LackingError", "SourceKind", "password_of"]

_SIZE = re.compile(r"\s*(\d+)\s*(B|kB|MB|GB)\s*", re.IGNORECASE)
_BYTES = {"b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3}


class AddressError(LauncherError):
    """An address of a source is wrong.

    Attributes:
        reasons: Everything that is wrong with it.
    """

    def __init__(self, reasons: Iterable[str]) -> None:
        """Take all reasons."""
        self.reasons = tuple(reasons)
        super().__init__("; ".join(self.reasons))


class LackingError(LauncherError):
    """What a kind of source needs is not installed; the message says which extra brings it."""


class SourceKind(Protocol):
    """Makes the sources of one scheme; found through the entry point group `iocflow.sources` by the scheme."""

    @classmethod
    def at(cls, address: Address) -> EventSource:
        """Return the source at that address, without opening it or touching anything outside.

        What is wrong with an option is noted in the address by its methods.

        Raises:
            LauncherError: The address is wrong.
        """


@dataclass(frozen=True, slots=True)
class Address:
    """An address in its parts; the path is taken as it is, with no percent-encoding.

    What is wrong with an option is noted, and its default taken: `source_at`, which has every kind read its address,
    refuses all of it in one go.

    Attributes:
        noted: What is wrong.
    """

    text: str
    scheme: str
    path: str
    options: Mapping[str, str]
    noted: list[str] = field(default_factory=list, compare=False)

    @classmethod
    def parse(cls, text: str) -> Address:
        """Return the parts.

        Raises:
            LauncherError: It has no scheme or no path.
        """
        scheme, colon, rest = text.partition(":")
        path, _, query = rest.partition("?")
        if not (colon and scheme and path):
            raise LauncherError(
                f"`{text}` is no address of a source; write its kind and its place, as folder:var/inbox"
            )
        options: dict[str, str] = {}
        twice: dict[str, None] = {}
        for name, value in parse_qsl(query, keep_blank_values=True):
            if options.setdefault(name, value) is not value:
                twice[name] = None
        return cls(text, scheme, path, options, [f"`{text}` gives the option `{name}` twice" for name in twice])

    def only(self, known: Iterable[str]) -> None:
        """Note options that are not `known`."""
        names = tuple(known)
        for name in self.options:
            if name not in names:
                self.noted.append(f"a source {self.scheme}: has no option `{name}`; {did_you_mean(name, names)}")

    def duration(self, name: str, default: timedelta, least: timedelta, most: timedelta) -> timedelta:
        """Return an option that is a duration within these bounds."""
        if name not in self.options:
            return default
        try:
            value = duration(self.options[name], name)
        except LauncherError as error:
            self.noted.append(str(error))
            return default
        if least <= value <= most:
            return value
        bounds = f"{duration_text(least)} to {duration_text(most)}"
        self.noted.append(f"{name}={self.options[name]} is out of bounds; write {bounds}")
        return default

    def number(self, name: str, default: int) -> int:
        """Return an option that is a number from 1 on."""
        written = self.options.get(name, str(default))
        if number := number_of(written):
            return number
        self.noted.append(f"{name}={written} is no number; write 1 or more")
        return default

    def size(self, name: str, default: int) -> int:
        """Return an option that is a number of bytes, as 500kB, 10MB, 1GB (powers of 1,000)."""
        if name not in self.options:
            return default
        found = _SIZE.fullmatch(self.options[name])
        if found and (number := number_of(found[1])):
            return number * _BYTES[found[2].lower()]
        self.noted.append(f"{name}={self.options[name]} is no size; write 500kB, 10MB or 1GB")
        return default


def password_of(text: str) -> str:
    """Return the password in an address, as it is meant, empty without one; also of an address that is wrong."""
    user, at, _ = text.partition("//")[2].rpartition("@")
    return unquote(user.partition(":")[2]) if at else ""
