"""From a URL to a store."""

from __future__ import annotations

import importlib
from typing import cast

from iocflow.store.contract import Store
from iocflow.store.errors import StoreUrlError

DIALECTS = {
    "sqlite": "iocflow.store.sqlite.store",
    "postgresql": "iocflow.store.postgres.store",
    "postgres": "iocflow.store.postgres.store",
}
"""The module of each scheme, loaded when it is asked for: it has a function `open_url`."""


def open_store(url: str, *, create: bool = True) -> Store:
    """Open the store that a URL names; with `create`, make the file and the tables when there are none.

    `sqlite:///var/app.db` is a file beside the working directory, `sqlite:////var/app.db` one from the root;
    `?synchronous=normal` is faster, and may lose the last commits when the power fails. `postgresql://host/database` is
    a database.

    Raises:
        StoreUrlError: The URL names no store, or none that is there, or the extra for it is not installed.
        StoreError: The store cannot be opened, or is newer than this program.
    """
    scheme, colon, _ = url.partition(":")
    if not colon or scheme not in DIALECTS:
        raise StoreUrlError(f"not the URL of a store, as sqlite:///app.db or postgresql://host/database: {url!r}")
    try:
        module = importlib.import_module(DIALECTS[scheme])
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("iocflow"):
            raise
        raise StoreUrlError(f"{scheme}: {error}; pip install 'iocflow[postgres]'") from error
    return cast("Store", module.open_url(url, create=create))
