"""A clock that goes on when a test says so, and an inbox."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iocflow.events.folder import FolderOptions, FolderSource
from iocflow.events.source import Delivery


class Clock:
    """The monotonic clock goes on when a test says so; the wall clock stands still."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> datetime:
        return datetime(2026, 3, 1, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds


class Inbox:
    """A folder source in a real folder, with a clock of its own."""

    def __init__(self, path: Path, options: FolderOptions) -> None:
        self.path = path
        self.options = options
        self.clock = Clock()
        self.source = FolderSource(path, options, self.clock)

    def write(self, name: str | bytes, content: object = None, *, raw: bytes | None = None) -> Path:
        """Put a file in at once; its content is JSON unless it is given raw."""
        path = self.path / (name if isinstance(name, str) else name.decode("utf-8", "surrogateescape"))
        path.write_bytes(json.dumps(content).encode() if raw is None else raw)
        return path

    def look(self, limit: int = 100) -> list[Delivery]:
        """Let an interval go by and receive."""
        self.clock.seconds += self.options.interval.total_seconds()
        return list(self.source.receive(limit, 0.001))

    def settle_down(self, limit: int = 100) -> list[Delivery]:
        """Receive what was put in by now and is not waited for."""
        return self.look(limit) or self.look(limit)

    def out_of_patience(self, limit: int = 100) -> list[Delivery]:
        """Receive after everything was waited for long enough."""
        found = self.settle_down(limit)
        self.clock.seconds += self.options.patience.total_seconds()
        return found + self.look(limit)

    def files(self) -> dict[str, list[str]]:
        """Return the files in each place."""
        return {
            folder: sorted(
                one.name for one in (self.path / folder).iterdir() if not one.is_dir() and one.name != ".lock"
            )
            for folder in ("", "working", "done", "failed")
        }


@pytest.fixture
def make_inbox() -> Iterator[Callable[[Path], Inbox]]:
    """Return a function that opens a source on a folder."""
    made: list[Inbox] = []

    def make(path: Path) -> Inbox:
        made.append(Inbox(path, FolderOptions()))
        made[-1].source.open()
        return made[-1]

    yield make
    for one in made:
        one.source.close()


@pytest.fixture
def inbox(make_inbox: Callable[[Path], Inbox], tmp_path: Path) -> Inbox:
    """Return an open source, in a folder with a blank in its name."""
    return make_inbox(tmp_path / "in box")


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Return a function that waits until a condition holds, ten seconds at most."""

    def wait(condition: Callable[[], bool]) -> None:
        for _ in range(2000):
            if condition():
                return
            threading.Event().wait(0.005)
        raise AssertionError("it never came about")

    return wait
