"""Addresses of `http:` sources: where to listen, and what is let in."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from datetime import timedelta

from iocflow.events.address import Address
from iocflow.launch.errors import LauncherError
from iocflow.launch.places import LOOPBACK, PORTS, ip_of

__all__ = ["HttpOptions", "HttpPlace", "read_options", "read_place"]

_PLACE = re.compile(r"(?://)?(?:(\[[^\]/]+\]|[^:/\[\]]+):)?(\d{1,5})((?:/[\w.~-]+)+)", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}")
_MOST = timedelta(hours=1)
_FORM = "write http:8080/orders, or http:127.0.0.1:8080/orders"


@dataclass(frozen=True, slots=True)
class HttpPlace:
    """Where an `http:` source listens.

    Attributes:
        host: An IP address.
        path: Begins with a slash, and does not end with one.
    """

    host: str
    port: int
    path: str

    def __str__(self) -> str:
        """Return it as an address has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http:{host}:{self.port}{self.path}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.host).is_loopback


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """What is let in at a place.

    Attributes:
        token: What a request has to bring, as in `Authorization: Bearer TOKEN`; empty lets everybody in.
        limit: The largest body, in bytes.
        timeout: How long a body may take to come.
        wait: How long a request may wait for a free thread.
        waiting: How many requests may wait for one.
    """

    token: str = field(default="", repr=False)
    limit: int = 1_000_000
    timeout: timedelta = timedelta(seconds=10)
    wait: timedelta = timedelta(seconds=10)
    waiting: int = 200


def read_place(address: Address) -> HttpPlace:
    """Return where an address says to listen.

    Raises:
        LauncherError: It says no such place.
    """
    found = _PLACE.fullmatch(address.path)
    if not found:
        raise LauncherError(f"`http:{address.path}` is no place to listen at; {_FORM}")
    host, port, path = (found[1] or LOOPBACK).strip("[]"), int(found[2]), found[3]
    ip = ip_of(host)
    if ip is None:
        raise LauncherError(f"`{host}` is no IP address; write that of this machine, 127.0.0.1 or 0.0.0.0")
    if port not in PORTS:
        raise LauncherError(f"there is no port {port}; write 1 to 65535")
    return HttpPlace(ip, port, path)


def read_options(address: Address, place: HttpPlace) -> HttpOptions:
    """Return the options of an address; what is wrong with them is noted there, without a word of the token.

    Raises:
        LauncherError: Other machines can reach the place, and there is no token.
    """
    known = tuple(HttpOptions.__dataclass_fields__)
    token = _token(address)
    if token is None:
        address.only(known)
    elif strangers := [name for name in address.options if name not in known]:
        # Perhaps the rest of a token with an ampersand in it: not to be repeated.
        address.noted.append(f"{len(strangers)} of the options are none; write {', '.join(known)}")
    if token is not None and not _TOKEN.fullmatch(token):
        remedy = "16 characters or more: letters, digits and ._~+/=-"
        address.noted.append(f"the token is none that a header can hold, or too short to be safe; write {remedy}")
    if token is None and not place.loopback:
        raise LauncherError(f"{place} is open to other machines, and has no token; add ?token=${{secret:NAME}}")
    least, default = timedelta(milliseconds=100), HttpOptions()
    return HttpOptions(
        token or "",
        address.size("limit", default.limit),
        address.duration("timeout", default.timeout, least, _MOST),
        address.duration("wait", default.wait, least, _MOST),
        address.number("waiting", default.waiting),
    )


def _token(address: Address) -> str | None:
    """Return the token as it is written, as a header has it too: percent signs and plus signs stand for themselves.

    An empty one is none: a placeholder may have that as its default.
    """
    query = address.text.partition("?")[2]
    pieces = (piece.partition("=") for piece in query.split("&"))
    return next((value for name, _, value in pieces if name == "token"), None) or None
