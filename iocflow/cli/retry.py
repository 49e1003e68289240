"""`iocflow retry`."""

from __future__ import annotations

from typing import Annotated

import typer

from iocflow.cli.command import FailureError, Session, command
from iocflow.cli.stores import By, Json, RunWords, client_of, one_run
from iocflow.cli.telling import tell_run
from iocflow.launch import ExitCode
from iocflow.store.contract import RunStatus

__all__ = ["Done", "retry", "why_not"]

Done = Annotated[
    bool, typer.Option("--done", help="The step that is in doubt took place: go on behind it, and do not repeat it.")
]


@command("iocflow retry config/order.yaml ACME PO-18 --why 'the card is valid again'")
def retry(
    session: Session,
    given: RunWords,
    *,
    done: Done = False,
    by: By,
    as_json: Json = False,
) -> ExitCode:
    """Let a failed or suspended run go on from the step that failed, with all its attempts anew.

    Its group is opened again. The exit status is 1 when the run is neither failed nor suspended, or was purged.
    """
    with client_of(session, given) as (client, left):
        run = client.status(*one_run(left))
        if not client.retry(run.id, **by.journalled(), done=done):
            raise FailureError(f"run {run.id} {why_not(run, done=done)}")
        tell_run(client.status(run.id), session.terminal, as_json=as_json)
    return ExitCode.OK


def why_not(run: RunStatus, *, done: bool) -> str:
    """Return why a run does not go on."""
    if done and run.state in ("failed", "suspended"):
        return f"is {run.state} with no step in doubt: leave --done out to have the step that failed done again"
    return f"is {run.state}: only one that is failed or suspended, and not purged, can go on"
