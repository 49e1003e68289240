"""The entry point: the list of commands, each one a module of this folder that is loaded when it is asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from iocflow.cli.streams import (
    OUTPUT_CLOSED,
    OutputClosedError,
    OutputFailedError,
    release_streams,
    settle_streams,
    unwritten,
)
from iocflow.errors import IocflowError

__all__ = ["COMMANDS", "build", "main"]

COMMANDS = {
    "check": "Check a container file: every mistake at once, or what is wired.",
    "run": "Run a processor once, here and now, and show its trail.",
    "serve": "Run as a daemon: timers and event sources start the processors.",
    "worker": "Work on durable runs until told to stop.",
    "submit": "Submit durable runs: one, or one for each line of a file.",
    "status": "Tell the state of a durable run.",
    "runs": "List durable runs.",
    "history": "Print the journal of a durable run.",
    "signal": "Send a signal to a durable run that waits for it.",
    "retry": "Let a failed or suspended run go on from the step that failed.",
    "cancel": "Ask for the end of an open run.",
    "dead": "Look at suspended runs, replay them, or give them up.",
    "events": "Look at dead letters, the events that were put aside, or bring them again.",
    "purge": "Drop the data of runs that ended long ago; their trail stays.",
    "doctor": "Check the invariants of a store.",
    "graph": "Draw processors as Mermaid or as plain text.",
    "schedule": "List the next firings of the timers, and what became of the last ones.",
    "pause": "Let a timer fire no more, until it is resumed.",
    "resume": "Let a paused timer fire again.",
    "trigger": "Fire a timer once, as soon as may be.",
    "schema": "Print the JSON Schema of container files, for editors.",
}
"""The commands in the order of the help, with the line that stands there: `--help` loads none of their modules."""

USAGE = 2
"""The exit status of wrong use."""
MISSING = 'iocflow: {} needs {}, which is not installed; pip install "iocflow[durable]"'

EPILOG = """
\b
Start here:
  iocflow check config/fare_drop.yaml
  iocflow run config/fare_drop.yaml fare-drop --seed @samples/fare_drop/seed.json
  iocflow run --help

\b
Exit status: 0 well, 1 a run failed or could not be found, 2 wrong use, 3 the container file has mistakes,
4 another daemon holds the lock, 5 a daemon was forced to stop, 6 a run that was waited for is still open.
"""


class LazyGroup(TyperGroup):
    """A group that knows its commands by name and line of help, and loads the one that was typed."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Read the command line; `--help` and `--version` write here.

        Raises:
            OutputClosedError: Nobody reads it any more.
            OutputFailedError: It cannot be written.
        """
        with _written():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed, whose `--help` is written here; raises what `make_context` does."""
        with _written():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that `args` begin with, loaded; a wrong name is refused before, with a hint."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, name and load_command(name), rest


@contextmanager
def _written() -> Iterator[None]:
    """Tell a standard output that takes nothing from other errors: all that raises here is a result's writing."""
    try:
        yield
    except OSError as error:
        raise unwritten(sys.stdout, error) from error


def load_command(name: str) -> TyperCommand:
    """Import the module of that name and return the command in it, which has the name too."""
    try:
        module = importlib.import_module(f"iocflow.cli.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("iocflow"):
            raise
        raise SystemExit(MISSING.format(name, error.name)) from error
    return cast(TyperCommand, getattr(module, name))


def build() -> TyperGroup:
    """Return the command line."""
    app = typer.Typer(
        name="iocflow",
        cls=LazyGroup,
        help="Run processors that a container file wires from activities.",
        epilog=EPILOG,
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_options)
    group = cast(TyperGroup, get_command(app))
    for name, line in COMMANDS.items():
        group.add_command(TyperCommand(name, short_help=line, rich_markup_mode=None))
    return group


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(importlib.import_module("iocflow.cli.version").version_text())
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that stand before the command."""


def main() -> NoReturn:
    """Run the command line; called by the installed script and by `python -m iocflow.cli`."""
    settle_streams()
    status, failure = _run()
    failure = failure or release_streams()
    if isinstance(failure, OutputFailedError):
        sys.stderr.write(f"iocflow: {failure}\n")
    if failure is not None:
        status = status or (OUTPUT_CLOSED if isinstance(failure, OutputClosedError) else 1)
    raise SystemExit(status)


def _run() -> tuple[str | int | None, IocflowError | None]:
    """Run the command line; return its exit status, and why its output could not be written."""
    try:
        build().main(prog_name="iocflow")
    except SystemExit as leaving:
        return leaving.code, None
    except (OutputClosedError, OutputFailedError) as error:
        return 0, error
    except OSError:
        return USAGE, None  # wrong use, and nobody to be told of it
    return 0, None
