"""`iocflow doctor`."""

from __future__ import annotations

from iocflow.cli.command import Session, command
from iocflow.cli.stores import Json, StoreWords, client_of, no_more
from iocflow.cli.terminal import table
from iocflow.launch import ExitCode

__all__ = ["doctor"]


@command("iocflow doctor config/order.yaml", "iocflow doctor --store sqlite:///var/order/orders.db --json")
def doctor(
    session: Session,
    given: StoreWords,
    as_json: Json = False,
) -> ExitCode:
    """Check the invariants of a store, which hold at every moment, also while workers are at it.

    The exit status is 1 when one does not hold: tell us, with the evidence that is printed.
    """
    with client_of(session, given) as (client, left):
        no_more(left)
        found = list(client.store.doctor())
        runs = sum(client.store.counts().values())
    if as_json:
        violations = [one._asdict() for one in found]
        session.terminal.write_json({"ok": not found, "runs": runs, "violations": violations})
    elif found:
        for line in table([(session.terminal.plain(one.invariant), session.terminal.plain(one.what)) for one in found]):
            session.terminal.write(line)
    else:
        session.terminal.write(f"all invariants hold, of {runs:,} run{'' if runs == 1 else 's'}")
    return ExitCode.FAILED if found else ExitCode.OK
