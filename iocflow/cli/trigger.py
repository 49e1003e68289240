"""`iocflow trigger`."""

from __future__ import annotations

from iocflow.cli.command import Session, command
from iocflow.cli.standings import standing_data
from iocflow.cli.stores import By, Json
from iocflow.cli.timers import LauncherWords, changed
from iocflow.launch import ExitCode

__all__ = ["trigger"]


@command("iocflow trigger config/fare_drop_kept.yaml poll-fares")
def trigger(session: Session, given: LauncherWords, *, by: By, as_json: Json = False) -> ExitCode:
    """Fire a timer once, as soon as may be.

    A daemon that serves it does so within a second, paused or not, but not while an earlier tick is in hand. The
    schedule goes on as it is.
    """
    standing = changed(session, given, by, lambda launchers: launchers.trigger)
    if as_json:
        session.terminal.write_json(standing_data(standing))
    else:
        name = session.terminal.plain(standing.name)
        session.terminal.write(
            f"{name}: "
            + ("a daemon fires it now" if standing.served else "no daemon serves it; it fires when one starts")
        )
    return ExitCode.OK
