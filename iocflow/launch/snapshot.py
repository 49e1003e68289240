"""The daemon at one moment, as plain data: for a live table, a health page, or a line of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

__all__ = ["WELL", "DaemonState", "InHand", "LauncherSnapshot", "LauncherState", "Snapshot"]


class DaemonState(StrEnum):
    """Where the daemon is in its life."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"


class LauncherState(StrEnum):
    """Where a launcher is in its life.

    Attributes:
        RETRYING: Its source is in trouble and is tried again and again.
        PAUSED: An operator paused it.
        FINISHED: It will never fire again.
    """

    STARTING = "starting"
    RUNNING = "running"
    RETRYING = "retrying"
    PAUSED = "paused"
    FINISHED = "finished"
    STOPPED = "stopped"


WELL = (LauncherState.RUNNING, LauncherState.PAUSED, LauncherState.FINISHED)
"""Where a launcher is when nothing is wrong with it in a daemon that runs."""


@dataclass(frozen=True, slots=True)
class InHand:
    """Something that occupies a thread of the pool: a run, or a poll that looks for one.

    Attributes:
        run_id: The run's id; empty while a poll looks for work.
        message_id: The id of the event that the run comes from, else empty.
        seconds: For how long it has been going on.
        overdue: Whether that is longer than `daemon.overdue`.
    """

    launcher: str
    processor: str
    run_id: str
    message_id: str
    seconds: float
    overdue: bool


@dataclass(frozen=True, slots=True)
class LauncherSnapshot:
    """One launcher at one moment.

    Attributes:
        kind: `every`, `cron`, `at`, `calendar`, `source`.
        trigger: What it waits for, as a person would write it: `every 60s`, `folder:var/inbox`.
        trouble: What is wrong with it now, empty when nothing is.
        counts: Its counters, by the names of `Count`.
        in_hand: How many of its runs and polls go on now.
        next_firing: When it fires next, UTC; None without a schedule.
    """

    name: str
    kind: str
    trigger: str
    processor: str
    state: LauncherState
    trouble: str
    counts: Mapping[str, int]
    in_hand: int
    next_firing: datetime | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole daemon at one moment.

    Attributes:
        ready: Whether everything made progress recently and nothing is overdue.
        troubles: Why it is not ready; empty when it is.
        pool_size: The number of threads that run things.
        queued: How many ticks and events wait for a thread.
        in_hand: What occupies a thread, the oldest first.
        uptime: Seconds since the start.
    """

    state: DaemonState
    ready: bool
    troubles: tuple[str, ...]
    launchers: tuple[LauncherSnapshot, ...]
    pool_size: int
    queued: int
    in_hand: tuple[InHand, ...]
    uptime: float

    def as_dict(self) -> dict[str, Any]:
        """Return it as dictionaries and lists, for JSON; times are still `datetime`s."""
        return asdict(self)
