"""`iocflow schedule`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, cast

import typer

from iocflow.cli.command import Session, command
from iocflow.cli.files import File, open_app
from iocflow.cli.standings import standing_data, standing_lines
from iocflow.cli.terminal import Terminal, table
from iocflow.container import App
from iocflow.launch import ExitCode
from iocflow.launch.launcher import Launcher
from iocflow.schedule import next_firings
from iocflow.store.errors import StoreError
from iocflow.store.launchers import Standing

__all__ = ["schedule"]

logger = logging.getLogger("iocflow.cli")


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
    """List the next firings of the file's timers, each in its own time zone, and what became of the last ones.

    The last ones are known where the file has a store. Without one, an interval is counted from now, as it would be if
    the daemon started now. Event sources have no firings. Nothing that a container file names is constructed for it.
    """
    now = datetime.now(UTC)
    with session.terminal.reserved(), open_app(session, file, drawn=True) as app:
        launchers = cast(tuple[Launcher, ...], app.section("launchers") or ())
        standings = _standings(app)
        found = [_Timer(each, standings.get(each.name), number, now) for each in launchers]
        if as_json:
            session.terminal.write_json({each.launcher.name: each.data() for each in found})
        else:
            _show(session, file, [each for each in found if each.times or each.standing], now)
    return ExitCode.OK


class _Timer:
    """A launcher with its next firings, and how it stands."""

    def __init__(self, launcher: Launcher, standing: Standing | None, number: int, now: datetime) -> None:
        self.launcher, self.standing = launcher, standing
        self.times = next_firings(launcher, number, now, standing)

    def data(self) -> dict[str, object]:
        """Return it as JSON-able data."""
        times = [time.isoformat() for time in self.times]
        standing = None if self.standing is None else standing_data(self.standing)
        launcher = self.launcher
        return {"trigger": launcher.trigger, "processor": launcher.processor.name, "next": times, "standing": standing}

    def lines(self, terminal: Terminal, now: datetime) -> Iterator[str]:
        """Yield what people read of it."""
        yield f"{self.launcher.name}: {self.launcher.trigger} -> {self.launcher.processor.name}"
        if self.standing is not None:
            yield from (f"  {line}" for line in standing_lines(self.standing, terminal))
        yield from table([(time.isoformat(" ", "seconds"), _until(time, now)) for time in self.times])


def _standings(app: App) -> dict[str, Standing]:
    """Return how the launchers stand; a store that does not answer is no reason to tell nothing."""
    try:
        return app.standings()
    except StoreError as error:
        logger.warning("%s; what became of the last firings is not known", error)
        return {}


def _show(session: Session, file: str, timers: list[_Timer], now: datetime) -> None:
    """Print the firings of each timer, soonest first."""
    if not timers:
        session.terminal.write(f"{file}: no timer will fire")
    for each in timers:
        for line in each.lines(session.terminal, now):
            session.terminal.write(line)


def _until(time: datetime, now: datetime) -> str:
    """Return how long it is to `time`, to the second."""
    return f"in {timedelta(seconds=round((time - now).total_seconds()))}"
