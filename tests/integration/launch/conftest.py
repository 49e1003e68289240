"""Daemons with an `http:` source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.launch.web import Web

Make = Callable[..., Web]


@pytest.fixture
def make() -> Iterator[Make]:
    """Return a function that starts a daemon with an `http:` source."""
    made: list[Web] = []

    def start(*arguments: Any, **options: Any) -> Web:
        made.append(Web(*arguments, **options))
        return made[-1].start()

    yield start
    for one in made:
        one.stop()


@pytest.fixture
def web(make: Make) -> Web:
    """Return a daemon whose runs are not durable."""
    return make()


@pytest.fixture
def durable(make: Make, tmp_path: Path) -> Web:
    """Return a daemon whose runs are recorded, and worked on by nobody."""
    return make(store=f"sqlite:///{tmp_path}/app.db")
