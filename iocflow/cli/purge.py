"""`iocflow purge`."""

from __future__ import annotations

from typing import Annotated

import typer

from iocflow.cli.command import Session, UsageError, command
from iocflow.cli.progress import Progress
from iocflow.cli.stores import Json, StoreWords, client_of, no_more
from iocflow.launch import ExitCode
from iocflow.wiring.duration import seconds_of

__all__ = ["purge"]

_AT_ONCE = 1000


@command(
    "iocflow purge config/order.yaml --older-than 30d",
    "iocflow purge --store sqlite:///var/order/orders.db --older-than 12h --json",
)
def purge(
    session: Session,
    given: StoreWords,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="TIME", help="How long ago a run must have ended.")
    ] = "30d",
    as_json: Json = False,
) -> ExitCode:
    """Drop the seeds and contexts of runs that ended long ago; what happened to them, their trail, stays.

    A purged run can be looked at, and its number is taken for ever, but it cannot be retried.
    """
    age = seconds_of(older_than)
    if age is None:
        raise UsageError(f"--older-than {older_than} is no duration; write 12h or 30d")
    purged = 0
    with client_of(session, given) as (client, left), Progress(session.terminal, "purged") as progress:
        no_more(left)
        before = client.store.now() - age
        while dropped := client.store.purge(before, limit=_AT_ONCE):
            purged += dropped
            progress.at(purged)
    if as_json:
        session.terminal.write_json({"purged": purged})
    else:
        session.terminal.write(f"{purged:,} run{'' if purged == 1 else 's'} purged")
    return ExitCode.OK
