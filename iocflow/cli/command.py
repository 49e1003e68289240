"""What all commands share: their common options, the session they run in, and what becomes of their errors."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Concatenate, ParamSpec, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from iocflow.cli.logs import LogFormat, LogLevel, Masked, logging_to_stderr
from iocflow.cli.signals import Terminated, terminable
from iocflow.cli.streams import OUTPUT_CLOSED, OutputClosedError
from iocflow.cli.terminal import Terminal, described
from iocflow.errors import IocflowError
from iocflow.launch import ExitCode
from iocflow.launch.errors import LauncherError
from iocflow.launch.leaving import leave_process
from iocflow.wiring import ConfigurationError

__all__ = ["Common", "FailureError", "Json", "Session", "UsageError", "command", "end_text", "group"]

INTERRUPTED = 130
"""What a shell expects of a process that Ctrl-C ended: 128 + SIGINT."""
TERMINATED = 143
"""The same for SIGTERM: 128 + 15."""
OF_FILE = ("profile", "values")
"""The common options that say how a FILE is read."""
HELP = {"help_option_names": ["--help", "-h"]}

P = ParamSpec("P")
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


class UsageError(IocflowError):
    """The command was given something that it cannot use; the message says what to give instead."""


class FailureError(IocflowError):
    """What was asked for cannot be done; the message says why."""


def _assignments(entries: list[str] | None) -> list[str] | None:
    """Refuse a `--set` that assigns nothing."""
    for entry in entries or ():
        key, equals, _ = entry.partition("=")
        if not (key.strip() and equals):
            raise typer.BadParameter(f"{entry!r} assigns nothing; write KEY=VALUE, as in smtp.port=2525")
    return entries


@dataclass(frozen=True, slots=True)
class Common:
    """The options that commands share; those `OF_FILE` are for commands that take a FILE."""

    profile: Annotated[
        list[str] | None, typer.Option("--profile", metavar="NAME", help="Switch on a profile of FILE; repeatable.")
    ] = None
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a value of FILE; repeatable.", callback=_assignments),
    ] = None
    log_format: Annotated[
        LogFormat, typer.Option("--log-format", metavar="FORM", help="How to log, on standard error: text or json.")
    ] = LogFormat.TEXT
    log_level: Annotated[
        LogLevel | None, typer.Option("--log-level", metavar="LEVEL", help="Log from debug, info, warning or error on.")
    ] = None
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where an error was raised.")] = False
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours; NO_COLOR=1 does the same.")] = False


class Session:
    """What one command works with: what the common options say, where it writes, and how it logs."""

    def __init__(self, options: Common, terminal: Terminal, formatter: Masked) -> None:
        """Take what the command line said."""
        self._options = options
        self._formatter = formatter
        self.terminal = terminal

    @property
    def profiles(self) -> tuple[str, ...]:
        """The profiles to switch on."""
        return tuple(self._options.profile or ())

    @property
    def values(self) -> dict[str, str]:
        """The values to override, by dotted key."""
        pairs = (entry.partition("=") for entry in self._options.values or ())
        return {key.strip(): value for key, _, value in pairs}

    @property
    def tracebacks(self) -> bool:
        """Whether somebody asked for tracebacks."""
        return self._formatter.traceback

    def mask(self, mask: Callable[[str], str]) -> None:
        """Take secrets out of everything that is written from now on."""
        self.terminal.mask = self._formatter.mask = mask

    def complain(self, message: str, error: BaseException | None = None, *, head: str = "iocflow: ") -> None:
        """Say on standard error what went wrong, as a record where a machine reads the log.

        The traceback of `error` is added only for those who asked for it.
        """
        if self._options.log_format is LogFormat.JSON:
            logging.getLogger("iocflow.cli").error(message, exc_info=error)
            return
        self.terminal.complain(message, head=head)
        if error is not None and self.tracebacks:
            self.terminal.complain("".join(traceback.format_exception(error)), head="")


class _Command(TyperCommand):
    """A command whose complaints about values are plain sentences."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")  # put there by pydantic, which typer asks
            raise


def command(
    *examples: str, level: LogLevel = LogLevel.WARNING, name: str = ""
) -> Callable[[Callable[Concatenate[Session, P], ExitCode]], TyperCommand]:
    """Make a command of a function `(session, …)`: its name, its docstring as help, its result as exit status.

    The command has the options of `Common` too. What the function raises becomes a message and an exit status.

    Args:
        examples: Command lines for the end of the help; the tests run them.
        level: The least severe log records shown when the command line does not say.
        name: The command's name, where it is another one than the function's.
    """

    def decorate(function: Callable[Concatenate[Session, P], ExitCode]) -> TyperCommand:
        app = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=HELP)
        epilog = "\n".join(("\b", "Examples:", *(f"  {example}" for example in examples)))
        made = app.command(name or function.__name__, cls=_Command, help=function.__doc__, epilog=epilog)
        made(_with_common_options(function, level))
        return cast(TyperCommand, get_command(app))

    return decorate


