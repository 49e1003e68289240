"""Addresses of mailboxes: where the server is, how it is talked to, and what becomes of a mail."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from iocflow.events.address import Address
from iocflow.launch.errors import LauncherError
from iocflow.launch.places import ip_of
from iocflow.wiring import did_you_mean

__all__ = ["MailboxOptions"]

PORTS = {"pop3": 110, "pop3s": 995, "imap": 143, "imaps": 993}
COMMON = ("every", "seed", "limit", "timeout", "dead", "ca")
OPTIONS = {
    "pop3": (*COMMON, "tls"),
    "pop3s": COMMON,
    "imap": (*COMMON, "tls", "done"),
    "imaps": (*COMMON, "done"),
}
"""The options of a scheme."""
SEEDS = ("mail", "json")
TLS = ("start", "none")
INBOX = "INBOX"
EVERY = timedelta(seconds=60)
TIMEOUT = timedelta(seconds=30)
LIMIT = 10_000_000


@dataclass(frozen=True, slots=True)
class MailboxOptions:
    """How a mailbox is read.

    Attributes:
        scheme: `pop3`, `pop3s`, `imap` or `imaps`; those with an `s` speak TLS from the first byte on.
        folder: The folder that is read (IMAP).
        tls: `start` has the server turn to TLS before the password is sent, `none` sends it in clear; empty for a
            scheme that is TLS anyway.
        every: How often the mailbox is looked at.
        seed: `mail` makes a `Mail` the seed, or the JSON of a mail that is `application/json`; with `json` the
            mail has to bring JSON, as its text or as a part.
        limit: The largest mail that becomes a seed, in bytes.
        timeout: How long the server may be silent.
        done: The folder that takes mails which are dealt with (IMAP); empty deletes them.
        dead: The folder of this machine that keeps dead letters.
        ca: A file of certificate authorities to trust in place of the system's.
    """

    scheme: str
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    folder: str = ""
    tls: str = ""
    every: timedelta = EVERY
    seed: str = SEEDS[0]
    limit: int = LIMIT
    timeout: timedelta = TIMEOUT
    done: str = ""
    dead: Path = Path()
    ca: str = ""

    @classmethod
    def of(cls, address: Address) -> MailboxOptions:
        """Return what an address says.

        Raises:
            LauncherError: It names no server, or nobody whose mailbox it is.
        """
        scheme = address.scheme
        imap = scheme.startswith("imap")
        example = f"{scheme}://USER:${{secret:NAME}}@HOST{'/INBOX' if imap else ''}"
        if "@" in address.text.partition("?")[2] or "#" in address.text:
            raise LauncherError(
                f"a password or name in the address of an {scheme}: source holds one of / ? # @;"
                " write it percent-encoded, as %2F, %3F, %23 and %40"
            )
        address.only(OPTIONS[scheme])
        try:
            parts = urlsplit(f"http:{address.path}")  # the same rules for every scheme
            host, port = parts.hostname or "", parts.port or PORTS[scheme]
        except ValueError:
            host, port = "", 0
        if not host or not address.path.startswith("//"):
            raise LauncherError(f"the address of an {scheme}: source names no host and port; write {example}")
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if not (user and password):
            raise LauncherError(f"the address of an {scheme}: source names no user and password; write {example}")
        folder = unquote(parts.path[1:])
        if folder and not imap:
            address.noted.append(f"a mailbox of POP3 has no folders, so `{parts.path}` is too much; write {example}")
        folder = (folder or INBOX) if imap else ""
        least, most = timedelta(seconds=1), timedelta(days=1)
        found = cls(
            scheme, host, port, user, password, folder, _tls(address, host),
            address.duration("every", EVERY, least, most), _choice(address, "seed", SEEDS),
            address.size("limit", LIMIT), address.duration("timeout", TIMEOUT, least, timedelta(minutes=10)),
            address.options.get("done", ""), Path(address.options.get("dead") or _dead(user, host, folder)),
            address.options.get("ca", ""),
        )  # fmt: skip
        found.check(address)
        return found

    def check(self, address: Address) -> None:
        """Note what no server can be told."""
        if not (self.user + self.password).isprintable():
            address.noted.append("the user or password holds a line break or another control character; leave it out")
        for folder in (self.folder, self.done):
            if not (folder.isascii() and folder.isprintable()):
                remedy = "write it as the server lists it, in modified UTF-7, as Entw&APw-rfe"
                address.noted.append(f"`{folder}` is no name of a folder in IMAP; {remedy}")
        if self.done and self.done == self.folder:
            address.noted.append(f"done={self.done} is the folder that is read; name another one")
        if self.ca and self.tls == "none":
            address.noted.append("`ca` says whom to trust, and tls=none trusts anybody; leave one of them out")

    @property
    def imap(self) -> bool:
        """Whether the server speaks IMAP, and not POP3."""
        return self.scheme.startswith("imap")

    @property
    def name(self) -> str:
        """The address without password and options: what is read."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        folder = f"/{quote(self.folder, safe='/')}" if self.folder else ""
        return f"{self.scheme}://{quote(self.user, safe='')}@{host}:{self.port}{folder}"

    @property
    def identity(self) -> str:
        """The same for one mailbox, whether or not it is read over TLS."""
        port = "" if self.port in PORTS.values() else self.port
        return f"{self.scheme.removesuffix('s')}://{quote(self.user, safe='')}@{self.host}:{port}/{self.folder}"


def _tls(address: Address, host: str) -> str:
    """Return when a connection turns to TLS; in clear, unasked, is only what does not leave this machine."""
    if "tls" not in OPTIONS[address.scheme]:
        return ""
    if "tls" not in address.options:
        ip = ip_of(host) or ""
        return "none" if ip == "::1" or ip.startswith("127.") else "start"
    return _choice(address, "tls", TLS)


def _choice(address: Address, name: str, known: tuple[str, ...]) -> str:
    given = address.options.get(name, known[0])
    if given in known:
        return given
    address.noted.append(f"{name}={given} is no choice; {did_you_mean(given, known)}")
    return known[0]


def _dead(user: str, host: str, folder: str) -> str:
    whose = f"{user}@{host}" if folder in ("", INBOX) else f"{user}@{host}-{folder}"
    return f"var/mailboxes/{re.sub(r'[^A-Za-z0-9.@+_-]', '_', whose).lstrip('.')}"
