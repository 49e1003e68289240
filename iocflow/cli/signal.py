"""`iocflow signal`."""

from __future__ import annotations

from typing import Annotated

import typer

from iocflow.cli.command import FailureError, Session, UsageError, command
from iocflow.cli.seeds import read_json
from iocflow.cli.stores import Json, RunWords, client_of, one_run
from iocflow.cli.telling import tell_run
from iocflow.launch import ExitCode

__all__ = ["signal"]


@command('iocflow signal config/order.yaml ACME PO-18 approved --data \'{"by": "ann"}\'')
def signal(
    session: Session,
    given: RunWords,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The signal's name, behind the run.")] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="JSON|@FILE|@-", help="What comes with the signal; null without it.")
    ] = None,
    as_json: Json = False,
) -> ExitCode:
    """Send a signal to a durable run: what waits for that name goes on with its data; an early one waits itself.

    The exit status is 1 when the run is closed; the signal is kept as dead then.
    """
    value = None if data is None else read_json("--data", data)
    with client_of(session, given) as (client, left):
        *which, called = (*left, *([] if name is None else [name])) or ("",)
        if not which:
            raise UsageError("name a run and the signal: RUN NAME, or SUBMITTER NUMBER NAME")
        run = client.status(*one_run(which))
        if not client.signal(run.id, called, value):
            raise FailureError(f"run {run.id} is closed: nobody will hear {called}, which is kept as dead")
        tell_run(client.status(run.id), session.terminal, as_json=as_json)
    return ExitCode.OK
