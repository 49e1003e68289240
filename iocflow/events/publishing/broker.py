"""Events into a queue of a message broker, through kombu, confirmed by the broker."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from typing import TYPE_CHECKING

from iocflow.durable.outgoing import PublisherAddressError, PublishError
from iocflow.events.address import Address
from iocflow.events.broker_message import Message
from iocflow.events.broker_options import BrokerOptions
from iocflow.events.waker import Waker
from iocflow.launch.errors import LauncherError
from iocflow.launch.texts import error_text
from iocflow.wiring.extras import extra

if TYPE_CHECKING:
    from iocflow.events.broker_wire import Wire

__all__ = ["BrokerPublisher"]

CLOUD_EVENT = "application/cloudevents+json"


class BrokerPublisher:
    """`amqp://host/vhost?queue=orders`, `redis://…`: an event is a durable message with the event's id as its own.

    The queue is declared, unless the address says `declare=passive`. With RabbitMQ an event has arrived when the broker
    has confirmed it.
    """

    def __init__(self, options: BrokerOptions) -> None:
        """Take the address in its parts; nothing is connected yet."""
        self.options = dataclasses.replace(options, dead="")
        self.name = options.name
        self._lock = threading.Lock()
        self._wire: Wire | None = None

    @classmethod
    def at(cls, text: str) -> BrokerPublisher:
        """Return the publisher at an address.

        Raises:
            PublisherAddressError: The address is wrong.
        """
        try:
            address = Address.parse(text)
            options = BrokerOptions.of(address)
        except LauncherError as error:
            raise PublisherAddressError(str(error).replace(": source", ": publisher")) from error
        address.only(("queue", "declare", "heartbeat", "ca"))
        if address.noted:
            raise PublisherAddressError("; ".join(dict.fromkeys(address.noted)))
        return cls(options)

    def publish(self, id: str, document: bytes) -> None:
        """Send an event; a connection that was lost while nothing was sent is made anew.

        Raises:
            PublishError: The broker cannot be reached, or did not confirm it.
        """
        message = Message(document, {}, {"content_type": CLOUD_EVENT, "message_id": id}, None)
        with self._lock:
            if self._wire is not None:
                try:
                    self._wire.send(self.options.queue, message)
                except Exception:  # noqa: BLE001 - whatever it was, another connection tells whether it lasts
                    self._drop()
                else:
                    return
            try:
                self._wire = extra("events.broker_wire").Wire(self.options, lambda _: None, lambda: 0, Waker())
                self._wire.send(self.options.queue, message)
            except Exception as error:
                self._drop()
                raise PublishError(f"{self.name} takes no event: {error_text(error)}") from error

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            if self._wire is not None:
                with contextlib.suppress(Exception):  # what was sent is confirmed
                    self._wire.close()
            self._wire = None

    def _drop(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.drop()
