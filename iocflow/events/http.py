"""HTTP as a source: one request is one event, and its answer says what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iocflow.events.address import Address
from iocflow.events.http_address import HttpOptions, HttpPlace, read_options, read_place
from iocflow.events.http_answers import STOPPING
from iocflow.events.http_desk import Desk, Posted
from iocflow.events.source import Delivery, Reason
from iocflow.launch.contract import Launchable
from iocflow.launch.counters import Count
from iocflow.launch.ended import Ended
from iocflow.launch.errors import LauncherError
from iocflow.launch.http.messages import Response, problem
from iocflow.launch.launcher import Host
from iocflow.launch.texts import printable
from iocflow.wiring.extras import MissingExtraError, extra

if TYPE_CHECKING:  # it needs the extra
    from iocflow.launch.http.service import HttpService

__all__ = ["HttpOptions", "HttpPlace", "HttpSource"]


class HttpSource:
    """`http:8080/orders`: every JSON document that is posted there is an event, and the request waits for its end.

    Where runs are durable, the end is that the run is recorded, and the answer is 202 with its id. Where they are not,
    the answer comes after the run: 200 or 500. Nothing of an event is kept here: who gets no answer sends it again,
    with the same key.
    """

    def __init__(self, place: HttpPlace, options: HttpOptions | None = None) -> None:
        """Take where to listen, and what to let in; nothing is opened yet."""
        self.place = place
        self.options = options or HttpOptions()
        self._desk: Desk | None = None
        self._service: HttpService | None = None
        self._answers: dict[Delivery, Response] = {}

    @classmethod
    def at(cls, address: Address) -> HttpSource:
        """Return the source at an address, as `http:127.0.0.1:8080/orders?token=…&limit=1MB&wait=10s`."""
        place = read_place(address)
        options = read_options(address, place)
        try:
            extra("launch.http.service")
        except MissingExtraError as error:
            raise LauncherError(str(error)) from error
        return cls(place, options)

    @property
    def name(self) -> str:
        """The address, without what may come in."""
        return str(self.place)

    @property
    def identity(self) -> str:
        """The address."""
        return str(self.place)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What of the address has to be kept out of messages and logs."""
        return (self.options.token,) if self.options.token else ()

    def serve(self, launcher: str, processor: Launchable, host: Host) -> None:
        """Take whose events these become, and what the daemon lends."""
        self._desk = Desk(self.place, self.options, processor, host.mask)
        self._desk.refused = lambda: host.counters(launcher).add(Count.REFUSED)
        self._service = host.service(extra("launch.http.service").HttpService)

    def reserve(self) -> None:
        """Listen; who connects waits until the source is open."""
        self._serving.reserve(self._endpoint, self.place.path, self._own_desk)

    def open(self) -> None:
        """Begin to take requests."""
        self._serving.join(self._endpoint)

    def receive(self, limit: int, timeout: float) -> Sequence[Delivery]:
        """Return up to `limit` events, or none when nothing comes for `timeout` seconds."""
        taken = self._own_desk.take(limit, timeout)
        return [Delivery(printable(one.event.id), one.event, key=one) for one in taken]

    def ended(self, delivery: Delivery, ended: Ended) -> None:
        """Note what the senders are to be told when the event is settled."""
        self._answers[delivery] = self._own_desk.ended(ended)

    def acknowledge(self, delivery: Delivery) -> None:
        """Tell the senders how the run ended."""
        self._settle(delivery, problem(500, "nobody knows how the run ended"))

    def give_back(self, delivery: Delivery) -> None:
        """Tell the senders to try again."""
        self._settle(delivery, STOPPING)

    def dead_letter(self, delivery: Delivery, reason: Reason) -> None:
        """Tell the senders what is wrong: they have the event."""
        self._settle(delivery, problem(400, reason.reason))

    def wake(self) -> None:
        """Let a `receive` that waits return now."""
        if self._desk is not None:
            self._desk.wake()

    def close(self) -> None:
        """Let the last answers be written, and listen no more."""
        if self._service is not None:
            self._service.leave(self._endpoint, self.place.path)

    def _settle(self, delivery: Delivery, otherwise: Response) -> None:
        posted = delivery.key
        if isinstance(posted, Posted):
            self._own_desk.settle(posted, self._answers.pop(delivery, otherwise))

    @property
    def _endpoint(self) -> tuple[str, int]:
        return self.place.host, self.place.port

    @property
    def _own_desk(self) -> Desk:
        if self._desk is None:
            raise RuntimeError(f"{self.name} has no launcher yet")
        return self._desk

    @property
    def _serving(self) -> HttpService:
        if self._service is None:
            raise RuntimeError(f"{self.name} has no launcher yet")
        return self._service
