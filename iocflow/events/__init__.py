"""Event-driven launching: sources of events, and the launcher that runs a processor for each of them."""

from iocflow.events.folder import FolderOptions, FolderSource
from iocflow.events.http import HttpOptions, HttpPlace, HttpSource
from iocflow.events.launcher import EventLauncher
from iocflow.events.memory import MemorySource, QueueFullError
from iocflow.events.section import on_event
from iocflow.events.source import AnsweringSource, Delivery, Event, EventSource, Reason

__all__ = [
    "AnsweringSource",
    "Delivery",
    "Event",
    "EventLauncher",
    "EventSource",
    "FolderOptions",
    "FolderSource",
    "HttpOptions",
    "HttpPlace",
    "HttpSource",
    "MemorySource",
    "QueueFullError",
    "Reason",
    "on_event",
]
