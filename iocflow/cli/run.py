"""`iocflow run`."""

from __future__ import annotations

import logging
import time
from contextlib import nullcontext
from datetime import timedelta
from typing import Annotated, Any

import typer

from iocflow.cli.command import Session, command, end_text
from iocflow.cli.completion import processor_ids
from iocflow.cli.files import File, open_app
from iocflow.cli.seeds import read_seed
from iocflow.cli.terminal import described, table
from iocflow.container import App
from iocflow.context import ProcessContext
from iocflow.launch import ExitCode, Launch
from iocflow.launch.ended import failing_activity
from iocflow.processor import Processor
from iocflow.run import Outcome, Run, RunEvent, RunStarted, Step, StepFinished, StepOutcome, StepStarted, utc

__all__ = ["run"]

logger = logging.getLogger("iocflow.cli")

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
    run ended COMPLETED or STOPPED, and 1 when it FAILED, or was INTERRUPTED by what is no error, `SystemExit` say.
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
    found, watch = app.processor(processor), _Watch()
    found.hooked((watch,), (), found.runner)
    launch = Launch(found, "command line", seed)
    try:
        return launch.perform()
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        fields = {"run_id": launch.run_id, "processor": processor}
        logger.error("%s was interrupted", processor, exc_info=error, extra=fields)
        return watch.interrupted(found, launch.run_id, error)


class _Watch:
    """Sees a run go on, and knows its trail also when nobody returns the run: something that is no error ended it."""

    def __init__(self) -> None:
        self._began = time.time()
        self._rows: list[Step] = []
        self._at_work: dict[str, StepStarted] = {}

    def __call__(self, event: RunEvent) -> None:
        """Take an event of the run."""
        if isinstance(event, RunStarted):
            self._began = event.at
        elif isinstance(event, StepStarted):
            self._at_work[event.activity] = event
        elif isinstance(event, StepFinished):
            self._rows.append(event.step)
            self._at_work.pop(event.step.activity, None)

    def interrupted(self, processor: Processor[Any], id: str, error: BaseException) -> Run[Any]:
        """Return the run, with a row for each activity that was at work; which of several raised is not known."""
        cause: Any = error  # the error of a run is an `Exception` else
        now, told = utc(time.time()), cause if len(self._at_work) == 1 else None
        rows = [
            Step(one.activity, StepOutcome.FAILED, one.attempt, utc(one.at), max(utc(one.at), now), told)
            for one in self._at_work.values()
        ]
        run: Run[Any] = Run()
        run.of, run.id, run.context, run.ticks = processor, id, ProcessContext(), [self._began]
        run.rows, run.error = [*self._rows, *rows], cause
        return run


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
        failed = failing_activity(done)
        at = f"{failed}: " if failed else "before the first activity: " if not done.steps else ""
        session.complain(f"{at}{end_text(done.error)}")  # its traceback is in the log already


def duration(length: timedelta) -> str:
    """Return a length of time in the unit that suits it."""
    seconds = length.total_seconds()
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:,.2f} s"
