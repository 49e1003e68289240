"""The daemon on a terminal: a line per launcher, redrawn below the log."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from rich.console import Console
from rich.live import Live
from rich.table import Table

from iocflow.launch.snapshot import LauncherSnapshot, LauncherState, Snapshot

__all__ = ["LiveView"]

REDRAWS = 4
"""Redraws a second: often enough to look alive, too seldom to cost anything."""
ERASE_SECONDS = 0.5
"""How long the last redraw may take; a terminal that was stopped blocks it for ever, and a daemon must end."""

_COLOURS = {
    LauncherState.RUNNING: "green",
    LauncherState.RETRYING: "red",
    LauncherState.STARTING: "yellow",
}


class LiveView:
    """Shows what the daemon's snapshots say until it is closed."""

    def __init__(self, snapshot: Callable[[], Snapshot], mask: Callable[[str], str]) -> None:
        """Begin to draw on standard error; log lines from now on appear above."""
        self._snapshot, self._mask = snapshot, mask
        self._live = Live(
            console=Console(stderr=True), get_renderable=self._table, refresh_per_second=REDRAWS, redirect_stdout=False
        )
        self._live.start()

    def close(self) -> None:
        """Leave the last state on the screen and stop drawing; gives up after a moment."""
        closing = threading.Thread(target=self._live.stop, name="iocflow-live", daemon=True)
        closing.start()
        closing.join(ERASE_SECONDS)

    def _table(self) -> Table:
        now = self._snapshot()
        table = Table.grid(padding=(0, 2))
        for launcher in now.launchers:
            table.add_row(*map(self._mask, _cells(launcher)), style=_COLOURS.get(launcher.state, ""))
        waiting = f", {now.queued} waiting" if now.queued else ""
        table.add_row(
            f"{now.state}, {len(now.in_hand)} in hand{waiting}", *map(self._mask, now.troubles[:1]), style="dim"
        )
        return table


def _cells(launcher: LauncherSnapshot) -> tuple[str, ...]:
    """Return what the line of a launcher says: who, what, how it goes, what it did, when it fires next."""
    counts = "  ".join(f"{number} {name.replace('_', ' ')}" for name, number in launcher.counts.items() if number)
    state = launcher.trouble or (f"{launcher.in_hand} in hand" if launcher.in_hand else launcher.state)
    left = launcher.next_firing and (launcher.next_firing - datetime.now(UTC)).total_seconds()
    due = "" if left is None else f"next in {max(left, 0):,.0f} s"
    return launcher.name, f"{launcher.trigger} -> {launcher.processor}", state, counts, due