def group(name: str, *members: TyperCommand, help: str) -> TyperGroup:
    """Make a command of several, each one called by its own name after that of the group."""
    options: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None, "context_settings": HELP}
    app = typer.Typer(name=name, help=help, no_args_is_help=True, **options)
    app.callback()(lambda: None)
    made = cast(TyperGroup, get_command(app))
    for member in members:
        made.add_command(member)
    return made


def _with_common_options(function: Callable[..., ExitCode], level: LogLevel) -> Callable[..., None]:
    """Return a function of keyword arguments that typer can read: those of `function`, then those of `Common`.

    A parameter whose type is a dataclass stands for options, one for each field.
    """
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    bundles = [each for each in own if dataclasses.is_dataclass(each.annotation)]
    flat = [option for each in own for option in (_options_of(each) if each in bundles else [each])]
    reads_file = any(each.name == "file" for each in flat)
    offered = inspect.signature(Common, eval_str=True).parameters.values()
    common = [each for each in offered if reads_file or each.name not in OF_FILE]

    def call(**given: Any) -> None:
        options = Common(**{each.name: given.pop(each.name) for each in common})
        for bundle in bundles:
            given[bundle.name] = bundle.annotation(**{each.name: given.pop(each.name) for each in _options_of(bundle)})
        terminal = Terminal(colour=not (options.no_color or os.environ.get("NO_COLOR")))
        shown = options.log_level or level
        with logging_to_stderr(options.log_format, shown, traceback=options.traceback) as formatter:
            session = Session(options, terminal, formatter)
            with terminable():
                status = _guarded(session, functools.partial(_in_folder, functools.partial(function, session, **given)))
        if status in (INTERRUPTED, TERMINATED) and _threads_go_on():
            leave_process(status)
        raise typer.Exit(status)

    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*flat, *common)]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def _threads_go_on() -> bool:
    """Return whether a thread is at work for which the interpreter would wait: a branch whose code cannot be ended."""
    return any(not one.daemon and one is not threading.current_thread() for one in threading.enumerate())


def _options_of(bundle: inspect.Parameter) -> list[inspect.Parameter]:
    """Return the options that a parameter stands for whose type is a dataclass."""
    return list(inspect.signature(bundle.annotation, eval_str=True).parameters.values())


def _in_folder(work: Callable[[], ExitCode]) -> ExitCode:
    """Do the work with the working directory first on the import path.

    The console script does not put it there, and containers name modules that lie beside their file.

    Raises:
        UsageError: It is gone.
    """
    try:
        sys.path.insert(0, os.getcwd())
    except OSError as error:
        raise UsageError(f"the working directory cannot be had ({error.strerror}); change to another one") from error
    return work()


def _worked(session: Session, work: Callable[[], ExitCode]) -> int:
    """Return the exit status of `work`.

    Raises:
        OutputClosedError: User code, a constructor say, printed for a reader who has gone.
    """
    try:
        return work()
    except Exception as error:
        if session.terminal.abandoned(error):
            raise OutputClosedError("standard output was closed") from error
        raise


def _guarded(session: Session, work: Callable[[], ExitCode]) -> int:
    """Return the exit status of `work`, also when it raises: this is where a person's mistake becomes a message."""
    try:
        return _worked(session, work)
    except (ConfigurationError, LauncherError) as error:
        # Only the frames: the text of what a constructor raised may hold a secret, and what would mask it is not built.
        frames = traceback.format_tb(error.__cause__.__traceback__) if error.__cause__ and session.tracebacks else []
        session.complain("\n".join((str(error), *frames)), head="")
        return ExitCode.CONFIGURATION
    except UsageError as error:
        session.complain(str(error))
        return ExitCode.USAGE
    except OutputClosedError:
        return OUTPUT_CLOSED
    except Terminated:
        session.complain("terminated")
        return TERMINATED
    except KeyboardInterrupt:
        session.complain("interrupted")
        return INTERRUPTED
    except IocflowError as error:
        sentence = " ".join(str(error).split())  # also what another library said in several lines
        parts = map(described, error.exceptions) if isinstance(error, BaseExceptionGroup) else ()
        session.complain("; ".join((sentence, *getattr(error, "__notes__", ()), *parts)), error)
        return ExitCode.FAILED
    except BaseException as error:  # noqa: BLE001  # the process's edge: the user's code may raise anything
        session.complain(end_text(error), error)
        return ExitCode.FAILED


def end_text(error: BaseException) -> str:
    """Return what the user's code raised in words; what ends a process is told by its code, which may be empty."""
    if isinstance(error, SystemExit):
        return f"the user's code ended the process: SystemExit({error.code})"
    return described(error)
