"""The modules of durable runs, whose libraries an extra brings: loaded when asked for, so that others do not pay."""

from __future__ import annotations

import importlib
from typing import Any

from iocflow.errors import IocflowError

__all__ = ["MissingExtraError", "durable"]


class MissingExtraError(IocflowError, ImportError):
    """A library is not installed that durable runs need; the message says which extra brings it."""


def durable(module: str) -> Any:
    """Return a module of `iocflow.durable`.

    Raises:
        MissingExtraError: It needs what is not installed.
    """
    try:
        return importlib.import_module(f"iocflow.durable.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("iocflow"):
            raise
        raise MissingExtraError(
            f'durable runs need {error.name}, which is not installed; pip install "iocflow[durable]"'
        ) from error
