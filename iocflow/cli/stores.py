"""Where durable runs are, and which one is meant: the words of the commands that look at them and change them."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Protocol

import typer

from iocflow.cli.command import Json, Session, UsageError
from iocflow.cli.files import is_module, open_app, require_file
from iocflow.container import Secrets
from iocflow.container.clients import client, is_url, store_url
from iocflow.durable.client import Client
from iocflow.durable.errors import SubmitError
from iocflow.durable.section import password_of
from iocflow.store.errors import StoreUrlError

__all__ = [
    "By",
    "Json",
    "RunWords",
    "SeveralWords",
    "StoreWords",
    "Words",
    "client_of",
    "no_more",
    "one_run",
    "several_runs",
]

_FILE = typer.Argument(metavar="FILE", help="The container file, or MODULE:APP; left out with --store.")
_STORE = typer.Option(
    "--store", metavar="URL", help="The store itself, in place of FILE, as sqlite:///var/app.db or postgresql://…"
)


@dataclass(frozen=True, slots=True)
class StoreWords:
    """Which store is meant."""

    file: Annotated[str | None, _FILE] = None
    store: Annotated[str | None, _STORE] = None

    @property
    def words(self) -> list[str]:
        """What stands on the command line, FILE first unless there is a store."""
        return [word for word in (self.file,) if word is not None]


@dataclass(frozen=True, slots=True)
class RunWords:
    """Which store, and which run in it."""

    file: Annotated[str | None, _FILE] = None
    run: Annotated[str | None, typer.Argument(metavar="RUN|SUBMITTER", help="The run's id, or who submitted it.")] = (
        None
    )
    number: Annotated[str | None, typer.Argument(metavar="NUMBER", help="The submitter's own number.")] = None
    store: Annotated[str | None, _STORE] = None

    @property
    def words(self) -> list[str]:
        """What stands on the command line, FILE first unless there is a store."""
        return [word for word in (self.file, self.run, self.number) if word is not None]


@dataclass(frozen=True, slots=True)
class SeveralWords:
    """Which store, and which runs in it."""

    file: Annotated[str | None, _FILE] = None
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN|SUBMITTER NUMBER", help="The ids of runs, or who submitted one and its number."),
    ] = None
    store: Annotated[str | None, _STORE] = None

    @property
    def words(self) -> list[str]:
        """What stands on the command line, FILE first unless there is a store."""
        return [word for word in (self.file, *(self.runs or ())) if word is not None]


class Words(Protocol):
    """What names a store, and maybe something in it."""

    @property
    def store(self) -> str | None:
        """What `--store` gives."""

    @property
    def words(self) -> list[str]:
        """What stands on the command line, FILE first unless there is a store."""


@dataclass(frozen=True, slots=True)
class By:
    """Who does something to a run, and why: both stand in its journal."""

    who: Annotated[
        str | None, typer.Option("--who", metavar="NAME", help="Who does it; the user of this process by default.")
    ] = None
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="Why, for the journal.")] = ""

    def journalled(self) -> dict[str, str]:
        """Return what the journal gets."""
        return {"who": self.who or _user(), "why": self.why}


@contextmanager
def client_of(session: Session, given: Words) -> Iterator[tuple[Client, list[str]]]:
    """Lend a client of what the command line names, with the words that are left.

    Nothing that a container file names is imported for it.

    Args:
        session: What the command works with.
        given: What the command line says.

    Raises:
        UsageError: There is neither FILE nor store, or it is not there; or what the client was told cannot be.
        StoreError: The store cannot be opened.
    """
    try:
        with _opened(session, given) as found:
            yield found
    except SubmitError as error:
        raise UsageError(str(error)) from error


@contextmanager
def _opened(session: Session, given: Words) -> Iterator[tuple[Client, list[str]]]:
    left, store = given.words, given.store
    if store is None and not left:
        raise UsageError("name the container file, or the store by --store URL")
    if store is None and is_module(left[0]):
        with open_app(session, left[0]) as app:
            yield app.client, left[1:]
        return
    url = _url(session, left[0]) if store is None else _own_url(session, store)
    try:
        found = client(url)
    except StoreUrlError as error:
        raise UsageError(str(error)) from error
    try:
        yield found, left if store is not None else left[1:]
    finally:
        found.close()


def no_more(words: Sequence[str]) -> None:
    """Refuse words that nobody asked for.

    Raises:
        UsageError: There is one.
    """
    if words:
        raise UsageError(f"{words[0]} is one word too many; one run is told of by `iocflow status`")


def one_run(words: Sequence[str]) -> tuple[str, ...]:
    """Return what names one run.

    Raises:
        UsageError: It is neither an id nor submitter and number.
    """
    if len(words) == 1 and not words[0].isdecimal():
        raise UsageError(f"{words[0]} is no id of a run; name it by its id, or by SUBMITTER NUMBER")
    if len(words) not in (1, 2):
        raise UsageError("name one run, by its id, or by SUBMITTER NUMBER")
    return tuple(words)


def several_runs(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return what names each of several runs: their ids, or submitter and number of one.

    Raises:
        UsageError: It is neither.
    """
    if all(word.isdecimal() for word in words):
        return [(word,) for word in words]
    try:
        return [one_run(words)]
    except UsageError as error:
        raise UsageError(f"{error}; several runs are named by their ids") from None


def _url(session: Session, file: str) -> str:
    if is_url(file):
        raise UsageError(f"{file} is a URL; write --store {file}")
    require_file(file)
    secrets = Secrets()
    session.mask(secrets.mask)
    return store_url(file, profiles=session.profiles, values=session.values, secrets=secrets)


def _own_url(session: Session, url: str) -> str:
    if not is_url(url):
        raise UsageError(f"--store {url} is no URL; write sqlite:///PATH, or postgresql://USER@HOST/DATABASE")
    if session.profiles or session.values:
        raise UsageError("--profile and --set are for container files; with --store there is none")
    secrets = Secrets()
    secrets.add(password_of(url))
    session.mask(secrets.mask)
    return url


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # there is no name for its number
        return str(os.getuid())
