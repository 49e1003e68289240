"""The daemon on a terminal: a line per launcher, redrawn below the log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from iocflow.launch.leaving import within
from iocflow.launch.snapshot import LauncherSnapshot, LauncherState, Snapshot
from iocflow.launch.texts import printable

__all__ = ["LiveView", "drawn"]

REDRAWS = 4
"""Redraws a second: often enough to look alive, too seldom to cost anything."""
ERASE_SECONDS = 0.5
"""How long the last redraw may take; a terminal that was stopped blocks it for ever, and a daemon must end."""

COLUMNS = 5
_COLOURS = {
    LauncherState.RUNNING: "green",
    LauncherState.RETRYING: "red",
    LauncherState.STARTING: "yellow",
}


class LiveView:
    """Shows what the daemon's snapshots say until it is closed."""

    def __init__(self, snapshot: Callable[[], Snapshot], mask: Callable[[str], str]) -> None:
        """Begin to draw on standard error; log lines from now on appear above."""
        self._live = Live(
            console=Console(stderr=True, soft_wrap=True),  # log lines stay whole; the terminal wraps them
            get_renderable=lambda: drawn(snapshot(), mask),
            refresh_per_second=REDRAWS,
            redirect_stdout=False,
        )
        self._live.start()

    def close(self) -> None:
        """Leave the last state on the screen and stop drawing; gives up after a moment."""
        within(ERASE_SECONDS, self._live.stop)


def drawn(now: Snapshot, mask: Callable[[str], str]) -> Group:
    """Return a snapshot as one line per launcher, and one for the daemon."""
    table = Table.grid(padding=(0, 2))
    for _ in range(COLUMNS):
        table.add_column(no_wrap=True, overflow="ellipsis")
    for launcher in now.launchers:
        # As `Text`, because rich would take brackets in a plain string for markup.
        cells = (Text(printable(mask(cell))) for cell in _cells(launcher))
        table.add_row(*cells, style=_COLOURS.get(launcher.state, ""))
    waiting = f", {now.queued} waiting" if now.queued else ""
    troubles = "".join(f", {printable(mask(trouble))}" for trouble in now.troubles)
    status = f"{now.state}, {len(now.in_hand)} in hand{waiting}{troubles}"
    return Group(table, Text(status, style="dim", no_wrap=True, overflow="ellipsis"))


def _cells(launcher: LauncherSnapshot) -> tuple[str, ...]:
    """Return what the line of a launcher says: who, when next, how it goes, what it did, by what and of what."""
    counts = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in launcher.counts.items() if number)
    state = launcher.trouble or (f"{launcher.in_hand} in hand" if launcher.in_hand else launcher.state)
    left = launcher.next_firing and (launcher.next_firing - datetime.now(UTC)).total_seconds()
    due = "" if left is None else f"next in {max(left, 0):,.0f} s"
    return launcher.name, due, state, counts, f"{launcher.trigger} -> {launcher.processor}"
