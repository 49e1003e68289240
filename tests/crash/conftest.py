"""What is killed, and where: each test of a store runs once for each kind, with a nursery for its processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.crash.benches import BENCHES, Bench
from tests.crash.nursery import Nursery, nursery
from tests.crash.order import Mode
from tests.crash.scene import Scene


@pytest.fixture(name="nursery")
def _nursery(tmp_path: Path, root: Path) -> Iterator[Nursery]:
    """Return a nursery; whatever happens in the test, no process is left."""
    with nursery(tmp_path, root) as one:
        yield one


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.service("postgres"))])
def bench(request: pytest.FixtureRequest) -> Bench:
    """Return an empty database."""
    return BENCHES[request.param](request)


@pytest.fixture
def scene(bench: Bench, nursery: Nursery, tmp_path: Path) -> Iterator[Callable[[Mode], Scene]]:
    """Return what makes a scene; in the end, the doctor looks at its store."""
    with ExitStack() as stack:

        def make(mode: Mode) -> Scene:
            one = Scene(bench, nursery, tmp_path, mode)
            stack.callback(one.close)
            return one

        yield make
