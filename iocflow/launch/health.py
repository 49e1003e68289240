"""How a daemon is: what is in hand, what made no progress, what else is wrong, and all of that as a snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from iocflow.launch.counters import Counters
from iocflow.launch.host import DaemonHost
from iocflow.launch.launcher import Companion, Launcher
from iocflow.launch.pool import Progress
from iocflow.launch.snapshot import WELL, DaemonState, InHand, LauncherSnapshot, Snapshot
from iocflow.launch.texts import printable

__all__ = ["Health", "described"]

MAIN_THREAD_SECONDS = 30.0
"""After what silence of the daemon's own main thread it is not ready."""


class Health:
    """Looks at a daemon's parts; any thread may ask, a few times a second.

    Attributes:
        state: Where the daemon is in its life; it sets this itself.
    """

    def __init__(
        self,
        host: DaemonHost,
        launchers: Sequence[Launcher],
        companions: Sequence[Companion],
        counters: Mapping[str, Counters],
    ) -> None:
        """Take the parts; `counters` are those of each launcher, by name."""
        self.state = DaemonState.STARTING
        self._host, self._clock, self._settings = host, host.clock, host.settings
        self._launchers, self._companions, self._counters = launchers, companions, counters
        self._began = self._beat = self._clock.monotonic()

    def beat(self) -> None:
        """Note that the daemon's main thread makes progress."""
        self._beat = self._clock.monotonic()

    @property
    def ready(self) -> bool:
        """Whether sources are connected, timer, consumers and pool made progress recently, and no run is overdue."""
        return self.state is DaemonState.RUNNING and not any(self.troubles())

    def snapshot(self) -> Snapshot:
        """Return the state of everything as plain data."""
        held = self.in_hand()
        per_launcher = Counter(one.launcher for one in held)
        troubles = tuple(self.troubles())
        return Snapshot(
            state=self.state,
            ready=self.state is DaemonState.RUNNING and not troubles,
            troubles=troubles,
            launchers=tuple(self._launcher(one, per_launcher[one.name]) for one in self._launchers),
            pool_size=self._host.pool.size,
            queued=self._host.pool.queued,
            in_hand=tuple(held),
            uptime=self._clock.monotonic() - self._began,
        )

    def in_hand(self) -> list[InHand]:
        """Return what occupies a thread, the oldest first."""
        return [self._in_hand(progress) for progress in self._host.pool.in_hand()]

    def stalls(self) -> Iterator[str]:
        """Yield which threads made no progress lately: what only a new process cures.

        A source or a store that is away is none of them, nor is a run that takes long while others find a thread. A
        daemon that is stopping has its grace time, and whoever waits for it ends it after that.
        """
        if self.state in (DaemonState.STOPPING, DaemonState.STOPPED):
            return
        silent = self._clock.monotonic() - self._beat
        if silent > MAIN_THREAD_SECONDS + self._settings.heartbeat.total_seconds():
            yield f"the daemon's main thread made no progress for {silent:.0f} s"
        yield from (trouble for service in self._host.services if (trouble := service.trouble()))
        yield from (f"launcher {one.name}: {one.stalled}" for one in self._launchers if one.stalled)
        pool, overdue = self._host.pool, self._settings.overdue
        if pool.stalled(overdue.total_seconds()):
            yield f"none of {pool.size} threads came free for {overdue}; {pool.queued} ticks and events wait"

    def troubles(self) -> Iterator[str]:
        """Yield why the daemon is not ready."""
        yield from self.stalls()
        yield from (trouble for companion in self._companions if (trouble := companion.trouble()))
        for launcher in self._launchers:
            if not launcher.stalled and (launcher.trouble or launcher.state not in WELL):
                yield f"launcher {launcher.name} is {launcher.state}{launcher.trouble and ': '}{launcher.trouble}"
        yield from (f"overdue: {described(one)}" for one in self.in_hand() if one.overdue)

    def _in_hand(self, progress: Progress) -> InHand:
        seconds = self._clock.monotonic() - progress.since
        overdue = seconds > self._settings.overdue.total_seconds()
        return InHand(progress.launcher, progress.processor, progress.run_id, progress.message_id, seconds, overdue)

    def _launcher(self, launcher: Launcher, in_hand: int) -> LauncherSnapshot:
        return LauncherSnapshot(
            name=launcher.name,
            kind=launcher.kind,
            trigger=launcher.trigger,
            processor=launcher.processor.name,
            state=launcher.state,
            trouble=launcher.trouble,
            counts=self._counters[launcher.name].as_dict(),
            in_hand=in_hand,
            next_firing=launcher.next_firing,
        )


def described(held: InHand) -> str:
    """Return in words what occupies a thread."""
    doing = f"run {held.run_id} of {held.processor}" if held.run_id else "looking for work"
    event = f" for event {printable(held.message_id)}" if held.message_id else ""
    return f"launcher {held.launcher}, {doing}{event}, for {held.seconds:.0f} s"
