"""What the container files of these tests wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iocflow.context import ProcessContext


class Ctx(ProcessContext):
    """A context whose seed is a dictionary."""

    seed_data: dict[str, Any]


def act(context: Ctx) -> None:
    """Do nothing."""


class Finder:
    """A polling bean."""

    def poll(self) -> Iterator[dict[str, Any]]:
        """Yield one seed."""
        yield {"a": 1}
