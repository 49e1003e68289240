"""Which table of a PostgreSQL database is read, and how: the address of a `postgres:` source, in its parts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import quote

from iocflow.events.address import Address, LackingError
from iocflow.launch.errors import LauncherError
from iocflow.store.errors import StoreUrlError
from iocflow.wiring import did_you_mean
from iocflow.wiring.extras import MissingExtraError, extra

__all__ = ["OPTIONS", "PostgresOptions"]

OPTIONS = ("table", "id", "data", "done", "dead", "channel", "interval", "prefetch")
"""The options of an address that are the source's own; libpq's may stand beside them."""
WHOLE_ROW = "*"
"""As `data`: the row itself is the event's data, by its columns' names."""
INTERVAL = timedelta(seconds=1)
PREFETCH = 16
EXAMPLE = "postgres://USER@HOST/DATABASE?table=inbox"

_NAME = re.compile(r"[^\W\d][\w$]{0,62}")
_NAME_BYTES = 63
_NAMES = "letters, digits, _ and $, 63 bytes at most"


@dataclass(frozen=True, slots=True)
class PostgresOptions:
    """How a table is read.

    Attributes:
        conninfo: What libpq connects to.
        place: Host, port and database, without user and password.
        table: The table, perhaps with its schema and a dot in front.
        id: The column that tells rows apart, and is the event's id.
        data: The column that has the event, `*` when the whole row is its data.
        done: The column that marks a row as dealt with; empty when such a row is deleted.
        dead: The table that keeps dead letters, perhaps with its schema.
        channel: Where a notification says that there are rows.
        interval: How often is looked for rows while no notification comes.
        prefetch: How many rows may be in hand at once, each on a connection of its own.
    """

    conninfo: str = field(repr=False)
    place: str
    table: str
    id: str = "id"
    data: str = "data"
    done: str = ""
    dead: str = ""
    channel: str = ""
    interval: timedelta = INTERVAL
    prefetch: int = PREFETCH

    @classmethod
    def of(cls, address: Address) -> PostgresOptions:
        """Return what an address says; what is wrong with an option is noted there.

        Raises:
            LauncherError: It names no database or no table, or the driver is not installed.
        """
        try:
            connections, pq = extra("store.postgres.connections"), extra("events.postgres_table").pq
        except MissingExtraError as error:
            what = f"a source at {address.scheme}: needs psycopg, which is not installed"
            raise LackingError(f'{what}; pip install "iocflow[postgres]"') from error
        if "@" in address.text.partition("?")[2]:
            raise LauncherError(
                f"a password or name in the address of a {address.scheme}: source holds one of / ? # @;"
                " write it percent-encoded, as %2F, %3F, %23 and %40"
            )
        theirs = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
        strange = [name for name in address.options if name not in OPTIONS and name not in theirs]
        for name in strange:
            remedy = did_you_mean(name, OPTIONS)
            address.noted.append(f"a source {address.scheme}: has no option `{name}`, nor has libpq; {remedy}")
        try:
            conninfo, given = connections.read_url(
                address.text, f"the address of a {address.scheme}: source", (*OPTIONS, *strange)
            )
        except StoreUrlError as error:
            raise LauncherError(str(error)) from error
        table = given.get("table", "")
        if not table:
            raise LauncherError(f"the address of a {address.scheme}: source names no table; write {EXAMPLE}")
        found = cls(
            conninfo, _place(connections.conninfo.conninfo_to_dict(conninfo), address.scheme),
            table, given.get("id") or "id", given.get("data") or "data", given.get("done", ""),
            given.get("dead") or f"{table}_dead", given.get("channel") or table.rpartition(".")[2],
            address.duration("interval", INTERVAL, timedelta(milliseconds=50), timedelta(hours=1)),
            address.number("prefetch", PREFETCH),
        )  # fmt: skip
        found.check(address)
        return found

    def check(self, address: Address) -> None:
        """Note names that are none, and columns that cannot be one."""
        names = {"table": self.table, "dead": self.dead}
        columns = {"id": self.id, "data": self.data, "done": self.done, "channel": self.channel}
        for option, name in {**names, **columns}.items():
            parts = name.split(".") if option in names else [name]
            known = not name or (option == "data" and name == WHOLE_ROW)
            if not known and (len(parts) > len(("schema", "table")) or not all(map(_is_name, parts))):
                address.noted.append(f"{option}={name} is no name; write {_NAMES}, as it is spelled in the database")
        if self.dead == self.table:
            address.noted.append(f"dead={self.dead} is the table itself; name another one for the dead letters")
        used = [name for name in (self.id, self.data, self.done) if name]
        for name in sorted({one for one in used if used.count(one) > 1}):
            address.noted.append(f"`{name}` is named twice; `id`, `data` and `done` are different columns")

    @property
    def name(self) -> str:
        """The address without user, password and the other options: what it reads."""
        return f"postgres://{self.place}?table={quote(self.table)}"


def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and len(name.encode()) <= _NAME_BYTES


def _place(given: dict[str, object], scheme: str) -> str:
    database = str(given.get("dbname", ""))
    if not database:
        raise LauncherError(f"the address of a {scheme}: source names no database; write {EXAMPLE}")
    host = str(given.get("host", ""))
    host = f"[{host}]" if ":" in host else quote(host, safe=",")
    return f"{host}:{given.get('port', 5432)}/{quote(database, safe='')}"
