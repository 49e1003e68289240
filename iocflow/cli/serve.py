"""`iocflow serve`."""

from __future__ import annotations

from typing import NoReturn

from iocflow.cli.command import Session, command
from iocflow.cli.files import File, open_app
from iocflow.cli.live import LiveView
from iocflow.cli.logs import LogLevel
from iocflow.launch import ExitCode
from iocflow.launch.daemon import Daemon
from iocflow.launch.leaving import leave_process

__all__ = ["serve"]


@command(
    "iocflow serve config/fare_drop.yaml",
    "iocflow serve config/fare_drop.yaml --log-format json",
    level=LogLevel.INFO,
)
def serve(session: Session, file: File) -> ExitCode:
    """Run as a daemon: the file's launchers start processors, by the clock or when an event arrives.

    Where processors are durable, a worker does their runs beside the launchers. Over a store, timers go on where the
    last daemon left off; one daemon may serve a SQLite file, and any number of them a PostgreSQL database.

    SIGTERM or Ctrl-C stops it: nothing new is taken in, and runs in hand have the grace time to finish. A second signal
    ends it at once. The exit status is 0 when everything was finished, 3 when a launcher can never work, 4 when another
    daemon holds what it needs, 5 when it left runs behind.
    """
    views: list[LiveView] = []

    def leave(code: int) -> NoReturn:
        for view in views:
            view.close()
        leave_process(code)

    app = open_app(session, file)
    counts = app.run_counts if app.durable_ids else None
    daemon = Daemon(app, companions=app.companions(), book=app.book, run_counts=counts, leave=leave)
    if session.terminal.live:
        views.append(LiveView(daemon.snapshot, session.terminal.mask))
    daemon.run_and_exit()
