"""The daemon: it starts an application's launchers, looks after them, and stops them in good order."""

from __future__ import annotations

import logging
import os
import queue
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, Protocol, TypeVar

from iocflow.launch.clock import Clock, SystemClock
from iocflow.launch.counters import Counters
from iocflow.launch.errors import ImpossibleSourceError, LauncherError, LockedError
from iocflow.launch.exit_codes import ExitCode
from iocflow.launch.health import Health, described
from iocflow.launch.host import DaemonHost
from iocflow.launch.launcher import Companion, Launcher, Service
from iocflow.launch.leaving import Signals, leave_process
from iocflow.launch.settings import DaemonSettings
from iocflow.launch.snapshot import DaemonState, InHand, LauncherState, Snapshot
from iocflow.launch.systemd import ServiceManager
from iocflow.launch.texts import error_text
from iocflow.store.errors import StoreLockedError
from iocflow.store.launchers import Launchers
from iocflow.wiring.extras import MissingExtraError, extra

__all__ = ["Application", "Daemon", "Secrets"]

logger = logging.getLogger("iocflow.launch")

T = TypeVar("T")

RunCounts = Callable[[], Mapping[str, int]]
"""Returns how many durable runs are in each state."""


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


@dataclass(frozen=True, slots=True)
class _Stop:
    """The order to stop, and the code to exit with."""

    why: str
    code: ExitCode = ExitCode.OK


