"""`iocflow run`."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from typing import Annotated, Any

import typer

from iocflow.cli.command import Session, command
from iocflow.cli.completion import processor_ids
from iocflow.cli.files import File, open_app
from iocflow.cli.seeds import read_seed
from iocflow.cli.terminal import described, table
from iocflow.container import App
from iocflow.launch import ExitCode, Launch
from iocflow.run import Outcome, Run, StepOutcome

__all__ = ["run"]

COLOURS = {"DONE": "green", "COMPLETED": "green", "HANDLED": "yellow", "STOPPED": "yellow", "FAILED": "red"}


@command(
    "iocflow run config/fare_drop.yaml fare-drop --seed @samples/fare_drop/seed.json",
    "iocflow run config/fare_drop.yaml fare-drop-polled --set db=var/try.db --json",
)
def run(
    session: Session,
    file: File,
    processor: Annotated[
        str, typer.Argument(metavar="PROCESSOR", help="The id of a processor of FILE.", autocompletion=processor_ids)
    ],
    seed: Annotated[
        str | None,
        typer.Option("--seed", metavar="JSON|@FILE|@-", help="The data that starts the run; @- is standard input."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the run as one JSON object and nothing else.")] = False,
) -> ExitCode:
    """Run a processor once, here and now, and show its trail: each activity, how it ended, and how long it took.

    A run of a durable processor is submitted, and this process works until it is done. The exit status is 0 when the
    run ended COMPLETED or STOPPED, and 1 when it FAILED.
    """
    seed_data = read_seed(seed)
    reserved = session.terminal.reserved() if as_json else nullcontext()
    with reserved, open_app(session, file, processor=processor) as app:
        done = perform(app, processor, seed_data)
        if as_json:
            session.terminal.write_json(as_data(done))
        else:
            show(session, done)
    return ExitCode.OK if done.outcome in (Outcome.COMPLETED, Outcome.STOPPED) else ExitCode.FAILED


def perform(app: App, processor: str, seed: Any) -> Run[Any]:
    """Run a processor here; what is durable is submitted, and worked on until it is done."""
    if processor in app.durable_ids:
        return app.run_here(processor, seed)
    return Launch(app.processor(processor), "command line", seed).perform()


def as_data(done: Run[Any]) -> dict[str, Any]:
    """Return the run as JSON-able data; times are ISO 8601 in UTC."""
    return {
        "id": done.id,
        "processor": done.processor,
        "outcome": done.outcome.name,
        "steps": [
            {
                "activity": step.activity,
                "outcome": step.outcome.name,
                "attempts": step.attempts,
                "started": step.started.isoformat(),
                "ended": step.ended.isoformat(),
                "error": step.error and described(step.error),
            }
            for step in done.steps
        ],
        "error": done.error and described(done.error),
    }


def show(session: Session, done: Run[Any]) -> None:
    """Print the trail and the end of the run."""
    write, styled, plain = session.terminal.write, session.terminal.styled, session.terminal.plain
    rows = []
    for step in done.steps:
        attempts = "" if step.attempts == 1 else f"{step.attempts} attempts"
        rows.append((plain(step.activity), step.outcome.name, attempts, duration(step.ended - step.started)))
    for line in table(rows, paint=lambda cell: styled(cell, COLOURS.get(cell.strip(), ""))):
        write(line)
    reason = f" ({plain(done.stop_reason)})" if done.outcome is Outcome.STOPPED and done.stop_reason else ""
    end = styled(done.outcome.name, COLOURS.get(done.outcome.name, "red"))
    write(f"{plain(done.processor)}: {end}{reason} in {duration(done.ended - done.started)}, run {done.id}")
    if done.error is not None:
        failed = [step.activity for step in done.steps if step.outcome is StepOutcome.FAILED]
        at = f"{failed[0]}: " if failed else "before the first activity: " if not done.steps else ""
        session.complain(f"{at}{described(done.error)}")  # its traceback is in the log already


def duration(length: timedelta) -> str:
    """Return a length of time in the unit that suits it."""
    seconds = length.total_seconds()
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:,.2f} s"
