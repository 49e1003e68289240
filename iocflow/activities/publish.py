"""Outgoing events: an activity that publishes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol, runtime_checkable

from pydantic_core import PydanticSerializationError, to_jsonable_python

from iocflow.activities.arguments import Rule, complaints, demanded, keep
from iocflow.activities.errors import EventDataError
from iocflow.activities.fields import check_path, read_field
from iocflow.activity import Activity
from iocflow.durable.outgoing import Addressed, publisher_at

__all__ = ["PublishEvent"]


@runtime_checkable
class _Outbox(Protocol):
    """What the step of a durable run offers."""

    publish: Callable[[str], None]


class PublishEvent(Activity[Any]):
    """Publishes an event about the run: a CloudEvent in JSON, with an id that is the same in every attempt.

    In a durable run the event is written with the step's own record, and a relay (in `iocflow serve` and `iocflow
    worker`) sends it after that: at least once, after the events that the run published before, and never when the step
    failed. In any other run it is sent at once, and the step fails when it does not arrive.

    Where it goes: `amqp://host/vhost?queue=orders` and `redis://host/0?queue=orders` (a broker), `https://host/path`,
    `folder:var/outbox`. A source of iocflow at the same place reads it.
    """

    def __init__(
        self, to: str, type: str, data: str | Mapping[str, str] = "seed_data", subject: str = "", source: str = ""
    ) -> None:
        """Take the place and what is told; nothing is connected yet.

        Args:
            to: The address of the place.
            type: The event's type, as `com.example.order.shipped`.
            data: The path of the field that is the event's data, or several by the name that each has in the data.
            subject: The path of the field that says what the event is about; none without one.
            source: The event's source, a URI reference; `/iocflow/` and the processor's name without one.

        Raises:
            PublisherAddressError: The address is wrong.
            ValueError: A path is none, or the type is empty.
        """
        keep(_rules({"type": type, "data": data, "subject": subject}))
        self.publisher = publisher_at(to)
        self.type, self.data, self.subject, self.source = type, data, subject, source

    @classmethod
    def check_arguments(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Yield what the constructor would refuse."""
        return complaints(_rules(arguments)) if cls.__init__ is PublishEvent.__init__ else ()

    def execute(self, context: Any) -> None:
        """Publish the event.

        Raises:
            EventDataError: A field cannot be written as JSON.
            PublishError: Outside of a durable run: it is not known to have arrived.
        """
        addressed = Addressed(self.publisher.name, self._event(context))
        step = context.step
        if isinstance(step, _Outbox):
            step.publish(addressed.text())
        else:
            self.publisher.publish(addressed.event["id"], addressed.document())

    def _event(self, context: Any) -> dict[str, Any]:
        event = {
            "specversion": "1.0",
            "id": context.step.idempotency_key,
            "source": self.source or f"/iocflow/{context.step.processor}",
            "type": self.type,
            "time": datetime.now(UTC).isoformat(),
            "datacontenttype": "application/json",
            "data": self._data(context),
        }
        if self.subject:
            event["subject"] = str(read_field(context, self.subject, self.name))
        return event

    def _data(self, context: Any) -> Any:
        if isinstance(self.data, str):
            return self._json(context, self.data)
        return {name: self._json(context, path) for name, path in self.data.items()}

    def _json(self, context: Any, path: str) -> Any:
        try:
            return to_jsonable_python(read_field(context, path, self.name))
        except (PydanticSerializationError, ValueError) as error:
            raise EventDataError(f"{self.name}: {path} cannot be written as JSON: {error}") from error


def _rules(given: Mapping[str, Any]) -> Iterator[Rule]:
    """Yield the rules about the arguments that are `given`."""
    if "to" in given:
        yield "to", partial(publisher_at, given["to"])
    if "type" in given:
        yield demanded("type", given["type"], "write what happened, as com.example.order.shipped")
    data = given.get("data", "seed_data")
    for path in [data] if isinstance(data, str) else data.values():
        yield "data", partial(check_path, path, "data")
    if given.get("subject"):
        yield "subject", partial(check_path, given["subject"], "subject")
