"""`iocflow schedule`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, cast

import typer

from iocflow.cli.command import Session, command
from iocflow.cli.files import File, open_app
from iocflow.cli.terminal import table
from iocflow.launch import ExitCode
from iocflow.launch.launcher import Launcher
from iocflow.schedule import next_firings

__all__ = ["schedule"]


@command(
    "iocflow schedule config/fare_drop.yaml",
    "iocflow schedule config/fare_drop.yaml -n 20 --json",
)
def schedule(
    session: Session,
    file: File,
    number: Annotated[int, typer.Option("-n", "--number", min=1, max=1000, help="How many firings of each timer.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: times by launcher.")] = False,
) -> ExitCode:
    """List the next firings of the file's timers, each in its own time zone.

    An interval is counted from now, as it would be if the daemon started now. Event sources have no firings. Nothing
    that a container file names is constructed for it.
    """
    now = datetime.now(UTC)
    with session.terminal.reserved(), open_app(session, file, drawn=True) as app:
        launchers = cast(tuple[Launcher, ...], app.section("launchers") or ())
        found = [(each, next_firings(each, number, now)) for each in launchers]
        if as_json:
            session.terminal.write_json({each.name: _as_data(each, times) for each, times in found})
        else:
            _show(session, file, found, now)
    return ExitCode.OK


def _show(session: Session, file: str, found: list[tuple[Launcher, list[datetime]]], now: datetime) -> None:
    """Print the firings of each timer, soonest first."""
    if not any(times for _, times in found):
        session.terminal.write(f"{file}: no timer will fire")
    for each, times in found:
        if times:
            session.terminal.write(f"{each.name}: {each.trigger} -> {each.processor.name}")
            for line in table([(time.isoformat(" ", "seconds"), _until(time, now)) for time in times]):
                session.terminal.write(line)


def _as_data(launcher: Launcher, times: list[datetime]) -> dict[str, object]:
    next_times = [time.isoformat() for time in times]
    return {"trigger": launcher.trigger, "processor": launcher.processor.name, "next": next_times}


def _until(time: datetime, now: datetime) -> str:
    """Return how long it is to `time`, to the second."""
    return f"in {timedelta(seconds=round((time - now).total_seconds()))}"
