"""`iocflow runs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast, get_args

import typer

from iocflow.cli.command import Session, UsageError, command
from iocflow.cli.stores import Json, StoreWords, client_of, no_more
from iocflow.cli.telling import runs_lines
from iocflow.durable.client import Client
from iocflow.launch import ExitCode
from iocflow.store.contract import RunStatus, State
from iocflow.store.plain import run_data
from iocflow.wiring import did_you_mean

__all__ = ["runs", "states"]


def states() -> list[str]:
    """Return the states that a run can be in, for completion."""
    return list(get_args(State))


@dataclass(frozen=True, slots=True)
class Only:
    """Which runs are listed."""

    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help="Only runs in that state; repeatable.", autocompletion=states),
    ] = None
    processor: Annotated[str | None, typer.Option("--processor", metavar="ID", help="Only runs of that one.")] = None
    submitter: Annotated[str | None, typer.Option("--submitter", metavar="NAME", help="Only that one's runs.")] = None
    group: Annotated[str | None, typer.Option("--group", metavar="KEY", help="Only runs of that group.")] = None
    after: Annotated[
        int | None,
        typer.Option("--after", metavar="RUN", min=0, help="The first with a higher id, in place of the newest."),
    ] = None
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many at most.")] = 100

    def runs(self, client: Client) -> list[RunStatus]:
        """Return the runs."""
        asked = cast("list[State]", self.state or [])
        named = {"processor": self.processor, "submitter": self.submitter, "group": self.group}
        newest = self.after is None
        return client.runs(states=asked, after=self.after or 0, limit=self.limit, newest=newest, **named)

    def more(self, found: list[RunStatus]) -> str:
        """Return how to see what may be left out."""
        if len(found) < self.limit:
            return ""
        return "; these are the newest: --limit, --after" if self.after is None else f"; go on: --after {found[-1].id}"


@command(
    "iocflow runs config/order.yaml",
    "iocflow runs config/order.yaml --state failed --state suspended --limit 20",
    "iocflow runs --store sqlite:///var/order/orders.db --submitter ACME --json",
)
def runs(
    session: Session,
    given: StoreWords,
    *,
    only: Only,
    as_json: Json = False,
) -> ExitCode:
    """List durable runs, the newest, in the order of their submission. No code of the application is loaded."""
    for one in only.state or ():
        if one not in states():
            raise UsageError(f"there is no state {one}; {did_you_mean(one, states())}")
    with client_of(session, given) as (client, left):
        no_more(left)
        found = only.runs(client)
    if as_json:
        session.terminal.write_json([run_data(run) for run in found])
        return ExitCode.OK
    for line in runs_lines(found, session.terminal):
        session.terminal.write(line)
    session.terminal.write(f"{len(found)} run{'' if len(found) == 1 else 's'}{only.more(found)}")
    return ExitCode.OK
