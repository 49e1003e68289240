"""The event-driven launchers of a container file: `source:`; and the same for programs."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from iocflow.events.address import Address, AddressError, LackingError, SourceKind, password_of
from iocflow.events.launcher import EventLauncher
from iocflow.events.source import EventSource
from iocflow.launch.contract import Launchable
from iocflow.launch.errors import LauncherError
from iocflow.launch.launcher import Launcher
from iocflow.launch.section import LauncherEntry, refused
from iocflow.wiring import Node, Place, Scalar, Scope, Wired, did_you_mean
from iocflow.wiring.schemas import text

__all__ = ["EventReader", "on_event", "source_at"]


def source_at(text: str) -> EventSource:
    """Return the source at an address, unopened.

    Raises:
        AddressError: The address is wrong, with all that is.
        LauncherError: It is no address, or nothing of its scheme is installed.
    """
    address = Address.parse(text)
    kinds = {point.name: point for point in entry_points(group="iocflow.sources")}
    if address.scheme not in kinds:
        remedy = did_you_mean(address.scheme, kinds)
        raise LauncherError(f"there is no kind of source `{address.scheme}`; {remedy} (as in folder:var/inbox)")
    kind: SourceKind = kinds[address.scheme].load()
    try:
        source = kind.at(address)
    except LauncherError as error:
        raise AddressError([str(error), *address.noted]) from error
    if address.noted:
        raise AddressError(address.noted)
    return source


def on_event(source: str | EventSource, processor: Launchable, *, name: str = "") -> EventLauncher:
    """Return a launcher that runs `processor` for each event of a source.

    Args:
        source: An address, as `folder:var/inbox`, or a source of one's own.
        processor: What runs; an event's data is the seed.
        name: The launcher's id; the processor's name and `source` without one.

    Raises:
        LauncherError: The address is wrong.
    """
    found = source_at(source) if isinstance(source, str) else source
    return EventLauncher(name or f"{processor.name}-source", found, processor)


class EventReader:
    """Reads the launchers that have a `source:`."""

    def __init__(self) -> None:
        """Start with no source read."""
        self._places: dict[str, Place] = {}  # by the source's identity

    def schema(self, kind: str) -> dict[str, Any]:
        """Return the JSON Schema of the only key."""
        return {kind: text("Where events come from, as folder:var/inbox; each one starts a run.", "^[a-z0-9+]+:.")}

    def read(self, entry: LauncherEntry, scope: Scope) -> Callable[[Wired], Launcher] | None:
        """Check a launcher; return its builder, None when it is wrong."""
        scope.unknown_keys(entry.table, ("processor", "source"), f"launcher {entry.name}")
        node = entry.table.entries["source"]
        what = f"source of launcher {entry.name}"
        address = scope.coerce(node, str, what)
        if address is None:
            return None
        if password := password_of(address):
            scope.hide(password)
        try:
            source = source_at(address)
        except LauncherError as error:
            if isinstance(error.__cause__, LackingError) and scope.elsewhere:
                return None
            for reason in error.reasons if isinstance(error, AddressError) else (error,):
                scope.findings.error(node.place, f"{what}: {refused(node, reason)}")
            return None
        for secret in getattr(source, "secrets", ()):
            scope.hide(secret)
        if source.identity in self._places:
            scope.findings.error(
                node.place,
                f"{_written(node)} has two launchers, and each event would reach only one of them",
                "let one launcher run a processor that does both",
                related=[(self._places[source.identity], "the other one")],
            )
            return None
        self._places[source.identity] = node.place
        return lambda wired: EventLauncher(entry.name, source, wired[entry.processor])


def _written(node: Node) -> str:
    """Return an address as the file writes it: what a placeholder stands for may be a secret."""
    return node.text if isinstance(node, Scalar) else ""
