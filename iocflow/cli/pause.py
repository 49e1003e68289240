"""`iocflow pause`."""

from __future__ import annotations

from iocflow.cli.command import Session, command
from iocflow.cli.standings import standing_data
from iocflow.cli.stores import By, Json
from iocflow.cli.timers import LauncherWords, changed
from iocflow.launch import ExitCode

__all__ = ["pause"]


@command("iocflow pause config/fare_drop_kept.yaml poll-fares")
def pause(session: Session, given: LauncherWords, *, by: By, as_json: Json = False) -> ExitCode:
    """Let a timer fire no more, until it is resumed.

    What is due meanwhile is passed over, and is not made up for. A tick in hand goes on.
    """
    standing = changed(session, given, by, lambda launchers: launchers.pause)
    if as_json:
        session.terminal.write_json(standing_data(standing))
    else:
        name = session.terminal.plain(standing.name)
        session.terminal.write(f"{name} is paused: what is due is passed over until `iocflow resume`")
    return ExitCode.OK
