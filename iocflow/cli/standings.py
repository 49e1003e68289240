"""How scheduled launchers stand in a store, as people and programs read it; and the commands that change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from iocflow.cli.command import FailureError, Session, UsageError
from iocflow.cli.stores import By, client_of
from iocflow.cli.terminal import Terminal
from iocflow.store.launchers import Launchers, Standing
from iocflow.wiring import did_you_mean

__all__ = ["LauncherWords", "changed", "standing_data", "standing_lines"]

_TIMES = ("since", "upto", "began", "ended", "at")


@dataclass(frozen=True, slots=True)
class LauncherWords:
    """Which store, and which launcher in it."""

    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="The container file, or MODULE:APP; left out with --store."),
    ] = None
    launcher: Annotated[str | None, typer.Argument(metavar="LAUNCHER", help="The id of a scheduled launcher.")] = None
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="URL", help="The store itself, in place of FILE, as postgresql://…"),
    ] = None

    @property
    def words(self) -> list[str]:
        """What stands on the command line, FILE first unless there is a store."""
        return [word for word in (self.file, self.launcher) if word is not None]


def changed(
    session: Session, given: LauncherWords, by: By, change: Callable[[Launchers], Callable[..., bool]]
) -> Standing:
    """Change how a launcher stands; return how it does now.

    Raises:
        UsageError: No launcher is named.
        FailureError: The store knows none of that name.
    """
    with client_of(session, given) as (client, left):
        if len(left) != 1:
            raise UsageError("name one launcher, behind the FILE or --store URL")
        launchers = client.store.launchers
        if not change(launchers)(left[0], **by.journalled()):
            known = [one.name for one in launchers.standings()]
            hint = did_you_mean(left[0], known) if known else "a daemon makes it known (iocflow serve FILE)"
            raise FailureError(f"no daemon ever served a scheduled launcher `{left[0]}` over this store; {hint}")
        (found,) = launchers.standings(left)
        return found


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
