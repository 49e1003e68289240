"""`iocflow resume`."""

from __future__ import annotations

from iocflow.cli.command import Session, command
from iocflow.cli.standings import standing_data
from iocflow.cli.stores import By, Json
from iocflow.cli.timers import LauncherWords, changed
from iocflow.launch import ExitCode

__all__ = ["resume"]


@command("iocflow resume config/fare_drop_kept.yaml poll-fares")
def resume(session: Session, given: LauncherWords, *, by: By, as_json: Json = False) -> ExitCode:
    """Let a paused timer fire again.

    It goes on with the next moment that is due from now on.
    """
    standing = changed(session, given, by, lambda launchers: launchers.resume)
    if as_json:
        session.terminal.write_json(standing_data(standing))
    else:
        name = session.terminal.plain(standing.name)
        session.terminal.write(f"{name} fires again, at the next moment that is due")
    return ExitCode.OK
