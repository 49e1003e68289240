"""From a URL to a store."""

from __future__ import annotations

import importlib
from typing import Any, cast

from iocflow.store.contract import Store
from iocflow.store.errors import StoreUrlError

DIALECTS = {
    "sqlite": "iocflow.store.sqlite.store",
    "postgresql": "iocflow.store.postgres.store",
    "postgres": "iocflow.store.postgres.store",
}
"""The module of each scheme, loaded when it is asked for: it has the functions `check_url` and `open_url`."""


def open_store(url: str, *, create: bool = True) -> Store:
    """Open the store that a URL names; with `create`, make the file and the tables when there are none.

    `sqlite:///var/app.db` is a file beside the working directory, `sqlite:////var/app.db` one from the root;
    `?synchronous=normal` is faster, and may lose the last commits when the power fails. `postgresql://host/database` is
    a database.

    Raises:
        StoreUrlError: The URL names no store, or none that is there, or the extra for it is not installed.
        StoreError: The store cannot be opened, or is newer than this program.
    """
    return cast("Store", _dialect(url).open_url(url, create=create))


def check_url(url: str) -> None:
    """Refuse a URL that names no store; nothing is opened, and nobody is asked whether there is one.

    Raises:
        StoreUrlError: With what is wrong, and behind a semicolon what to write instead; no password is in it.
    """
    _dialect(url).check_url(url)


def _dialect(url: str) -> Any:
    """Return the module for the scheme of a URL."""
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in DIALECTS:
        raise StoreUrlError(f"not the URL of a store, as sqlite:///app.db or postgresql://host/database: {url!r}")
    try:
        return importlib.import_module(DIALECTS[scheme])
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("iocflow"):
            raise
        raise StoreUrlError(f"{scheme}: {error}; pip install 'iocflow[postgres]'") from error
