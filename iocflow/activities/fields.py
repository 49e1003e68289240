"""Reading what a context offers, by the names that the container file gives."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import Any

from iocflow.activities.errors import ContextFieldError
from iocflow.errors import UnsetError

__all__ = ["check_path", "read_field", "read_items", "write_field"]


def check_path(path: str, what: str) -> str:
    """Return `path` when it is a dotted path of public names, as in `seed_data.airline_name`.

    Raises:
        ValueError: It is none; `what` names it in the message.
    """
    names = path.split(".") if isinstance(path, str) else []
    if not names or not all(name.isidentifier() and not name.startswith("_") for name in names):
        raise ValueError(f"{what}: {path!r} is no path of a field; write it as in seed_data.airline_name")
    return path


def read_field(holder: object, path: str, reader: str) -> Any:
    """Return the field that the dotted `path` leads to, starting at `holder`.

    Raises:
        ContextFieldError: There is no such field; `reader` is named as the one who asked.
        UnsetError: The field is annotated but not set yet.
    """
    try:
        return functools.reduce(getattr, path.split("."), holder)
    except UnsetError:
        raise
    except AttributeError as error:
        message = f"{reader} reads {path}, but {type(error.obj).__name__} has no field {error.name}"
        raise ContextFieldError(f"{message}; set it before, or name another field") from error


def read_items(holder: object, path: str, reader: str) -> Collection[Any]:
    """Return the field that the dotted `path` leads to, which holds items that can be gone through more than once.

    Raises:
        TypeError: It is a text, whose letters nobody means, a mapping, or holds no items.
        ContextFieldError: There is no such field.
    """
    items = read_field(holder, path, reader)
    if not isinstance(items, Collection) or isinstance(items, str | bytes | bytearray | Mapping):
        raise TypeError(f"{reader}: context.{path} is a {type(items).__name__}; a list or tuple is wanted")
    return items


def write_field(holder: object, path: str, value: object, writer: str) -> None:
    """Set the field that the dotted `path` leads to, starting at `holder`; `writer` is named when there is no way."""
    way, _, name = path.rpartition(".")
    setattr(read_field(holder, way, writer) if way else holder, name, value)
