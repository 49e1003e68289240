"""Event-driven launching: sources of events, and the launcher that runs a processor for each of them."""

from iocflow.events.folder import FolderOptions, FolderSource
from iocflow.events.http import HttpOptions, HttpPlace, HttpSource
from iocflow.events.launcher import EventLauncher
from iocflow.events.mail import Mail
from iocflow.events.mailbox import MailboxSource
from iocflow.events.mailbox_address import MailboxOptions
from iocflow.events.memory import MemorySource, QueueFullError
from iocflow.events.section import on_event
from iocflow.events.source import (
    AnsweringSource,
    DeadLetter,
    Delivery,
    Event,
    EventSource,
    KeepsDeadLetters,
    Reason,
    Tended,
)

__all__ = [
    "AnsweringSource",
    "DeadLetter",
    "Delivery",
    "Event",
    "EventLauncher",
    "EventSource",
    "FolderOptions",
    "FolderSource",
    "HttpOptions",
    "HttpPlace",
    "HttpSource",
    "KeepsDeadLetters",
    "Mail",
    "MailboxOptions",
    "MailboxSource",
    "MemorySource",
    "QueueFullError",
    "Reason",
    "Tended",
    "on_event",
]
