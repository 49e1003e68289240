"""The daemon: it starts an application's launchers, looks after them, and stops them in good order."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, Protocol

from iocflow.launch.clock import Clock, SystemClock
from iocflow.launch.exit_codes import ExitCode
from iocflow.launch.snapshot import Snapshot

__all__ = ["Application", "Daemon", "Secrets", "leave_process"]


class Secrets(Protocol):
    """Keeps secrets out of texts."""

    def mask(self, text: str) -> str:
        """Return `text` with every secret replaced."""


class Application(Protocol):
    """What the daemon needs of an application; `iocflow.App` is one."""

    @property
    def secrets(self) -> Secrets:
        """The application's secrets."""

    def section(self, key: str) -> object | None:
        """Return what the section `key` describes: `launchers` is a tuple of launchers, `daemon` the settings."""

    def close(self) -> None:
        """Close every bean."""


def leave_process(code: int) -> NoReturn:
    """Flush logs and output, for one second at most, and end the process whatever its threads do."""
    raise NotImplementedError


class Daemon:
    """Runs an application's launchers until it is told to stop."""

    def __init__(
        self, app: Application, *, clock: Clock | None = None, leave: Callable[[int], NoReturn] = leave_process
    ) -> None:
        """Take the application; nothing is started yet."""
        self._clock = clock or SystemClock()

    def run(self) -> ExitCode:
        """Start the launchers, run until `stop`, SIGTERM or SIGINT, finish what is in hand, and return the exit code.

        Signals are heeded when this is called in the main thread; their handlers stay in place until `run_and_exit` ends.
        The application is not closed.
        """
        raise NotImplementedError

    def run_and_exit(self) -> NoReturn:
        """Run, close the application, flush logs and output, and end the process: what `iocflow serve` does.

        The process ends by `os._exit`, because a thread that hangs in a run would hold the interpreter for ever.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """Tell the daemon to stop, from any thread, as a first SIGTERM does."""
        raise NotImplementedError

    @property
    def ready(self) -> bool:
        """Whether every source is connected, timer, consumers and pool made progress recently, and no run is overdue."""
        raise NotImplementedError

    def snapshot(self) -> Snapshot:
        """Return the state of everything as plain data; cheap enough for a few calls a second, from any thread."""
        raise NotImplementedError
