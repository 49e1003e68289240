"""`iocflow dead`: suspended runs, which wait for a person and hold their groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from iocflow.cli.command import FailureError, Session, UsageError, command, group
from iocflow.cli.retry import Done, why_not
from iocflow.cli.stores import By, Json, RunWords, SeveralWords, StoreWords, client_of, no_more, one_run, several_runs
from iocflow.cli.telling import history_lines, run_lines, runs_lines
from iocflow.durable.client import Client
from iocflow.launch import ExitCode
from iocflow.store.contract import RunStatus
from iocflow.store.plain import entry_data, run_data

__all__ = ["dead"]

_MOST = 10_000
"""Runs that are looked at, at once."""

Processor = Annotated[str | None, typer.Option("--processor", metavar="ID", help="Of all, only runs of that one.")]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which suspended runs are meant, where they are not named."""

    every: Annotated[bool, typer.Option("--all", help="All suspended runs, in place of naming them.")] = False
    processor: Processor = None

    def runs(self, client: Client, named: list[str]) -> list[RunStatus]:
        """Return the runs."""
        if self.every == bool(named):
            raise UsageError("name the runs by their ids, or one by SUBMITTER NUMBER, or write --all")
        if self.every:
            return client.runs(states=["suspended"], processor=self.processor, limit=_MOST)
        return [client.status(*which) for which in several_runs(named)]


@command(
    "iocflow dead list config/order.yaml", "iocflow dead list --store sqlite:///var/order/orders.db --json", name="list"
)
def list_(session: Session, given: StoreWords, processor: Processor = None, as_json: Json = False) -> ExitCode:
    """List suspended runs, with how many wait behind each.

    Those are the runs of the same group: it goes on when the suspended one does, or is given up.
    """
    with client_of(session, given) as (client, left):
        no_more(left)
        found = client.runs(states=["suspended"], processor=processor, limit=_MOST)
        held = [_held(client, run) for run in found]
    if as_json:
        session.terminal.write_json([{**run_data(run), "held": n} for run, n in zip(found, held, strict=True)])
        return ExitCode.OK
    for line in runs_lines(found, session.terminal, more=("behind it", [str(n or "") for n in held])):
        session.terminal.write(line)
    session.terminal.write(f"{len(found)} suspended run{'' if len(found) == 1 else 's'}")
    return ExitCode.OK


@command("iocflow dead show config/order.yaml ACME PO-18")
def show(session: Session, given: RunWords, as_json: Json = False) -> ExitCode:
    """Tell all of one suspended run, its journal too."""
    with client_of(session, given) as (client, left):
        run = client.status(*one_run(left))
        if run.state != "suspended":
            raise FailureError(
                f"run {run.id} is {run.state}, not suspended: see `iocflow status` and `iocflow history`"
            )
        held, entries = _held(client, run), client.history(run.id)
    if as_json:
        journal = [entry_data(entry) for entry in entries]
        session.terminal.write_json({**run_data(run), "held": held, "history": journal})
        return ExitCode.OK
    for line in (*run_lines(run, session.terminal), *history_lines(entries, session.terminal)):
        session.terminal.write(line)
    if held:
        session.terminal.write(f"{held} run{'' if held == 1 else 's'} of its group wait behind it")
    return ExitCode.OK


@command(
    "iocflow dead replay config/order.yaml 3 --why 'the supplier is back'",
    "iocflow dead replay config/order.yaml ACME PO-18",
    "iocflow dead replay config/order.yaml --all --processor order",
)
def replay(
    session: Session,
    given: SeveralWords,
    *,
    which: Chosen,
    done: Done = False,
    by: By,
    as_json: Json = False,
) -> ExitCode:
    """Let suspended runs and their groups go on.

    A run goes on from the step that failed, with all its attempts anew.
    """
    with client_of(session, given) as (client, left):
        chosen = which.runs(client, left)
        went = [run for run in chosen if client.retry(run.id, **by.journalled(), done=done)]
    return _tell(session, chosen, went, "replayed", lambda run: why_not(run, done=done), as_json=as_json)


@command("iocflow dead drop config/order.yaml 4 --why 'the customer withdrew'")
def drop(
    session: Session,
    given: SeveralWords,
    *,
    which: Chosen,
    by: By,
    as_json: Json = False,
) -> ExitCode:
    """Give suspended runs up as failed.

    Their groups go on with the next run.
    """
    with client_of(session, given) as (client, left):
        chosen = which.runs(client, left)
        went = [run for run in chosen if client.drop(run.id, **by.journalled())]
    return _tell(session, chosen, went, "dropped", lambda run: f"is {run.state}, not suspended", as_json=as_json)


def _held(client: Client, run: RunStatus) -> int:
    """Return how many runs of the same group wait."""
    return 0 if run.group is None else len(client.runs(group=run.group, states=["queued"], limit=_MOST))


def _tell(
    session: Session,
    chosen: list[RunStatus],
    went: list[RunStatus],
    what: str,
    why_left: Callable[[RunStatus], str],
    *,
    as_json: bool,
) -> ExitCode:
    left = [run for run in chosen if run not in went]
    if as_json:
        session.terminal.write_json({what: [run.id for run in went], "left": [run.id for run in left]})
    else:
        session.terminal.write(f"{len(went)} run{'' if len(went) == 1 else 's'} {what}")
    if left:
        raise FailureError("left as they are: " + "; ".join(f"{run.id} {why_left(run)}" for run in left))
    return ExitCode.OK


dead = group("dead", list_, show, replay, drop, help="Suspended runs: look at them, replay them, or give them up.")
