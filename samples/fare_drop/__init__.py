"""The fare-drop notifier: an airline lowers a fare, and everybody who asked to hear of it gets a mail."""

from __future__ import annotations

from iocflow.activities import SmtpTemporaryError
from samples.fare_drop.activities import BuildRecipients, ConstructDocument, SendMessage, WriteAudit, no_takers
from samples.fare_drop.alert import AlertOps, Pager
from samples.fare_drop.context import FareDrop, FareDropContext
from samples.fare_drop.fares import FaresDatabase, PollFares
from samples.fare_drop.smtp import SmtpSender

__all__ = [
    "AlertOps",
    "BuildRecipients",
    "ConstructDocument",
    "FareDrop",
    "FareDropContext",
    "FaresDatabase",
    "Pager",
    "PollFares",
    "SendMessage",
    "SmtpSender",
    "SmtpTemporaryError",
    "WriteAudit",
    "no_takers",
]
