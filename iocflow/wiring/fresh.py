"""Fields of a context that would not be fresh in each run."""

from __future__ import annotations

import dataclasses
import inspect

SHARED = "its default is one object that all runs would share, and no record has it; set it in an activity"
"""Why a default that can be changed is none."""

_UNMADE = "its default is a `field(...)`, which only a dataclass makes one of; write `@dataclass` above the class"


def unfresh(context: type, name: str) -> str | None:
    """Return why a field of a context class cannot have its default, None when it can."""
    default = inspect.getattr_static(context, name, None)
    if isinstance(default, dataclasses.Field):
        return _UNMADE
    return SHARED if type(default).__hash__ is None else None  # as dataclasses judge it


def unfresh_fields(context: type) -> dict[str, str]:
    """Return the annotated fields of a context class that cannot have their defaults, each with the reason."""
    names = dict.fromkeys(name for base in reversed(context.__mro__) for name in inspect.get_annotations(base))
    found = {name: unfresh(context, name) for name in names if not name.startswith("_")}
    return {name: why for name, why in found.items() if why is not None and not _is_of_class(context, name)}


def _is_of_class(context: type, name: str) -> bool:
    """Return whether a name is annotated as a class variable."""
    owner = next(base for base in context.__mro__ if name in inspect.get_annotations(base))
    annotation = inspect.get_annotations(owner)[name]
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.removeprefix("typing.").startswith("ClassVar")
