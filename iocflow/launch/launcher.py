"""What the daemon asks of a launcher, and what it lends it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol, TypeVar

from iocflow.launch.clock import Clock
from iocflow.launch.contract import Launch, Launchable
from iocflow.launch.counters import Counters
from iocflow.launch.ended import Ended
from iocflow.launch.exit_codes import ExitCode
from iocflow.launch.pool import Pool, Progress
from iocflow.launch.settings import DaemonSettings
from iocflow.launch.snapshot import LauncherState
from iocflow.store.launchers import Launchers

__all__ = ["BaseLauncher", "Companion", "Host", "Launcher", "Service"]


class Service(Protocol):
    """Something that several launchers share, one of a kind in a daemon, as the timer."""

    def start(self) -> None:
        """Begin; called once, before any launcher is started with it."""

    def stop(self) -> None:
        """Stop at once; what it started goes on."""

    def heartbeat(self) -> None:
        """Look after the own threads; called every few seconds in the daemon's main thread."""

    def trouble(self) -> str:
        """Return what is wrong, empty when it made progress recently."""


class Companion(Service, Protocol):
    """Something that a daemon has at work beside its launchers, as a worker of durable runs."""

    @property
    def name(self) -> str:
        """What it is called in the log."""

    def finish(self, deadline: float) -> bool:
        """Wait until nothing is in hand any more, until the monotonic `deadline` at most; return whether that is so."""


S = TypeVar("S", bound=Service)


class Host(Protocol):
    """What the daemon lends its launchers."""

    @property
    def clock(self) -> Clock:
        """The clocks."""

    @property
    def settings(self) -> DaemonSettings:
        """What the section `daemon:` says."""

    @property
    def pool(self) -> Pool:
        """The threads."""

    @property
    def book(self) -> Launchers | None:
        """What a store keeps of scheduled launchers; None without a store."""

    def counters(self, launcher: str) -> Counters:
        """Return the counters of the launcher with that name."""

    def perform(self, launch: Launch, progress: Progress) -> Ended:
        """Run, count and log one launch in the calling thread of the pool; raises nothing."""

    def mask(self, text: str) -> str:
        """Return `text` without secrets; for everything that is written to where people read."""

    def service(self, kind: Callable[[Host], S]) -> S:
        """Return the daemon's only service of that class, made and started at the first call."""

    def give_up(self, code: ExitCode, why: str) -> None:
        """Tell the daemon to stop in good order and to exit with `code`; from any thread."""

    def changed(self) -> None:
        """Tell the daemon that a launcher's state changed; from any thread."""


class Launcher(Protocol):
    """Starts runs of one processor, each time that something happens.

    The daemon calls `reserve` of every launcher before `start` of any, then `heartbeat` every few seconds, then `stop`,
    then `finish`, all in its main thread; the last two also of a launcher that was never started. The properties are
    read in any thread.
    """

    @property
    def name(self) -> str:
        """The launcher's id."""

    @property
    def kind(self) -> str:
        """The key that makes it what it is, as `every` or `source`."""

    @property
    def trigger(self) -> str:
        """What it waits for, as a person would write it."""

    @property
    def processor(self) -> Launchable:
        """What it starts."""

    @property
    def state(self) -> LauncherState:
        """Where it is in its life."""

    @property
    def trouble(self) -> str:
        """What is wrong with it, empty when nothing is."""

    @property
    def stalled(self) -> str:
        """Which of its own threads makes no progress, and will make none in this process; empty when all do."""

    @property
    def next_firing(self) -> datetime | None:
        """When it fires next, UTC; None without a schedule."""

    def reserve(self, host: Host) -> None:
        """Take what only one process may have, if that can be done without waiting, and do nothing else.

        Raises:
            ImpossibleSourceError: What it needs can never be had as it is configured.
            LockedError: Another process has it.
        """

    def start(self, host: Host) -> None:
        """Begin to launch; must not block, so that one slow source does not hold up the others."""

    def heartbeat(self) -> None:
        """Look after the own threads; must be quick."""

    def stop(self) -> None:
        """Start nothing new from now on; must be quick. What is in hand goes on."""

    def finish(self, deadline: float) -> bool:
        """Wait until nothing is in hand any more, until the monotonic `deadline` at most, then release the rest.

        Returns:
            Whether everything in hand was finished in time.
        """


class BaseLauncher:
    """What every launcher of ours has: its names, its state, and the host once it is started."""

    def __init__(self, name: str, kind: str, trigger: str, processor: Launchable) -> None:
        """Take the parts that never change."""
        self.name = name
        self.kind = kind
        self.trigger = trigger
        self.processor = processor
        self._state = LauncherState.STARTING
        self._trouble = ""
        self._lent: Host | None = None

    @property
    def state(self) -> LauncherState:
        """Where it is in its life."""
        return self._state

    @property
    def trouble(self) -> str:
        """What is wrong with it, empty when nothing is."""
        return self._trouble

    @property
    def stalled(self) -> str:
        """Which of its own threads makes no progress: a launcher without any has none."""
        return ""

    @property
    def next_firing(self) -> datetime | None:
        """When it fires next: a launcher without a schedule does not know."""
        return None

    @property
    def counters(self) -> Counters:
        """Its counters in the daemon that it serves."""
        return self._host.counters(self.name)

    def reserve(self, host: Host) -> None:
        """Take the host; there is nothing that only one process may have."""
        self._lent = host

    @property
    def _host(self) -> Host:
        if self._lent is None:
            raise RuntimeError(f"launcher {self.name} has no daemon yet")
        return self._lent

    def _become(self, state: LauncherState, trouble: str = "") -> None:
        """Note a state and a trouble, and tell the daemon when anything is new."""
        new = (state, trouble) != (self._state, self._trouble)
        self._state, self._trouble = state, trouble
        if new:
            self._host.changed()
