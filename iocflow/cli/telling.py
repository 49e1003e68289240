"""Durable runs and their journals, as people and programs read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from iocflow.cli.terminal import Terminal, table
from iocflow.store.contract import Entry, RunStatus
from iocflow.store.plain import TIMES, run_data

__all__ = ["COLOURS", "history_lines", "run_lines", "runs_lines", "tell_run"]

COLOURS = {
    "completed": "green",
    "running": "cyan",
    "waiting": "cyan",
    "suspended": "yellow",
    "cancelled": "yellow",
    "failed": "red",
}
_WHY = 8
"""The column of a table of runs that may be long, and is the last one."""


def run_lines(run: RunStatus, terminal: Terminal) -> Iterator[str]:
    """Yield what there is to tell of one run."""
    plain = terminal.plain
    state = terminal.styled(run.state, COLOURS.get(run.state, ""))
    outcome = f" ({run.outcome})" if run.outcome and run.outcome != run.state else ""
    yield f"run {run.id}: {plain(run.processor)} of {plain(run.submitter)}, number {plain(run.number)}"
    yield from table([(name, value) for name, value in _facts(run, f"{state}{outcome}", plain) if value])


def tell_run(run: RunStatus, terminal: Terminal, *, as_json: bool) -> None:
    """Write what there is to tell of one run."""
    if as_json:
        terminal.write_json(run_data(run))
        return
    for line in run_lines(run, terminal):
        terminal.write(line)


def runs_lines(
    runs: Sequence[RunStatus], terminal: Terminal, *, more: tuple[str, Sequence[str]] | None = None
) -> list[str]:
    """Return runs as a table, one a line; `more` is a further column with its head."""
    plain = terminal.plain
    head = ["run", "state", "processor", "submitter", "number", "group", "submitted", "activity", "why"]
    rows = [
        [
            str(run.id),
            run.state,
            plain(run.processor),
            plain(run.submitter),
            plain(run.number),
            plain(run.group or ""),
            _local(run.submitted),
            plain(run.activity),
            plain(_waits(run) or run.reason or _error(run.error)),
        ]
        for run in runs
    ]
    for row, cell in zip([head, *rows], (more[0], *more[1]) if more else (), strict=bool(more)):
        row.insert(_WHY, cell)
    paint = terminal.styled
    return table([head, *rows], paint=lambda cell: paint(cell, COLOURS.get(cell.strip(), ""))) if rows else []


def history_lines(entries: Iterable[Entry], terminal: Terminal) -> list[str]:
    """Return a journal as a table, one entry a line."""
    plain = terminal.plain
    return table(
        [
            (
                str(entry.number),
                _local(entry.at),
                entry.kind,
                plain(" ".join(filter(None, (entry.thread, entry.name)))),
                entry.outcome.lower(),
                f"{entry.attempts} attempts" if entry.attempts > 1 else "",
                plain("; ".join(filter(None, (entry.who and f"by {entry.who}", entry.why, _error(entry.error))))),
            )
            for entry in entries
        ]
    )


def _facts(run: RunStatus, state: str, plain: Any) -> Iterator[tuple[str, str]]:
    yield "state", state
    yield "why", plain(run.reason)
    yield "error", plain(_error(run.error))
    yield "group", plain(run.group or "")
    yield "priority", str(run.priority or "")
    yield "activity", plain(run.activity)
    yield "waits", plain(_waits(run))
    yield "steps", str(run.steps or "")
    yield "deliveries", str(run.deliveries or "")
    yield from ((name.replace("_", " "), _local(getattr(run, name))) for name in TIMES)
    yield "spent", str(timedelta(seconds=round(run.spent))) if run.spent >= 1 else f"{run.spent * 1000:.0f} ms"


def _waits(run: RunStatus) -> str:
    """Return what a run waits for, as `for the signal approved until 2027-01-01 06:00:00+00:00`."""
    told = (
        (f"for the signal {one.signal}" if one.signal else "", f"until {_local(one.until)}" if one.until else "")
        for one in run.waits
    )
    return ", ".join(" ".join(filter(None, one)) for one in told)


def _error(error: Mapping[str, Any] | None) -> str:
    return "" if error is None else f"{error.get('type', 'Error')}: {error.get('message', '')}".removesuffix(": ")


def _local(seconds: float | None) -> str:
    """Return a time on the clock of whoever reads it."""
    return "" if seconds is None else datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "seconds")