class Daemon:
    """Runs an application's launchers until it is told to stop; it runs once."""

    def __init__(
        self,
        app: Application,
        *,
        settings: DaemonSettings | None = None,
        companions: Iterable[Companion] = (),
        launching: bool = True,
        book: Launchers | None = None,
        run_counts: RunCounts | None = None,
        clock: Clock | None = None,
        leave: Callable[[int], NoReturn] = leave_process,
    ) -> None:
        """Take the application; nothing is started yet.

        Args:
            app: The application.
            settings: How the daemon works; what the application's section `daemon` says, unless given.
            companions: What works beside the launchers.
            launching: Whether the application's launchers are started at all.
            book: What a store keeps of scheduled launchers: no restart loses a firing, and several daemons fire once.
            run_counts: Returns how many durable runs are in each state, for the metrics.
            clock: The clocks, for tests.
            leave: Ends the process with an exit code when it has to end at once; for tests.

        Raises:
            LauncherError: Two launchers have the same name.
        """
        self._app, self._leave, self._clock = app, leave, clock or SystemClock()
        self._settings = settings or _settings_of(app)
        self._launchers = _launchers_of(app) if launching else ()
        self._companions = tuple(companions)
        self._orders: queue.SimpleQueue[_Stop | None] = queue.SimpleQueue()
        self._signals = Signals(lambda name: self._orders.put(_Stop(name)), self._tell_forced, leave)
        self._counters = {launcher.name: Counters() for launcher in self._launchers}
        self._host = DaemonHost(
            self._clock,
            self._settings,
            self._counters,
            limits=_limits_of(self._launchers),
            mask=app.secrets.mask,
            give_up=lambda code, why: self._orders.put(_Stop(why, code)),
            changed=lambda: self._orders.put(None),
            book=book,
        )
        self._health = Health(self._host, self._launchers, self._companions, self._counters)
        self._manager = ServiceManager(os.environ, self._clock)
        self._run_counts, self._close_port = run_counts, _nothing
        self._deadline = self._clock.monotonic()
        self._was_ready = False
        self._reported: set[tuple[str, str]] = set()

    def run(self) -> ExitCode:
        """Start the launchers, run until `stop`, SIGTERM or SIGINT, finish what is in hand, and return the exit code.

        Signals are heeded when this is called in the main thread: the first one stops the daemon, a second one ends the
        process at once with code 5. The application is not closed.

        Returns:
            OK; FORCED when runs were still in hand at the end of the grace time; CONFIGURATION when a launcher can
            never work, or none will ever start a run; LOCKED when another daemon has what it needs; FAILED when it
            cannot start for another reason.
        """
        self._signals.install()
        try:
            return self._run()
        finally:
            self._signals.restore()

    def run_and_exit(self) -> NoReturn:
        """Run, close the application, flush logs and output, and end the process: what `iocflow serve` does.

        The process ends by `os._exit`, because a thread that hangs in a run would hold the interpreter for ever. The
        beans have the rest of the grace time to close; they are not closed under runs that are still in hand.
        """
        self._signals.install()
        code = ExitCode.FAILED
        try:
            code = self._run()
            if self._host.pool.wait_idle(0):
                left = max(self._deadline - self._clock.monotonic(), 1.0)
                self._signals.leave_after(left, "the beans were not closed within the grace time")
                self._app.close()
        except Exception:
            logger.exception("the daemon failed")
            code = code or ExitCode.FAILED
        self._leave(code)

    def stop(self) -> None:
        """Tell the daemon to stop, from any thread, as a first SIGTERM does."""
        self._orders.put(_Stop("stop was called"))

    @property
    def ready(self) -> bool:
        """Whether sources are connected, timer, consumers and pool made progress recently, and no run is overdue."""
        return self._health.ready

    def snapshot(self) -> Snapshot:
        """Return the state of everything as plain data; cheap enough for a few calls a second, from any thread."""
        return self._health.snapshot()

    @property
    def _parts(self) -> tuple[Launcher | Service, ...]:
        return (*self._launchers, *self._host.services, *self._companions)

    def _run(self) -> ExitCode:
        if not self._launchers and not self._companions:
            logger.error("there is nothing to serve: the section `launchers:` is missing or empty")
            return ExitCode.CONFIGURATION
        self._host.pool.start()
        order = self._start() or self._serve()
        return self._finish(order)

    def _start(self) -> _Stop | None:
        """Start all; a daemon that another one keeps from working finds that out before it does anything."""
        return self._open_port() or self._reserve() or self._start_companions() or self._start_launchers()

    def _open_port(self) -> _Stop | None:
        """Offer health and metrics, from before the first launcher starts until after the last one has stopped."""
        if not self._settings.port:
            return None
        try:
            operations = extra("launch.operations").Operations(self._health, self._host, self._run_counts)
            self._close_port = operations.close
            operations.open()
        except (MissingExtraError, ImpossibleSourceError, LockedError) as error:
            code = ExitCode.LOCKED if isinstance(error, LockedError) else ExitCode.CONFIGURATION
            return _Stop(f"daemon.port: {error}", code)
        return None

    def _reserve(self) -> _Stop | None:
        stops = [self._tried(one, partial(one.reserve, self._host)) for one in self._launchers]
        found = [stop for stop in (*stops, self._reserve_store()) if stop]
        for other in found[1:]:
            logger.error("%s", self._host.mask(other.why))
        return found[0] if found else None

    def _reserve_store(self) -> _Stop | None:
        try:
            if self._host.book is not None and self._launchers:
                self._host.book.reserve()
        except StoreLockedError as error:
            return _Stop(str(error), ExitCode.LOCKED)
        return None

    def _start_companions(self) -> _Stop | None:
        for companion in self._companions:
            try:
                companion.start()
            except Exception as error:  # noqa: BLE001 - it is told, and ends the daemon
                logger.error("%s: %s", companion.name, self._host.mask(error_text(error)))
                return _Stop(f"{companion.name} cannot start", ExitCode.FAILED)
        return None

    def _start_launchers(self) -> _Stop | None:
        for launcher in self._launchers:
            stop = self._tried(launcher, partial(launcher.start, self._host))
            if stop:
                return stop
            names = launcher.name, launcher.trigger, launcher.processor.name
            logger.info("launcher %s: %s starts %s", *names, extra={"launcher": launcher.name})
        if not self._companions and all(one.state is LauncherState.FINISHED for one in self._launchers):
            why = "nothing will ever start a run, the moments of all launchers have passed"
            return _Stop(why, ExitCode.CONFIGURATION)
        self._health.state = DaemonState.RUNNING
        return None

    def _tried(self, launcher: Launcher, step: Callable[[], None]) -> _Stop | None:
        """Take a step with a launcher; return why the daemon has to stop when that cannot be done."""
        try:
            step()
        except (ImpossibleSourceError, LockedError) as error:
            code = ExitCode.LOCKED if isinstance(error, LockedError) else ExitCode.CONFIGURATION
            return _Stop(f"launcher {launcher.name}: {error}", code)
        except LauncherError as error:
            logger.error("launcher %s: %s", launcher.name, error, extra={"launcher": launcher.name})
            return _Stop(f"launcher {launcher.name} cannot start", ExitCode.CONFIGURATION)
        except Exception:
            logger.exception("launcher %s cannot start", launcher.name, extra={"launcher": launcher.name})
            return _Stop(f"launcher {launcher.name} cannot start", ExitCode.FAILED)
        return None

    def _serve(self) -> _Stop:
        pause = min(self._settings.heartbeat.total_seconds(), self._manager.interval or float("inf"))
        while True:
            try:
                order = self._orders.get(timeout=pause)
            except queue.Empty:
                order = None
            if order is not None:
                return order
            self._heartbeat()

    def _heartbeat(self) -> None:
        self._health.beat()
        _guarded(self._host.pool.heartbeat)
        for part in self._parts:
            _guarded(part.heartbeat)
        self._report_overdue()
        ready = self.ready
        if ready != self._was_ready:
            self._was_ready = ready
            logger.log(
                logging.INFO if ready else logging.WARNING,
                self._status(ready),
            )
        if self._health.state is DaemonState.RUNNING:
            alive = not any(self._health.stalls())
            self._manager.tell(ready=ready, alive=alive, status=self._status(ready))

    def _status(self, ready: bool) -> str:
        return "ready" if ready else self._host.mask(f"not ready: {'; '.join(self._health.troubles())}")

    def _report_overdue(self) -> None:
        overdue = [held for held in self._health.in_hand() if held.overdue]
        for held in overdue:
            if (held.launcher, held.run_id) not in self._reported:
                logger.warning("overdue: %s", described(held), extra=_fields(held))
        self._reported = {(held.launcher, held.run_id) for held in overdue}

    def _finish(self, order: _Stop) -> ExitCode:
        self._health.state = DaemonState.STOPPING
        grace = self._settings.grace.total_seconds()
        self._deadline = self._clock.monotonic() + grace
        logger.log(
            logging.ERROR if order.code else logging.INFO,
            "stopping: %s; runs in hand have %.1f s to finish",
            self._host.mask(order.why),
            grace,
        )
        self._manager.stopping(grace, self._host.mask(f"stopping: {order.why}"))
        for part in self._parts:
            _guarded(part.stop)
        self._host.pool.close()
        finishing: tuple[Launcher | Companion, ...] = (*self._launchers, *self._companions)
        finished = [_guarded(partial(each.finish, self._deadline)) for each in finishing]
        idle = self._host.pool.wait_idle(max(self._deadline - self._clock.monotonic(), 0.0))
        self._health.state = DaemonState.STOPPED
        _guarded(self._close_port)
        if self._host.book is not None:
            self._host.book.release()
        for name, counters in self._counters.items():
            logger.info("launcher %s: %s", name, _told(counters), extra={"launcher": name, **counters.as_dict()})
        if all(finished) and idle:
            logger.info("stopped: everything in hand was finished")
            return order.code
        self._tell_in_hand()
        logger.error("the grace time is over and not everything in hand is finished")
        return order.code or ExitCode.FORCED

    def _tell_in_hand(self) -> None:
        for held in self._health.in_hand():
            logger.error("still in hand: %s", described(held), extra=_fields(held))

    def _tell_forced(self, why: str) -> None:
        """Log that the process ends at once; called in a thread of its own, which may be left behind."""
        logger.error("forced to stop: %s", why)
        self._tell_in_hand()


