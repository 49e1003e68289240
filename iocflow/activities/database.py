"""Connections to a SQL database, each opened for one unit of work."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

from iocflow.activities.arguments import Rule, chosen, complaints, demanded, keep
from iocflow.activities.errors import DatabaseBusyError, DatabaseError

__all__ = ["Connection", "ConnectionFactory", "Database", "DatabaseSource", "as_database", "check_name", "rows_of"]

_BUSY_TIMEOUT_S = 5.0
"""Seconds to wait for a SQLite file that others have locked; what the sqlite3 module waits by default."""


class Connection(Protocol):
    """What is used of a DB-API 2.0 connection."""

    def cursor(self) -> Any:
        """Return a new cursor."""

    def commit(self) -> None:
        """Keep what was changed."""

    def rollback(self) -> None:
        """Undo what was changed since the last commit."""

    def close(self) -> None:
        """End the connection."""


ConnectionFactory = Callable[[], Connection]

ParamStyle = Literal["qmark", "format"]


class Database:
    """Where an activity finds its database: a SQLite file, or a factory of DB-API connections to any other.

    Every unit of work opens a connection of its own, so that one object serves any number of threads and nothing stays
    locked between two of them.
    """

    def __init__(
        self,
        source: str | Path | ConnectionFactory,
        *,
        create: bool = False,
        busy_timeout: float = _BUSY_TIMEOUT_S,
        paramstyle: ParamStyle = "qmark",
    ) -> None:
        """Take the place; nothing is opened yet.

        Args:
            source: A path, a URL (`sqlite:///relative.db`, `sqlite:////absolute.db`), or a function without arguments
                that returns a new DB-API connection.
            create: Whether a missing SQLite file is made, with its folder; otherwise it is an error.
            busy_timeout: Seconds to wait for a SQLite file that others have locked.
            paramstyle: How the factory's driver marks parameters: `?` (qmark) or `%s` (format).

        Raises:
            ValueError: `source` names no file, or a database that needs a factory; `busy_timeout` is negative, or
                `paramstyle` neither word.
        """
        keep(_rules({"source": source, "busy_timeout": busy_timeout, "paramstyle": paramstyle}))
        self._factory: ConnectionFactory | None = source if callable(source) else None
        self.path = "" if callable(source) else _path_of(str(source))
        self.paramstyle = paramstyle if callable(source) else "qmark"
        self.create = create
        self.busy_timeout = busy_timeout

    @classmethod
    def check_arguments(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Yield what the constructor would refuse."""
        return complaints(_rules(arguments)) if cls.__init__ is Database.__init__ else ()

    def __str__(self) -> str:
        """Return the path, or what the factory is called."""
        return self.path or getattr(self._factory, "__qualname__", "the database")

    @contextlib.contextmanager
    def connect(self, remaining: float | None = None) -> Iterator[Connection]:
        """Open a connection; commit at the end of the block, roll back when it raises, close it in both cases.

        Args:
            remaining: Seconds that are left of a step's time limit: a locked file is not waited for any longer.

        Raises:
            DatabaseBusyError: A SQLite file stayed locked.
            DatabaseError: SQLite cannot open the file, or refused a statement of the block.
        """
        wait = self.busy_timeout if remaining is None else min(self.busy_timeout, remaining)
        try:
            with contextlib.closing(self._open(wait)) as connection:
                try:
                    yield connection
                    connection.commit()
                except BaseException:
                    connection.rollback()
                    raise
        except sqlite3.Error as error:
            raise self._told(error, wait) from error

    def marked(self, statement: str) -> str:
        """Return `statement`, whose parameters are marked `?`, as the driver wants it."""
        return statement if self.paramstyle == "qmark" else statement.replace("?", "%s")

    def _open(self, wait: float) -> Connection:
        if self._factory is not None:
            return self._factory()
        file = Path(self.path).absolute()
        if self.create:
            self._make_folder(file.parent)
        opened: Connection = sqlite3.connect(
            f"{file.as_uri()}?mode={'rwc' if self.create else 'rw'}", uri=True, timeout=wait
        )
        return opened

    def _make_folder(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DatabaseError(f"{self}: the folder {folder} cannot be made: {error.strerror}") from error

    def _told(self, error: sqlite3.Error, wait: float) -> DatabaseError:
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            remedy = "try again, or wait longer (busy_timeout)"
            return DatabaseBusyError(f"{self}: locked by others for {wait:g} s; {remedy}")
        if code == sqlite3.SQLITE_CANTOPEN and self.path:
            return DatabaseError(f"{self}: {self._why_closed()}")
        return DatabaseError(f"{self}: {error}")

    def _why_closed(self) -> str:
        """Return why SQLite, which does not say it, cannot open the file."""
        file = Path(self.path).absolute()
        if file.is_dir():
            return "this is a folder; name a file in it"
        if file.exists():
            return "the database file cannot be opened; see to its rights and those of its folder"
        if not self.create:
            return "there is no such database file; create it, or correct the path"
        try:
            file.touch()
        except OSError as error:
            return f"the database file cannot be made: {error.strerror}; see to the rights of {file.parent}"
        return "the database file could not be made; try again"


DatabaseSource = str | Path | ConnectionFactory | Database
"""What an activity takes as its database."""


def as_database(source: DatabaseSource, *, create: bool = False) -> Database:
    """Return `source` itself when it is a database, with its own options, else the database there."""
    return source if isinstance(source, Database) else Database(source, create=create)


def check_name(name: str, what: str) -> str:
    """Return `name` when it can be a table's or column's name without quotes, else raise a ValueError about `what`.

    Names go into SQL text, where no parameter can stand; so nothing but letters, digits and `_` is let in.
    """
    if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
        raise ValueError(f"{what}: {name!r} cannot be a name in SQL here; use letters, digits and _ only")
    return name


def quoted(name: str) -> str:
    """Return a name that `check_name` let in as it stands in SQL text: `order` and other words of SQL can be names.

    Quoted names keep their case on PostgreSQL, where others lose it; so they lose it here.
    """
    return f'"{name.lower()}"'


def rows_of(cursor: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of an executed query, each by its columns' names."""
    names = [column[0] for column in cursor.description or ()]
    while rows := cursor.fetchmany(100):
        yield from (dict(zip(names, row, strict=True)) for row in rows)


def _path_of(source: str) -> str:
    scheme, separator, rest = source.partition("://")
    if separator and scheme != "sqlite":
        raise ValueError(f"{scheme}: only SQLite is opened by a URL; for others hand over a function that connects")
    path = rest.removeprefix("/") if separator else source
    if not path or path == ":memory:":
        raise ValueError(f"database {source!r} names no file; write a path, as in var/fares.db")
    return path


def _rules(given: Mapping[str, Any]) -> Iterator[Rule]:
    """Yield the rules about the options that are `given`."""
    if "source" in given and not callable(given["source"]):
        yield "source", partial(_path_of, str(given["source"]))
    if "busy_timeout" in given:
        fits = isinstance(given["busy_timeout"], int | float) and given["busy_timeout"] >= 0
        yield demanded("busy_timeout", fits, f"write 0 seconds or more, as a number, not {given['busy_timeout']!r}")
    yield from chosen(given, "paramstyle", ParamStyle)
