"""Where a broker's queue is and how it is read: the address of a broker source, in its parts."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import quote, unquote, urlsplit

from iocflow.events.address import Address, LackingError
from iocflow.launch.errors import LauncherError
from iocflow.wiring import did_you_mean

__all__ = ["BrokerOptions"]

PORTS = {"amqp": 5672, "amqps": 5671, "redis": 6379, "rediss": 6379}
EXAMPLES = {"redis": "redis://HOST:6379/0?queue=orders", "rediss": "rediss://HOST:6379/0?queue=orders"}
DECLARING = ("durable", "passive")
COMMON = ("queue", "dead", "declare", "prefetch")
OPTIONS = {
    "amqp": (*COMMON, "heartbeat"),
    "amqps": (*COMMON, "heartbeat", "ca"),
    "redis": (*COMMON, "visibility"),
    "rediss": (*COMMON, "visibility", "ca"),
}
"""The options of a scheme; another transport of kombu has the common ones."""
NAME_BYTES = 255
"""The longest name of a queue (AMQP 0-9-1)."""
HEARTBEAT = timedelta(seconds=60)
VISIBILITY = timedelta(hours=1)
MOST = 1000
"""As many messages as a pool may have threads."""


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    """How a queue of a broker is read.

    Attributes:
        scheme: The name of kombu's transport.
        vhost: The virtual host; the number of the database for Redis.
        queue: The queue that is read.
        dead: The queue that keeps dead letters; empty where nothing is read.
        passive: Whether both queues have to be there, and are not declared.
        prefetch: How many messages may be in hand at once; never more than threads of the pool are free.
        heartbeat: After twice what silence the connection is taken for lost (AMQP).
        visibility: After what time a message that nobody settled is brought again (Redis).
        ca: A file of certificate authorities to trust in place of the system's (TLS).
    """

    scheme: str
    host: str
    queue: str
    port: int = 0
    user: str = ""
    password: str = field(default="", repr=False)
    vhost: str = ""
    dead: str = ""
    passive: bool = False
    prefetch: int = MOST
    heartbeat: timedelta = HEARTBEAT
    visibility: timedelta = VISIBILITY
    ca: str = ""

    @classmethod
    def of(cls, address: Address) -> BrokerOptions:
        """Return what an address says.

        Raises:
            LauncherError: It names no host or no queue, or what reads such a queue is not installed.
        """
        _require(address.scheme)
        example = EXAMPLES.get(address.scheme, f"{address.scheme}://USER@HOST/VHOST?queue=orders")
        if "@" in address.text.partition("?")[2] or "#" in address.text:
            raise LauncherError(
                f"a password or name in the address of an {address.scheme}: source holds one of / ? # @;"
                " write it percent-encoded, as %2F, %3F, %23 and %40"
            )
        address.only(OPTIONS.get(address.scheme, COMMON))
        try:
            parts = urlsplit(f"http:{address.path}")  # the same rules for every scheme
            host, port = parts.hostname or "", parts.port or PORTS.get(address.scheme, 0)
        except ValueError:
            host, port = "", 0
        if not host or not address.path.startswith("//"):
            raise LauncherError(f"the address of an {address.scheme}: source names no host and port; write {example}")
        queue = address.options.get("queue", "")
        if not queue:
            raise LauncherError(f"the address of an {address.scheme}: source names no queue; write {example}")
        found = cls(
            address.scheme, host, queue, port, unquote(parts.username or ""), unquote(parts.password or ""),
            unquote(parts.path[1:]) or ("/" if address.scheme.startswith("amqp") else ""),
            address.options.get("dead") or f"{queue}.dead",
            _passive(address), address.number("prefetch", MOST),
            address.duration("heartbeat", HEARTBEAT, timedelta(seconds=1), timedelta(minutes=10)),
            address.duration("visibility", VISIBILITY, timedelta(seconds=1), timedelta(days=30)),
            address.options.get("ca", ""),
        )  # fmt: skip
        found.check(address)
        return found

    def check(self, address: Address) -> None:
        """Note what is wrong with the names, and with the database of Redis."""
        for name in (self.queue, self.dead):
            if len(name.encode()) > NAME_BYTES or name.startswith("amq."):
                address.noted.append(f"`{name}` can be no queue; write another name, of {NAME_BYTES} bytes at most")
        if self.dead == self.queue:
            address.noted.append(f"dead={self.dead} is the queue itself; name another one for the dead letters")
        if self.scheme.startswith("redis") and self.vhost and not self.vhost.isdecimal():
            address.noted.append(f"`{self.vhost}` is no database of Redis; write its number, as in {EXAMPLES['redis']}")

    @property
    def name(self) -> str:
        """The address without user, password and options: what it reads."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}/{quote(self.vhost, safe='')}?queue={quote(self.queue, safe='/')}"

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.scheme in ("amqps", "rediss")


def _require(scheme: str) -> None:
    """Refuse a transport whose library is not installed."""
    needed = ("kombu", "redis") if scheme.startswith("redis") else ("kombu",)
    for library in needed:
        # kombu replaces its own module by one that importlib cannot look at.
        if library not in sys.modules and importlib.util.find_spec(library) is None:
            what = f"a source at {scheme}: needs {library}, which is not installed"
            raise LackingError(f'{what}; pip install "iocflow[broker]"')


def _passive(address: Address) -> bool:
    given = address.options.get("declare", DECLARING[0])
    if given not in DECLARING:
        address.noted.append(f"declare={given} is no way to declare a queue; {did_you_mean(given, DECLARING)}")
    return given == "passive"