def _guarded(call: Callable[[], T]) -> T | None:
    """Return what `call` does, None when it raises: one part that fails must not keep the daemon from the others."""
    try:
        return call()
    except Exception:
        logger.exception("%s failed", call)
        return None


def _nothing() -> None:
    """Close the port that there is not."""


def _settings_of(app: Application) -> DaemonSettings:
    section = app.section("daemon")
    return section if isinstance(section, DaemonSettings) else DaemonSettings()


def _launchers_of(app: Application) -> tuple[Launcher, ...]:
    section = app.section("launchers")
    launchers = tuple(section) if isinstance(section, Iterable) else ()
    twice = [name for name, number in Counter(one.name for one in launchers).items() if number > 1]
    if twice:
        raise LauncherError(f"two launchers are named {twice[0]}; give one of them another `name=`")
    return launchers


def _limits_of(launchers: Iterable[Launcher]) -> dict[str, int]:
    """Return the `concurrency` of the processors that have one, by name."""
    found = {one.processor.name: getattr(one.processor, "concurrency", None) for one in launchers}
    return {name: limit for name, limit in found.items() if limit is not None}


def _fields(held: InHand) -> dict[str, str]:
    return {
        "launcher": held.launcher,
        "processor": held.processor,
        "run_id": held.run_id,
        "message_id": held.message_id,
    }


def _told(counters: Counters) -> str:
    return ", ".join(f"{name} {number}" for name, number in counters.as_dict().items() if number) or "nothing happened"
