"""The modules whose libraries extras bring: loaded when they are asked for, so that others do not pay."""

from __future__ import annotations

import importlib
from typing import Any

from iocflow.errors import IocflowError

__all__ = ["MissingExtraError", "extra"]

_BRINGS = {
    "psycopg": ("durable runs need", "postgres"),
    "h11": ("to serve HTTP needs", "http"),
    "amqp": ("brokers need", "broker"),
    "kombu": ("brokers need", "broker"),
    "redis": ("brokers need", "broker"),
    "prometheus_client": ("metrics need", "metrics"),
}
"""By library: what needs it, and which extra brings it."""


class MissingExtraError(IocflowError, ImportError):
    """A library is not installed that something needs; the message says which extra brings it."""


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
        what, name = _BRINGS.get(library, ("durable runs need", "durable"))
        raise MissingExtraError(f'{what} {library}, which is not installed; pip install "iocflow[{name}]"') from error
