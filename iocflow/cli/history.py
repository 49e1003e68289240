"""`iocflow history`."""

from __future__ import annotations

from iocflow.cli.command import Session, command
from iocflow.cli.stores import Json, RunWords, client_of, one_run
from iocflow.cli.telling import history_lines
from iocflow.launch import ExitCode
from iocflow.store.plain import entry_data

__all__ = ["history"]


@command(
    "iocflow history config/order.yaml ACME PO-17",
    "iocflow history --store sqlite:///var/order/orders.db 1 --json",
)
def history(
    session: Session,
    given: RunWords,
    as_json: Json = False,
) -> ExitCode:
    """Print the journal of a durable run: each step, attempt, signal and operator's command, with time and reason.

    A signal that the run had not asked for when it ended is `unheard`.
    """
    with client_of(session, given) as (client, left):
        entries = client.history(*one_run(left))
    if as_json:
        session.terminal.write_json([entry_data(entry) for entry in entries])
    else:
        for line in history_lines(entries, session.terminal):
            session.terminal.write(line)
    return ExitCode.OK
