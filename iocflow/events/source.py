"""What a source of events has to do, and what passes between it and the launcher."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Protocol, runtime_checkable

from iocflow.launch.contract import Launchable
from iocflow.launch.ended import Ended
from iocflow.launch.launcher import Host

__all__ = [
    "AnsweringSource",
    "DeadLetter",
    "Delivery",
    "Event",
    "EventSource",
    "KeepsDeadLetters",
    "Reason",
    "Tended",
]


@dataclass(frozen=True, slots=True)
class Event:
    """An event, under the attribute names of CloudEvents.

    Attributes:
        id: Unique in its `source`; the same when the event is brought again.
        source: Where it comes from.
        data: The seed data of its run; an event whose data is None is dead-lettered without a run.
        time: When it happened, as it says itself.
        traceparent: The trace that it belongs to, as W3C Trace Context writes it.
        tracestate: What else belongs to that trace.
    """

    id: str
    source: str
    data: object
    type: str = ""
    subject: str = ""
    time: datetime | None = None
    traceparent: str = ""
    tracestate: str = ""


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


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that was put aside.

    Attributes:
        id: What it is called among the dead letters of its source.
        at: When it was put aside; None when that is not known.
        body: What came, byte for byte; None when it cannot be read.
        headers: What came with it.
        reason: Why it was put aside; None when that is not known.
    """

    id: str
    at: datetime | None
    body: bytes | None
    headers: Mapping[str, object]
    reason: Reason | None

    @classmethod
    def of(cls, id: str, body: bytes | None, headers: Mapping[str, object], record: Mapping[str, object]) -> DeadLetter:
        """Return a dead letter with a record of what happened: the fields of the reason, and `failed_at`.

        The record may be empty, or something that somebody edited: what cannot be read of it is not known.
        """
        known = {one.name: str(record[one.name]) for one in fields(Reason) if one.name in record}
        try:
            at: datetime | None = datetime.fromisoformat(str(record["failed_at"])).astimezone()
        except (KeyError, ValueError, OverflowError):
            at = None
        reason = Reason(**known) if {"reason", "launcher", "processor"} <= known.keys() else None
        return cls(id, at, body, headers, reason)


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


@runtime_checkable
class Tended(Protocol):
    """A source with a connection that wants to be looked after, also while there is no room for an event."""

    def tend(self, room: int) -> bool:
        """Keep the connection alive, without waiting; called in each turn of the launcher, in its thread.

        Args:
            room: How many events could be received now.

        Returns:
            Whether all is well; else it wants to be called again soon.
        """


@runtime_checkable
class KeepsDeadLetters(Protocol):
    """A source whose dead letters can be looked at and brought again, by any process, while a launcher reads it too.

    Both methods are called on a source that is not open.
    """

    def dead_letters(self) -> Iterator[DeadLetter]:
        """Yield what was put aside, the oldest first; it stays there."""

    def replay(self, ids: Collection[str]) -> Sequence[str]:
        """Bring dead letters of those ids again, byte for byte as they came; return the ids of those that there were.

        One that is brought again is no dead letter any more. When the process dies in between it may be both.
        """
