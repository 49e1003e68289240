"""A queue of a message broker as a source, through kombu: `amqp://…` for RabbitMQ, `redis://…`."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from iocflow.errors import IocflowError
from iocflow.events.address import Address
from iocflow.events.broker_dead import buried, dead_letters, replay
from iocflow.events.broker_message import Message, fingerprint, named_id, read_message
from iocflow.events.broker_options import BrokerOptions
from iocflow.events.envelope import UnreadableEventError
from iocflow.events.source import DeadLetter, Delivery, Event, Reason
from iocflow.events.waker import Waker
from iocflow.launch.errors import ImpossibleSourceError
from iocflow.launch.texts import error_text, printable
from iocflow.wiring.extras import extra

if TYPE_CHECKING:
    from iocflow.events.broker_wire import Wire

__all__ = ["BrokerLostError", "BrokerSource"]

logger = logging.getLogger("iocflow.events")

REMEMBERED = 1000
"""How many messages are remembered that were settled without knowing that the broker heard of it."""
MEMORY = 600.0
"""For how many seconds."""
BRIEF = 0.05
"""How long, in seconds, is waited for a message at most while the broker is about to be told of another room."""


class BrokerLostError(IocflowError):
    """A broker cannot be reached, or the connection to it was lost; the launcher tries again."""


@dataclass(slots=True, eq=False)
class _Held:
    """A message that was received and is not settled."""

    message: Message
    event: Event | None
    refusal: str
    print: str
    named: bool
    generation: int
    arrived: datetime
    buried: bool = False


class BrokerSource:
    """`amqp://host/vhost?queue=orders`: every message of the queue is an event.

    A message is acknowledged when it is settled, on the connection that brought it. When that is lost, the broker
    brings the message again; the source knows it again by its id and goes on with the one in hand, or, when that was
    settled meanwhile, only acknowledges it. A message without an id is known again while it is in hand.

    Dead letters go into a queue of their own, as they came, with a header that tells why; they are there, confirmed by
    the broker, before the message is acknowledged.
    """

    def __init__(self, options: BrokerOptions) -> None:
        """Take the address in its parts; nothing is connected yet."""
        self.options = options
        self._name = options.name
        self._waker = Waker()
        self._wire: Wire | None = None
        self._generation = 0
        self._expected = 0  # messages in hand that the broker brings again, for which no thread has to be free
        self._waiting: deque[_Held] = deque()
        self._held: dict[str, list[_Held]] = {}
        self._again: list[_Held] = []
        self._acknowledged: deque[str] = deque(maxlen=REMEMBERED)
        self._settled: OrderedDict[str, float] = OrderedDict()

    @classmethod
    def at(cls, address: Address) -> BrokerSource:
        """Return the source at an address, as `amqp://user:password@host:5672/vhost?queue=orders`."""
        return cls(BrokerOptions.of(address))

    @property
    def name(self) -> str:
        """The address without user and password."""
        return self._name

    @property
    def identity(self) -> str:
        """The same."""
        return self._name

    def reserve(self) -> None:
        """Do nothing: any number of processes may share a queue."""

    def open(self) -> None:
        """Connect."""
        self._drop()
        self._generation += 1
        self._wire = self._connected(self._arrive, lambda: len(self._waiting))
        self._expected = 0 if self._wire.lasting else sum(map(len, self._held.values()))

    def receive(self, limit: int, timeout: float) -> Sequence[Delivery]:
        """Return up to `limit` events, as soon as there is one."""
        self._tend(limit, timeout)
        taken = [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]
        return [
            Delivery(_name_of(held), held.event, held.refusal and f"refused: {held.refusal}", key=held)
            for held in taken
        ]

    def tend(self, room: int) -> bool:
        """Take in what has come, send heartbeats, and give back what there is no room for any more."""
        if self._wire is None:
            return True
        even = self._tend(room, 0.0)
        while len(self._waiting) > room:
            self._expected = 0
            self._give_back(self._waiting[-1])  # when that fails it must not be taken for one that is in hand
            self._waiting.pop()
        return even

    def acknowledge(self, delivery: Delivery) -> None:
        """Tell the broker that the event is dealt with; when its connection was lost, tell it when it comes again."""
        held = _held_of(delivery)
        if self._settles(held):
            with self._talking() as wire:
                wire.acknowledge(held.message.tag)
            if held.named:
                self._acknowledged.append(held.print)
        else:
            self._remember(held)
        self._forget(held)

    def give_back(self, delivery: Delivery) -> None:
        """Let the broker bring the event again."""
        self._give_back(_held_of(delivery))

    def dead_letter(self, delivery: Delivery, reason: Reason) -> None:
        """Put the message into the queue of the dead letters, and acknowledge it when the broker has confirmed that."""
        held = _held_of(delivery)
        # One that comes again, and cannot be known again, will fail again.
        if not held.buried and (self._settles(held) or held.named):
            with self._talking() as wire:
                wire.send(self.options.dead, buried(held.message, reason, held.arrived, self.options.queue))
            held.buried = True
        self.acknowledge(delivery)

    def wake(self) -> None:
        """Let a `receive` that waits return now."""
        self._waker.wake()

    def close(self) -> None:
        """Give back what was not taken, and let go of the connection."""
        wire = self._wire
        try:
            while wire is not None and self._waiting:
                self._give_back(self._waiting[0])
                self._waiting.popleft()
            if wire is not None:
                with self._talking():
                    wire.close()
        except BrokerLostError as error:
            logger.warning("%s: %s; what was in hand comes again", self.name, error)
        self._wire = None
        self._waker.close()

    def dead_letters(self) -> Iterator[DeadLetter]:
        """Yield the messages in the queue of the dead letters, the oldest first."""
        with self._visiting() as wire:
            yield from dead_letters(wire, self.options.dead)

    def replay(self, ids: Collection[str]) -> Sequence[str]:
        """Put dead letters back into the queue that they came from, confirmed, and take them out of theirs."""
        with self._visiting() as wire:
            return replay(wire, self.options, ids)

    def _connected(self, arrived: Callable[[Message], None], waiting: Callable[[], int]) -> Wire:
        try:
            wire: Wire = extra("events.broker_wire").Wire(self.options, arrived, waiting, self._waker)
        except ImpossibleSourceError:
            raise
        except Exception as error:
            raise BrokerLostError(f"{self.name} cannot be reached: {error_text(error)}") from error
        return wire

    @contextmanager
    def _visiting(self) -> Iterator[Wire]:
        """Lend a connection that consumes nothing; what is in hand at its end is in the queue again."""
        wire = self._connected(lambda _: None, lambda: 0)
        try:
            yield wire
        except IocflowError:
            raise
        except Exception as error:
            raise BrokerLostError(f"the connection to {self.name} was lost: {error_text(error)}") from error
        finally:
            wire.close()

    @contextmanager
    def _talking(self) -> Iterator[Wire]:
        """Lend the connection; it is lost with the first thing that goes wrong on it."""
        if self._wire is None:
            raise BrokerLostError(f"{self.name} is not connected")
        try:
            yield self._wire
        except Exception as error:
            self._drop()
            raise BrokerLostError(f"the connection to {self.name} was lost: {error_text(error)}") from error

    def _drop(self) -> None:
        """Let go of the connection; what came by it and is not settled becomes a thing of the past."""
        wire, self._wire = self._wire, None
        if wire is None:
            return
        wire.drop()
        if not wire.lasting:
            self._generation += 1
            self._again.clear()  # their tags would mean other messages on another connection
            for print in self._acknowledged:
                self._note(print)
            self._acknowledged.clear()
            while self._waiting:
                self._forget(self._waiting.pop())

    def _tend(self, room: int, timeout: float) -> bool:
        """Talk to the broker; return whether it knows how much room there is."""
        in_hand = sum(map(len, self._held.values())) - len(self._waiting)
        with self._talking() as wire:
            even = wire.grant(min(room, self.options.prefetch - in_hand) + self._expected)
            wire.pump(timeout if even else min(timeout, BRIEF))
            while self._again:
                wire.acknowledge(self._again[-1].message.tag)
                self._settled.pop(self._again.pop().print, None)
        return even

    def _arrive(self, message: Message) -> None:
        """Take a message from the broker, or know it again."""
        event, refusal, named = None, "", bool(named_id(message) or message.stamp)
        try:
            event, named = read_message(message, source=self.name)
        except UnreadableEventError as error:
            refusal = str(error)
        except Exception as error:
            # Nobody foresaw it; it must not come again and again, and hold up the messages behind it.
            logger.exception("%s: message %s cannot be read", self.name, message.tag)
            refusal = error_text(error)
        print = fingerprint(message, event, named=named)
        held = _Held(message, event, refusal, print, named, self._generation, datetime.now(UTC))
        if message.redelivered or message.stamp:
            for one in self._held.get(print, ()):
                if one.generation != self._generation or message.stamp:
                    one.generation, one.message = self._generation, message
                    self._expected = max(self._expected - 1, 0)
                    return
            if named and self._settled.get(print, 0.0) > time.monotonic():
                self._again.append(held)
                return
        self._held.setdefault(print, []).append(held)
        self._waiting.append(held)

    def _settles(self, held: _Held) -> bool:
        """Return whether the broker can be told; on another connection than the message's own it would not understand.

        Where that does not matter, and there is no connection now, the attempt to tell it will say so.
        """
        return held.generation == self._generation or (self._wire is not None and self._wire.lasting)

    def _give_back(self, held: _Held) -> None:
        if self._settles(held):
            with self._talking() as wire:
                wire.requeue(held.message.tag)
        self._forget(held)

    def _forget(self, held: _Held) -> None:
        left = [one for one in self._held.get(held.print, ()) if one is not held]
        if left:
            self._held[held.print] = left
        else:
            self._held.pop(held.print, None)

    def _remember(self, held: _Held) -> None:
        """Note that a message is dealt with that the broker will bring again."""
        logger.warning("event %s ended after its connection was lost; the broker brings it again", _name_of(held))
        if held.named:
            self._note(held.print)

    def _note(self, print: str) -> None:
        self._settled[print] = time.monotonic() + MEMORY
        while len(self._settled) > REMEMBERED:
            self._settled.popitem(last=False)


def _held_of(delivery: Delivery) -> _Held:
    held = delivery.key
    if not isinstance(held, _Held):
        raise TypeError(f"{delivery.name} is no delivery of a broker")
    return held


def _name_of(held: _Held) -> str:
    """Return what a message is called in the log."""
    return printable(held.event.id if held.event else named_id(held.message) or f"message {held.message.tag}")
