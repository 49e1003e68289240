"""What iocflow's own handlers refuse. They are made for a look, which does nothing, and say it themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from iocflow.container.inspecting.annotations import member_of
from iocflow.error_handling import LoggingErrorHandler, RetryingErrorHandler

__all__ = ["own_handler", "refused"]


def own_handler(cls: type) -> type | None:
    """Return which of iocflow's handlers `cls` is made like, that one's own subclasses too; None when like none."""
    made_by = member_of(cls, "__init__")
    return next((own for own in (RetryingErrorHandler, LoggingErrorHandler) if vars(own)["__init__"] is made_by), None)


def refused(own: type, options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each option that the handler `own` refuses, and why; all of its options may be left out."""
    for name, value in options.items():
        try:
            own(**{name: value})
        except ValueError as error:
            yield name, str(error)
