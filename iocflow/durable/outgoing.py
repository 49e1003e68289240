"""Outgoing events: who sends them, and what may go wrong; activities, publishers and the relay meet here."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from typing import Any, NamedTuple, Protocol, runtime_checkable

from iocflow.errors import IocflowError
from iocflow.wiring import did_you_mean

__all__ = [
    "Addressed",
    "PublishError",
    "PublishRefusedError",
    "Publisher",
    "PublisherAddressError",
    "Publishing",
    "publisher_at",
]


class PublishError(IocflowError):
    """An event could not be sent now: whoever takes it cannot be reached, or did not answer; another try may do."""


class PublishRefusedError(PublishError):
    """An event was refused by who was to take it."""


class PublisherAddressError(IocflowError, ValueError):
    """The address that events are to be sent to is wrong; the message says what to write."""


class Publisher(Protocol):
    """Sends events to one place; any thread may call it.

    Attributes:
        name: The address without user, password and options that are secret: by it the relay finds the publisher of an
            event that was written before this process began.
    """

    name: str

    def publish(self, id: str, document: bytes) -> None:
        """Send a CloudEvent in JSON; return when it has arrived for good. The same event may be sent again.

        Raises:
            PublishError: It is not known to have arrived.
        """

    def close(self) -> None:
        """Let go of the connection; another `publish` makes a new one."""


@runtime_checkable
class Publishing(Protocol):
    """An activity that sends events."""

    publisher: Publisher


class Addressed(NamedTuple):
    """An event with the name of the publisher that sends it, as the store keeps both."""

    to: str
    event: dict[str, Any]

    def text(self) -> str:
        """Return both as JSON."""
        return json.dumps(self._asdict(), separators=(",", ":"), ensure_ascii=False)

    def document(self) -> bytes:
        """Return the event as it is sent."""
        return json.dumps(self.event, separators=(",", ":"), ensure_ascii=False).encode()


def publisher_at(text: str) -> Publisher:
    """Return the publisher at an address, as `amqp://host/vhost?queue=orders`, without connecting.

    The kinds are found through the entry point group `iocflow.publishers`, by the scheme.

    Raises:
        PublisherAddressError: It is no address, or nothing of its scheme is installed.
    """
    scheme, colon, _ = text.partition(":")
    kinds = {point.name: point for point in entry_points(group="iocflow.publishers")}
    if not colon or scheme not in kinds:
        remedy = did_you_mean(scheme, kinds) if colon else "write its kind and its place"
        raise PublisherAddressError(f"events cannot be sent to `{scheme}`; {remedy} (as in folder:var/outbox)")
    made: Publisher = kinds[scheme].load().at(text)
    return made
