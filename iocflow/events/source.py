"""What a source of events has to do, and what passes between it and the launcher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from iocflow.launch.contract import Launchable
from iocflow.launch.ended import Ended
from iocflow.launch.launcher import Host

__all__ = ["AnsweringSource", "Delivery", "Event", "EventSource", "Reason"]


@dataclass(frozen=True, slots=True)
class Event:
    """An event, under the attribute names of CloudEvents.

    Attributes:
        id: Unique in its `source`; the same when the event is brought again.
        source: Where it comes from.
        data: The seed data of its run; an event whose data is None is dead-lettered without a run.
        time: When it happened, as it says itself.
    """

    id: str
    source: str
    data: object
    type: str = ""
    subject: str = ""
    time: datetime | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """One event in the hands of the launcher, until it is settled: acknowledged, given back, or dead-lettered.

    Attributes:
        name: What the source calls it, fit to be logged.
        event: The event; None when it could not be read.
        refusal: Why it could not be read; then it is dead-lettered without a run.
        key: What the source knows it by; nobody else looks at it.
    """

    name: str
    event: Event | None = None
    refusal: str = ""
    key: object = None


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an event is dead-lettered.

    Attributes:
        reason: In one line, without secrets.
        activity: The path of the activity that failed, empty when none did.
        run_id: The run that failed; empty when the event was refused without one.
    """

    reason: str
    launcher: str
    processor: str
    activity: str = ""
    run_id: str = ""
    event_id: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return it as a dictionary."""
        return asdict(self)


class EventSource(Protocol):
    """Brings events, and settles each of them when it is told what became of it.

    All methods but `reserve` and `wake` are called in one thread, the launcher's. A source that is in trouble raises;
    the launcher waits a while and calls `open` again, also while deliveries are in hand: those stay valid. An event
    that was neither settled nor given back when the process ended is brought again later: at least once, never lost.
    """

    @property
    def name(self) -> str:
        """The source as it is written in a container file, as `folder:var/inbox`."""

    @property
    def identity(self) -> str:
        """What is read, however its address is spelled: equal for two sources that would take each other's events."""

    def reserve(self) -> None:
        """Keep other processes out, where that can be done without waiting; the first call, before anything is run.

        What cannot be had now, but perhaps later, is left to `open`.

        Raises:
            ImpossibleSourceError: It can never be opened as it is configured.
            LockedError: Another process has it.
        """

    def open(self) -> None:
        """Get ready to receive.

        Raises:
            ImpossibleSourceError: It can never be opened as it is configured.
            LockedError: Another process has it.
        """

    def receive(self, limit: int, timeout: float) -> Sequence[Delivery]:
        """Return up to `limit` events; when there is none, wait for some time up to `timeout` seconds."""

    def acknowledge(self, delivery: Delivery) -> None:
        """Settle: the event is dealt with."""

    def give_back(self, delivery: Delivery) -> None:
        """Settle: the event was not dealt with, and is to be brought again."""

    def dead_letter(self, delivery: Delivery, reason: Reason) -> None:
        """Settle: keep the event aside, with the reason."""

    def wake(self) -> None:
        """Let a `receive` that waits return now; called in any thread."""

    def close(self) -> None:
        """Let go of everything; the last call, also of a source that could never be opened."""


@runtime_checkable
class AnsweringSource(EventSource, Protocol):
    """A source whose senders wait to be told more than that their event was settled."""

    def serve(self, launcher: str, processor: Launchable, host: Host) -> None:
        """Take who reads it, what its events start, and what the daemon lends; called before `reserve`."""

    def ended(self, delivery: Delivery, ended: Ended) -> None:
        """Take how a delivery's run ended, just before it is settled; again when that has to be repeated."""
