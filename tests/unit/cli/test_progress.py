"""How far long work is, on standard error."""

from __future__ import annotations

import pytest

from iocflow.cli import progress
from iocflow.cli.progress import Progress
from iocflow.cli.terminal import Terminal


class Live(Terminal):
    """A terminal on which a line can be redrawn."""

    @property
    def live(self) -> bool:
        return True


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every look be a telling one."""
    monkeypatch.setattr(progress, "_REDRAW", 0.0)
    monkeypatch.setattr(progress, "_LINE", 0.0)


@pytest.mark.usefixtures("always")
def test_a_line_is_redrawn_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal one line says how much is done, and is gone at the end."""
    with Progress(Live(), "submitted") as told:
        told.at(500)
        told.at(1000)
    assert capsys.readouterr().err == "\r500 submitted\x1b[K\r1,000 submitted\x1b[K\r\x1b[K"


@pytest.mark.usefixtures("always")
def test_lines_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    """In a log each telling is a line of its own."""
    with Progress(Terminal(), "purged") as told:
        told.at(1000)
    assert capsys.readouterr().err == "1,000 purged\n"


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """What takes no time is not told of."""
    with Progress(Terminal(), "purged") as told:
        told.at(3)
    assert capsys.readouterr().err == ""
