"""A source in the process's own memory, for tests and for programs that have the events themselves."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Iterable, Sequence

from iocflow.errors import IocflowError
from iocflow.events.address import Address
from iocflow.events.source import Delivery, Event, Reason

__all__ = ["MemorySource", "QueueFullError"]

DEAD_MOST = 1000
"""How many dead letters are kept, the latest ones."""


class QueueFullError(IocflowError):
    """More events wait than the source takes."""


class MemorySource:
    """`memory:orders`: events that the program itself puts in; they end with the process.

    The launcher that reads it has it as `source`; `MemorySource.of(app.section("launchers"), "orders")` finds it.
    """

    def __init__(self, name: str, limit: int = 10_000) -> None:
        """Make an empty queue of that name, which takes up to `limit` events that are not settled."""
        self.queue = name
        self.limit = limit
        self.dead: deque[tuple[Event, Reason]] = deque(maxlen=DEAD_MOST)
        """Events whose runs failed, with the reasons."""
        self._changed = threading.Condition()
        self._waiting: deque[Event] = deque()
        self._in_hand = 0
        self._woken = False
        self._numbers = itertools.count(1)

    @classmethod
    def at(cls, address: Address) -> MemorySource:
        """Return the source at an address, as `memory:orders?limit=100`."""
        address.only(("limit",))
        return cls(address.path, address.number("limit", 10_000))

    @classmethod
    def of(cls, launchers: object, name: str) -> MemorySource:
        """Return the source of that name among what a tuple of launchers reads.

        Raises:
            LookupError: There is none.
        """
        sources = [getattr(one, "source", None) for one in launchers] if isinstance(launchers, Iterable) else []
        for source in sources:
            if isinstance(source, cls) and source.queue == name:
                return source
        raise LookupError(f"no launcher reads memory:{name}")

    @property
    def name(self) -> str:
        """The address."""
        return f"memory:{self.queue}"

    @property
    def identity(self) -> str:
        """The address: a queue has one name."""
        return self.name

    def put(self, data: object, *, id: str = "", type: str = "", subject: str = "") -> Event:
        """Put an event in, from any thread; `data` is the seed of its run, and not None.

        Returns:
            The event; its id is a running number unless one is given.

        Raises:
            QueueFullError: Too many events wait or are in hand.
        """
        with self._changed:
            if len(self._waiting) + self._in_hand >= self.limit:
                raise QueueFullError(f"{self.name} holds {self.limit} events that are not dealt with")
            event = Event(id or str(next(self._numbers)), self.name, data, type=type, subject=subject)
            self._waiting.append(event)
            self._changed.notify_all()
        return event

    def join(self, timeout: float) -> bool:
        """Wait until every event is settled, for `timeout` seconds at most; return whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._in_hand, timeout)

    def reserve(self) -> None:
        """Do nothing: no other process sees this memory."""

    def open(self) -> None:
        """Do nothing: memory is always there."""

    def receive(self, limit: int, timeout: float) -> Sequence[Delivery]:
        """Return up to `limit` events, or none when nothing comes for `timeout` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._woken, timeout)
            self._woken = False
            taken = [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]
            self._in_hand += len(taken)
        return [Delivery(event.id, event, key=event) for event in taken]

    def acknowledge(self, delivery: Delivery) -> None:  # noqa: ARG002  # nothing is kept of any event that is done
        """Forget the event."""
        self._settled()

    def give_back(self, delivery: Delivery) -> None:
        """Put the event in again, before all others."""
        with self._changed:
            if delivery.event is not None:
                self._waiting.appendleft(delivery.event)
        self._settled()

    def dead_letter(self, delivery: Delivery, reason: Reason) -> None:
        """Keep the event in `dead`."""
        if delivery.event is not None:
            self.dead.append((delivery.event, reason))
        self._settled()

    def wake(self) -> None:
        """Let a `receive` that waits return now."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def close(self) -> None:
        """Do nothing: what waits can still be seen by the program."""

    def _settled(self) -> None:
        with self._changed:
            self._in_hand -= 1
            self._changed.notify_all()
