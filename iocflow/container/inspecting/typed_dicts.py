"""A `typing.TypedDict` as pydantic can check it.

Before Python 3.12 that keeps of its bases nothing but their keys, and pydantic asks for the one of `typing_extensions`.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable
from typing import Any, NotRequired, Required, get_args, get_origin

from typing_extensions import TypedDict

from iocflow.container.inspecting.annotations import UNKNOWN, resolved

__all__ = ["checkable", "is_foreign", "keys_of"]


def is_foreign(cls: Any) -> bool:
    """Whether `cls` is a TypedDict that pydantic refuses."""
    return sys.version_info < (3, 12) and typing.is_typeddict(cls)


def keys_of(cls: Any) -> dict[str, tuple[Any, bool]]:
    """Return the annotation of each key of a TypedDict, and whether the key is needed."""
    hints = resolved(cls)
    return {key: _qualified(hints.get(key, UNKNOWN), key in cls.__required_keys__) for key in cls.__annotations__}


def checkable(cls: Any, understood: Callable[[Any], Any], known: dict[Any, Any]) -> Any:
    """Return a TypedDict with the same keys that pydantic takes.

    Args:
        cls: The `typing.TypedDict`.
        understood: Returns the annotation of a key as pydantic is to have it.
        known: What was made so far, by class: one may hold itself.
    """
    if cls not in known:
        keys = keys_of(cls)
        made = known[cls] = TypedDict(cls.__name__, dict.fromkeys(keys, Any))  # type: ignore[operator]
        made.__doc__, made.__module__ = cls.__doc__, cls.__module__
        for key, (hint, needed) in keys.items():
            annotation = Any if hint is UNKNOWN else understood(hint)
            made.__annotations__[key] = Required[annotation] if needed else NotRequired[annotation]
    return known[cls]


def _qualified(hint: Any, needed: bool) -> tuple[Any, bool]:
    """Return an annotation without what says whether its key is needed; the class does not see that in a text."""
    if get_origin(hint) in (Required, NotRequired):
        return get_args(hint)[0], get_origin(hint) is Required
    return hint, needed
