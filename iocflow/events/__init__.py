"""Event-driven launching: sources of events, and the launcher that runs a processor for each of them."""

from iocflow.events.folder import FolderOptions, FolderSource
from iocflow.events.launcher import EventLauncher
from iocflow.events.memory import MemorySource, QueueFullError
from iocflow.events.section import on_event
from iocflow.events.source import Delivery, Event, EventSource, Reason

__all__ = [
    "Delivery",
    "Event",
    "EventLauncher",
    "EventSource",
    "FolderOptions",
    "FolderSource",
    "MemorySource",
    "QueueFullError",
    "Reason",
    "on_event",
]
