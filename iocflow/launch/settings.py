"""What the section `daemon:` of a container file says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from iocflow.launch.places import LOOPBACK

__all__ = ["DaemonSettings"]


@dataclass(frozen=True, slots=True)
class DaemonSettings:
    """How the daemon works; each default is meant to be left alone.

    Attributes:
        pool: How many runs go on at once, all launchers together.
        grace: How long runs in hand may go on after the daemon was told to stop. 25 s leaves five of the 30 s after
            which container platforms kill a process.
        heartbeat: How often the daemon looks after its threads and compares the wall clock with the monotonic one; at
            most 30 s, so that a clock that was set is noticed soon.
        overdue: After what time a run in hand is reported as overdue, and the daemon as not ready.
        port: Where `/live`, `/ready` and `/metrics` are offered; 0 for nowhere.
        host: The IP address of that.
    """

    pool: int = 8
    grace: timedelta = timedelta(seconds=25)
    heartbeat: timedelta = timedelta(seconds=5)
    overdue: timedelta = timedelta(minutes=10)
    port: int = 0
    host: str = LOOPBACK
