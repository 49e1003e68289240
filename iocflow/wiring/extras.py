"""The modules of durable runs, whose libraries extras bring: loaded when asked for, so that others do not pay."""

from __future__ import annotations

import importlib
from typing import Any

from iocflow.errors import IocflowError

__all__ = ["MissingExtraError", "extra"]

_BRINGS = {"psycopg": "postgres"}


class MissingExtraError(IocflowError, ImportError):
    """A library is not installed that durable runs need; the message says which extra brings it."""


def extra(module: str) -> Any:
    """Return a module of iocflow, as `durable.engine`, that is imported now.

    Raises:
        MissingExtraError: It needs what is not installed.
    """
    try:
        return importlib.import_module(f"iocflow.{module}")
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library == "iocflow":
            raise
        name = _BRINGS.get(library, "durable")
        raise MissingExtraError(
            f'durable runs need {library}, which is not installed; pip install "iocflow[{name}]"'
        ) from error
