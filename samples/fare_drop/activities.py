"""The activities of the notifier. The transformation is the ready-made `iocflow.activities.ApplyXslt`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from lxml import etree

from iocflow import Activity
from iocflow import activities as ready_made
from iocflow.activities import AuditTable, Delivery, DeliveryOutcome, Recipient, Sender
from samples.fare_drop.context import FareDropContext
from samples.fare_drop.fares import FaresDatabase

__all__ = ["BuildRecipients", "ConstructDocument", "SendMessage", "WriteAudit", "no_takers"]

logger = logging.getLogger(__name__)

_INTERESTED = """
    SELECT DISTINCT subscribers.id, name, address FROM subscribers
    JOIN interests ON interests.subscriber_id = subscribers.id
    WHERE origin = ? AND destination = ? ORDER BY subscribers.id
"""


class BuildRecipients(Activity[FareDropContext]):
    """Finds those who asked to hear of fares on the route; without any, the run is over."""

    def __init__(self, database: str) -> None:
        """Take the path of the database with the subscribers."""
        self.database = FaresDatabase(database)

    def execute(self, context: FareDropContext) -> str:
        """Return `found` or `nobody`; for nobody, the context says whether the run stops."""
        drop = context.seed_data
        with self.database.connect(context.step.remaining()) as connection:
            cursor = connection.cursor()
            cursor.execute(_INTERESTED, (drop.origin, drop.destination))
            context.recipients = [Recipient(address, name) for _, name, address in cursor.fetchall()]
        if context.recipients:
            return "found"
        if context.stop_without_takers:
            context.stop_process(f"nobody asked to hear of fares from {drop.origin} to {drop.destination}")
        return "nobody"


class ConstructDocument(Activity[FareDropContext]):
    """Writes the news down: as an XML document for the stylesheet, as a subject, and as plain text."""

    def execute(self, context: FareDropContext) -> None:
        """Set `document`, `subject` and `text`."""
        drop = context.seed_data
        amount = f"{drop.rate_drop:.2f}"
        root = etree.Element("fare-drop")
        etree.SubElement(root, "airline", id=str(drop.airline_id)).text = drop.airline_name
        etree.SubElement(root, "route", id=str(drop.route_id), origin=drop.origin, destination=drop.destination)
        etree.SubElement(root, "rate-drop").text = amount
        context.document = etree.tostring(root, encoding="unicode")
        context.subject = f"{drop.airline_name}: {drop.origin} to {drop.destination} is {amount} cheaper"
        context.text = (
            f"{drop.airline_name} has lowered its fare from {drop.origin} to {drop.destination} by {amount}.\n\n"
            "You get this mail because you asked to hear of this route.\n"
        )


class WriteAudit(ready_made.WriteAudit):
    """Notes each recipient as *prepared* in the audit table, before the first mail goes out."""

    def __init__(self, database: str) -> None:
        """Take the path of the database with the audit table."""
        super().__init__(
            FaresDatabase(database),
            {"name": "item.name", "route_id": "seed_data.route_id", "rate_drop": "seed_data.rate_drop"},
            each="recipients",
            key="address",
            item_column="recipient",
            status="prepared",
        )
        self.path = database

    def execute(self, context: FareDropContext) -> None:
        """Write a row for each recipient."""
        super().execute(context)
        context.audited_in = self.path


class SendMessage(ready_made.SendMail):
    """Mails the news to each recipient, and enters into the audit table what became of it."""

    def __init__(self, delegate: Sender, sender: str = "fares@example.com") -> None:
        """Take the collaborator that sends, and the address that the mail is from."""
        super().__init__(delegate, sender, text="text", html="message")

    @classmethod
    def check_arguments(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        """Yield what the ready-made activity would refuse: a sender that is no address."""
        return ready_made.SendMail.check_arguments(arguments)

    def settled(self, context: FareDropContext, delivery: Delivery, *, again: bool) -> None:
        """Enter *sent*, *refused* or *uncertain*; who was put off stays *prepared*, with the server's reply."""
        if not again:
            logger.info("%s", delivery)
        if context.audited_in:
            status = "prepared" if delivery.outcome is DeliveryOutcome.DEFERRED else delivery.outcome.value
            trail = AuditTable(FaresDatabase(context.audited_in), item_column="recipient")
            step = context.step
            trail.settle(step.run_id, delivery.address, status, delivery.detail, step.remaining())


def no_takers(context: FareDropContext) -> None:
    """Take note that nobody asked to hear of the route: what an exclusive choice does instead of mailing."""
    drop = context.seed_data
    logger.info("nobody asked to hear of fares from %s to %s", drop.origin, drop.destination)
