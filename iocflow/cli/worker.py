"""`iocflow worker`."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from iocflow.cli.command import FailureError, Session, command
from iocflow.cli.files import File, open_app
from iocflow.cli.logs import LogLevel
from iocflow.container import App
from iocflow.durable.worker.idling import run_until_idle
from iocflow.launch import ExitCode
from iocflow.launch.daemon import Daemon

__all__ = ["worker"]


@command(
    "iocflow worker config/order.yaml --until-idle",
    "iocflow worker config/order.yaml --threads 32 --log-format json",
    level=LogLevel.INFO,
)
def worker(
    session: Session,
    file: File,
    threads: Annotated[
        int | None, typer.Option("--threads", metavar="N", min=1, max=1000, help="How many activities run at once.")
    ] = None,
    until_idle: Annotated[bool, typer.Option("--until-idle", help="End when no run is ready.")] = False,
) -> ExitCode:
    """Work on the durable runs of the file's processors until told to stop; as many workers as you like may do so.

    SIGTERM or Ctrl-C stops it: nothing new is begun, and activities under way have the grace time of `daemon` to end.
    A second signal ends it at once; what it had in hand is taken over when its lease has run out. The exit status is 0
    when everything was finished, 5 when it left activities behind.

    Events that runs publish are sent, too. With --until-idle it also waits, for as long as a lease lasts, for runs
    that other workers have in hand: those of one that died are taken over and done.
    """
    with open_app(session, file) as app:
        if not app.worker(threads).jobs:
            raise FailureError(f"no processor of {file} is durable, so that there is nothing to work on")
        return _work_off(session, app, threads) if until_idle else _work(app, threads)


def _work(app: App, threads: int | None) -> NoReturn:
    """Work until told to stop, and end the process."""
    Daemon(app, companions=app.companions(threads), launching=False).run_and_exit()


def _work_off(session: Session, app: App, threads: int | None) -> ExitCode:
    """Work until no run is ready, and none is in the hands of a worker that may have died; then send the events."""
    run_until_idle(app.worker(threads), inherit=True)
    counts = app.client.store.counts()
    left = [f"{number} {state}" for state, number in counts.items() if number and state in _OPEN]
    relay = app.relay()
    if relay is not None and (unsent := relay.flush()):
        left.append(f"{unsent} or more events could not be sent")
    session.terminal.write("; ".join(["no run is ready", *([", ".join(left)] if left else [])]))
    return ExitCode.OK


_OPEN = ("queued", "running", "waiting", "suspended")
