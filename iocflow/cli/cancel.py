"""`iocflow cancel`."""

from __future__ import annotations

from iocflow.cli.command import FailureError, Session, command
from iocflow.cli.stores import By, Json, RunWords, client_of, one_run
from iocflow.cli.telling import tell_run
from iocflow.launch import ExitCode

__all__ = ["cancel"]


@command("iocflow cancel config/order.yaml ACME PO-18 --why 'ordered twice'")
def cancel(
    session: Session,
    given: RunWords,
    *,
    by: By,
    as_json: Json = False,
) -> ExitCode:
    """Ask for the end of an open run: at once if it was not begun, else after its `finally`.

    A step in hand cannot be stopped from outside: it ends beside the `finally`, and what it did is dropped. The exit
    status is 1 when the run is closed already.
    """
    with client_of(session, given) as (client, left):
        run = client.status(*one_run(left))
        if not client.cancel(run.id, **by.journalled()):
            raise FailureError(f"run {run.id} is closed already: it is {client.status(run.id).state}")
        tell_run(client.status(run.id), session.terminal, as_json=as_json)
    return ExitCode.OK
