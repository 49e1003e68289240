"""Connections to PostgreSQL: opened with patience, used by one thread at a time, kept for the next one."""

from __future__ import annotations

import os
import random
import re
import select
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from psycopg import conninfo, pq

from iocflow.store.errors import StoreError, StoreLostError, StoreUrlError
from iocflow.store.postgres.errors import AGAIN, told
from iocflow.wiring import did_you_mean

Connection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")

SCHEMA = "iocflow"
"""Where the tables are when the URL does not say `schema=`."""

_DEFAULTS = {
    "application_name": "iocflow",
    "client_encoding": "utf8",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",  # milliseconds
}
"""What libpq is told unless the URL says otherwise: a peer that vanished is noticed within a lease."""

_SESSION = "set session characteristics as transaction isolation level read committed"
"""The statements rely on seeing what was committed before each of them."""

TUNED = """set jit = off; set plan_cache_mode = force_generic_plan; set enable_seqscan = off"""
"""For connections with our own statements only: to compile one, or to plan it anew for each call, costs more than to
run it; and one that is planned while a table is small is to find its rows by an index still when it has grown."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,48}")
_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})|%00")
_OURS = "the URL of the PostgreSQL store"
_FORM = "postgresql://USER@HOST/DATABASE"
_LAST_PORT = 65_535
_NUMBERS = (
    "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
)  # fmt: skip
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is: what libpq connects to, and the schema of its tables, quoted."""

    conninfo: str
    schema: str

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read `postgresql://user@host/database?schema=name`; further options are libpq's.

        Raises:
            StoreUrlError: It is no such URL.
        """
        text, own = read_url(url, _OURS, ("schema",))
        schema = own.get("schema", SCHEMA)
        if not _NAME.fullmatch(schema):
            raise StoreUrlError(f"the schema of {_OURS} is `{schema}`; write letters, digits, _ and -, 48 at most")
        return cls(text, f'"{schema}"')


def read_url(url: str, whose: str, own: Collection[str]) -> tuple[str, dict[str, str]]:
    """Return what libpq connects to, and those options of a `postgresql://` URL that are `own` and none of libpq's.

    Raises:
        StoreUrlError: It is no such URL; `whose` says which one.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise StoreUrlError(f"the host of {whose} cannot be read; write an IPv6 address as [::1]") from None
    if parts.scheme not in ("postgresql", "postgres"):
        raise StoreUrlError(f"not a postgresql:// URL: {parts.scheme}://")
    if parts.fragment or _ESCAPE.search(url):
        raise StoreUrlError(f"{whose} has a `#`, or a `%` that stands for no character; write %23 or %25")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    kept = {name: options.pop(name) for name in own if name in options}
    rest = urlencode(options, quote_via=quote)
    try:
        given = conninfo.conninfo_to_dict(f"postgresql://{parts.netloc}{parts.path}{rest and '?'}{rest}")
        _check(given, whose)
        text = conninfo.make_conninfo("", **(_DEFAULTS | {key: str(value) for key, value in given.items()}))
    except psycopg.ProgrammingError as error:
        said = str(error).strip()
        raise StoreUrlError(f"PostgreSQL does not understand {whose}: {said}; write {_FORM}") from error
    return text, kept


def _check(given: Mapping[str, Any], whose: str) -> None:
    """Refuse values that libpq would refuse at the first connection; what may be a password is not told."""
    ports = str(given.get("port", "")).split(",")
    if not all(port == "" or (port.isdecimal() and 0 < int(port) <= _LAST_PORT) for port in ports):
        remedy = f"write 1 to {_LAST_PORT}, and in a password %2F for a `/`, %3F for a `?`"
        raise StoreUrlError(f"the port of {whose} is none; {remedy}")
    for name in _NUMBERS:
        if not re.fullmatch("-?[0-9]{0,9}", str(given.get(name, ""))):
            raise StoreUrlError(f"the option `{name}` of {whose} is `{given[name]}`; write a number")
    mode = given.get("sslmode")
    if mode not in (None, *_SSL_MODES):
        raise StoreUrlError(f"the option `sslmode` of {whose} is `{mode}`; {did_you_mean(mode, _SSL_MODES)}")


class Connections:
    """The open connections of one store in one process."""

    def __init__(
        self,
        conninfo: str,
        *,
        patience: float,
        prepares: bool = True,
        settings: str = "",
        kind: type[Connection] = Connection,
    ) -> None:
        """Open none yet.

        Args:
            conninfo: What libpq connects to.
            patience: How many seconds a server that does not answer is tried again.
            prepares: Whether the driver prepares what is executed often. It deallocates all at a roll back, so
                that others cannot prepare anything on the same connection.
            settings: Statements that each new connection begins with.
            kind: The class of the connections.
        """
        self._conninfo = conninfo
        self._threshold = 5 if prepares else None
        self._settings = f"{_SESSION}; {settings}"
        self._patience = patience
        self._kind = kind
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._process = os.getpid()
        self._parents: list[list[Connection]] = []
        self._closed = False

    @contextmanager
    def use(self) -> Iterator[Connection]:
        """Lend a connection in autocommit mode; it is kept when it comes back idle, else closed.

        Raises:
            StoreError: What the driver raised within.
        """
        with told():
            connection = self.take()
            try:
                yield connection
            finally:
                self.give_back(connection)

    def transact(self, work: Callable[[Connection], T]) -> T:
        """Return what `work` does with a connection; it is done again when it was rolled back in favour of others."""
        attempt = 0
        while True:
            try:
                with self.use() as connection:
                    return work(connection)
            except StoreLostError as error:
                attempt += 1
                if attempt == _ATTEMPTS or not isinstance(error.__cause__, AGAIN):
                    raise
                time.sleep(random.uniform(0, 0.001 * 2 ** min(attempt, 8)))

    def open(self) -> Connection:
        """Return a new connection, which the caller closes; try again while the server does not answer."""
        until, pause = time.monotonic() + self._patience, _FIRST_PAUSE
        while True:
            try:
                connection = self._kind.connect(self._conninfo, autocommit=True, prepare_threshold=self._threshold)
            except psycopg.OperationalError:
                if time.monotonic() + pause > until:
                    raise
                time.sleep(random.uniform(pause / 2, pause))
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            try:
                connection.execute(self._settings)
            except BaseException:
                connection.close()
                raise
            return connection

    def take(self) -> Connection:
        """Return a connection that is to be given back."""
        while True:
            self._leave_parents()
            with self._lock:
                if self._closed:
                    raise StoreError("the store is closed")
                if not self._idle:
                    break
                connection = self._idle.pop()
            if _alive(connection):
                return connection
            connection.close()
        return self.open()

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next one, unless something is wrong with it."""
        if connection.info.transaction_status == pq.TransactionStatus.IDLE:
            with self._lock:
                if not self._closed and self._process == os.getpid():
                    self._idle.append(connection)
                    return
        connection.close()

    def close(self) -> None:
        """Close all that are idle, and the others when they come back."""
        self._leave_parents()
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _leave_parents(self) -> None:
        """After a fork, leave the parent's connections alone: not even closing them is ours, so they are kept."""
        if self._process != os.getpid():
            self._parents.append(self._idle)
            self._lock, self._idle, self._process = threading.Lock(), [], os.getpid()


def _alive(connection: Connection) -> bool:
    """Return whether an idle connection is still good: a server that went away has left something to read."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)
