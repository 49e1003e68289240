"""The daemon's state on a terminal."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

from rich.console import Console

from iocflow.cli.live import drawn
from iocflow.launch.snapshot import DaemonState, InHand, LauncherSnapshot, LauncherState, Snapshot


def lines(snapshot: Snapshot, width: int = 100) -> list[str]:
    """Return what a terminal of that width shows."""
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(drawn(snapshot, lambda text: text.replace("hunter2", "***")))
    return [line.rstrip() for line in console.export_text().splitlines()]


def snapshot(*launchers: LauncherSnapshot) -> Snapshot:
    """Return a daemon with these launchers, one run in hand and two waiting."""
    held = InHand("poll", "fares", "run-1", "", 700.0, True)
    troubles = ("a run of poll is overdue",)
    return Snapshot(DaemonState.RUNNING, False, troubles, launchers, 8, 2, (held,), 1000.0)


def test_a_line_per_launcher_and_one_for_the_daemon() -> None:
    """A line tells name, next firing, state, counts and trigger; the last one how the daemon is."""
    soon = datetime.now(UTC) + timedelta(seconds=30, milliseconds=400)
    counts = {"started": 3, "completed": 2, "nothing_found": 1, "failed": 0}
    poll = LauncherSnapshot("poll", "every", "every 60s", "fares", LauncherState.RUNNING, "", counts, 1, soon)
    mail = LauncherSnapshot("mail", "source", "folder:in[box]", "fares", LauncherState.RETRYING, "no hunter2", {}, 0)
    assert lines(snapshot(poll, mail), width=130) == [
        "poll  next in 30 s  1 in hand  3 started, 2 completed, 1 nothing found  every 60s -> fares",
        "mail                no ***                                              folder:in[box] -> fares",
        "running, 1 in hand, 2 waiting, a run of poll is overdue",
    ]


def test_troubles_cannot_draw() -> None:
    """Control characters in a trouble, which may come from data, are escaped and take no line of their own."""
    mail = LauncherSnapshot("mail", "source", "folder:in", "p", LauncherState.RETRYING, "no\nroute \x1b[2J", {}, 0)
    shown = lines(snapshot(mail))
    assert len(shown) == 2
    assert "no\\nroute \\x1b[2J" in shown[0]


def test_a_narrow_terminal_cuts_lines_instead_of_wrapping_them() -> None:
    """A launcher never takes more than one line."""
    poll = LauncherSnapshot("poll", "every", "every 60s " * 9, "fares", LauncherState.RUNNING, "", {"started": 3}, 1)
    shown = lines(snapshot(poll), width=40)
    assert len(shown) == 2
    assert all(len(line) <= 40 for line in shown)
    assert "…" in shown[0]
