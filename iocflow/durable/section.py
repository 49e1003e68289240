"""The sections `store:` and `worker:` of a container file."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from iocflow.wiring import Node, Scope, Table, Wired, did_you_mean
from iocflow.wiring.schemas import duration_schema, number
from iocflow.wiring.settings import Bounds, read_settings

__all__ = ["StoreReader", "StoreSettings", "WorkerReader", "password_of"]

_SCHEMES = ("sqlite", "postgresql", "postgres")
_EXAMPLE = "write `store: sqlite:///var/app.db`, or postgresql://USER@HOST/DATABASE"
_BOUNDS: Bounds = {
    "threads": (1, 1000),
    "lease": (timedelta(milliseconds=100), timedelta(hours=1)),
    "tick": (timedelta(milliseconds=10), timedelta(minutes=10)),
    "deliveries": (1, 1000),
    "window": (1, 100_000),
    "retention": (timedelta(seconds=1), timedelta(days=36_500)),
}
_WORKER: dict[str, Any] = {
    "threads": number("How many activities of a worker run at once; 8 by default.", 1, 1000),
    "lease": duration_schema("After what silence a worker is taken for dead; 30s by default."),
    "tick": duration_schema("How often a worker looks for dead ones and for what is due; 5s by default."),
    "deliveries": number("With how many deaths of workers a run is suspended as poison; 5 by default.", 1, 1000),
    "window": number("The most runs that a worker has in hand; 1024 by default.", 1, 100_000),
    "retention": duration_schema("How long after their end the contexts of runs are kept; 30d by default."),
}


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where durable runs are stored: a URL, as `sqlite:///var/app.db`."""

    url: str


class StoreReader:
    """Reads the section `store:`; `app.section("store")` is a `StoreSettings`. No store is opened for it."""

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the section."""
        what = "Where durable runs are kept: sqlite:///PATH, or postgresql://USER@HOST/DATABASE."
        return {"description": what, "type": "string", "pattern": r"^(sqlite|postgres(ql)?)://|\$\{"}

    def read(self, section: Node, scope: Scope) -> Callable[[Wired], StoreSettings]:
        """Check the URL; return the builder of the settings."""
        url = self.url(section, scope)
        return lambda _: StoreSettings(url)

    def url(self, section: Node, scope: Scope) -> str:
        """Return the URL, empty when it is noted that it is none."""
        if isinstance(section, Table):
            where = "; what workers do stands in `worker:`" if set(section.entries) & set(_BOUNDS) else ""
            scope.findings.error(section.place, "`store` is a mapping, and should be a URL", f"{_EXAMPLE}{where}")
            return ""
        url: str | None = scope.coerce(section, str, "the URL of the store")
        if url is None:
            return ""
        if password := password_of(url):
            scope.hide(password)
        lacking = _lacking(url)
        fault = _fault(url) or (None if scope.elsewhere else lacking) or (None if lacking else _refused(url))
        if fault:
            scope.findings.error(section.place, *fault)
        return url


class WorkerReader:
    """Reads the section `worker:`; `app.section("worker")` is a dict of what it gives, durations in seconds."""

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the section."""
        return {"type": "object", "properties": _WORKER, "additionalProperties": False}

    def read(self, section: Node, scope: Scope) -> Callable[[Wired], dict[str, Any]]:
        """Check the section; return the builder of the settings."""
        if not isinstance(section, Table):
            scope.findings.error(section.place, "`worker` is no mapping", "write `worker: {threads: 8, lease: 30s}`")
            return lambda _: {}
        given = {
            key: value.total_seconds() if isinstance(value, timedelta) else value
            for key, value in read_settings(section, _BOUNDS, "the worker", scope).items()
        }
        return lambda _: given


def password_of(url: str) -> str:
    """Return the password in a URL, empty without one."""
    try:
        parts = urlsplit(url)
        return unquote(parts.password or "") or dict(parse_qsl(parts.query)).get("password", "")
    except ValueError:
        return ""


def _fault(url: str) -> tuple[str, str] | None:
    """Return what is wrong with the scheme of a URL, without a word of the rest, and what to write instead."""
    scheme, separator, _ = url.partition("://")
    if not separator:
        return "the store is no URL", _EXAMPLE
    if scheme not in _SCHEMES:
        return f"there is no store of the kind `{scheme}`", did_you_mean(scheme, _SCHEMES[:2])
    return None


def _refused(url: str) -> tuple[str, str] | None:
    """Return what the store itself says against its URL, and what to write instead."""
    opening = importlib.import_module("iocflow.store.opening")  # who has no store pays nothing for them
    try:
        opening.check_url(url)
    except opening.StoreUrlError as error:
        what, _, remedy = str(error).partition("; ")
        return what, remedy
    return None


def _lacking(url: str) -> tuple[str, str] | None:
    """Return what is not installed and a store of that kind needs, and how to get it."""
    if not url.startswith("sqlite") and importlib.util.find_spec("psycopg") is None:
        return "a PostgreSQL store needs psycopg, which is not installed", 'pip install "iocflow[postgres]"'
    return None
