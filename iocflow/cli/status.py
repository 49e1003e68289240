"""`iocflow status`."""

from __future__ import annotations

from typing import Annotated

import typer

from iocflow.cli.command import Session, command
from iocflow.cli.stores import Json, RunWords, client_of, one_run
from iocflow.cli.telling import tell_run
from iocflow.launch import ExitCode

__all__ = ["status"]


@command(
    "iocflow status config/order.yaml ACME PO-17",
    "iocflow status --store sqlite:///var/order/orders.db ACME PO-17 --json",
    "iocflow status config/order.yaml 1 --wait --timeout 60",
)
def status(
    session: Session,
    given: RunWords,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the run is closed or suspended.")] = False,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="Wait no longer than that.")
    ] = None,
    as_json: Json = False,
) -> ExitCode:
    """Tell the state of a durable run, by its id or by its submitter's number. No code of the application is loaded.

    The exit status is 0 when there is such a run. With --wait it is 0 only when the run was completed, 1 when it ended
    in another way or is suspended, and 6 when it is still open at the end of the timeout.
    """
    with client_of(session, given) as (client, left):
        which = one_run(left)
        late = False
        if wait or timeout is not None:
            try:
                client.wait(*which, timeout=timeout)
            except TimeoutError:
                late = True
        found = client.status(*which)
    tell_run(found, session.terminal, as_json=as_json)
    if late:
        return ExitCode.UNFINISHED
    return ExitCode.FAILED if (wait or timeout is not None) and found.state != "completed" else ExitCode.OK
