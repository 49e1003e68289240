"""How scheduled launchers stand in a store, as people and programs read it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from iocflow.cli.terminal import Terminal
from iocflow.store.launchers import Standing

__all__ = ["standing_data", "standing_lines"]

_TIMES = ("since", "upto", "began", "ended", "at")


def standing_data(standing: Standing) -> dict[str, Any]:
    """Return how a launcher stands as JSON-able data; times are ISO 8601 in UTC."""
    data = standing._asdict()
    return {**data, **{name: data[name] and _moment(data[name]).isoformat() for name in _TIMES}}


def standing_lines(standing: Standing, terminal: Terminal) -> list[str]:
    """Return what there is to tell of a launcher beside its next firings."""
    plain, lines = terminal.plain, []
    if standing.paused:
        lines.append(f"{terminal.styled('paused', 'yellow')}{_act(standing, plain)}")
    if waiting := standing.asked - standing.answered:
        lines.append(f"asked for {waiting} firing{'' if waiting == 1 else 's'}{_act(standing, plain)}")
    if standing.began is not None and standing.ended is None:
        state = "in hand" if standing.busy else "lost with its daemon, and begun anew when one serves it"
        lines.append(f"the tick that began at {_shown(standing.began)} is {state}")
    if standing.fired and standing.ended is not None:
        run = f", run {plain(standing.run)}" if standing.run else ""
        lines.append(f"last: {plain(standing.outcome)}{run}, {_shown(standing.ended)}")
    if standing.fired or standing.missed:
        lines.append(f"fired {standing.fired}, missed {standing.missed}, since {_shown(standing.since)}")
    return lines


def _act(standing: Standing, plain: Callable[[str], str]) -> str:
    who = f" by {plain(standing.who)}" if standing.who else ""
    when = f" at {_shown(standing.at)}" if standing.at is not None else ""
    return f"{who}{when}{f': {plain(standing.why)}' if standing.why else ''}"


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _shown(seconds: float) -> str:
    """Return a moment in the machine's time zone."""
    return _moment(seconds).astimezone().isoformat(" ", "seconds")
