"""The sections `launchers:` and `daemon:` of a container file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import entry_points
from typing import Any, Protocol

from iocflow.launch.errors import LauncherError
from iocflow.launch.launcher import Launcher
from iocflow.launch.places import LOOPBACK, PORTS, ip_of
from iocflow.launch.settings import DaemonSettings
from iocflow.wiring import Node, Place, Scalar, Scope, Table, Wired, check_id, did_you_mean
from iocflow.wiring.extras import MissingExtraError, extra
from iocflow.wiring.schemas import duration_schema, number, text
from iocflow.wiring.settings import Bounds, read_settings

__all__ = ["DaemonReader", "LauncherEntry", "LauncherReader", "LaunchersReader", "refused"]

_POOL = (1, 1000)
_BOUNDS: Bounds = {
    "pool": _POOL,
    "grace": (timedelta(0), timedelta(days=1)),
    "heartbeat": (timedelta(milliseconds=50), timedelta(seconds=30)),
    "overdue": (timedelta(seconds=1), timedelta(days=366)),
    "port": (PORTS[0], PORTS[-1]),
    "host": None,
}
_DAEMON: dict[str, Any] = {
    "pool": number("How many runs go on at once, all launchers together; 8 by default.", *_POOL),
    "grace": duration_schema("How long runs in hand may go on after a signal to stop; 25s by default."),
    "heartbeat": duration_schema(
        "How often the daemon looks after its threads and clocks; 5s by default, 30s at most."
    ),
    "overdue": duration_schema("After what time a run is reported, and the daemon as not ready; 10m by default."),
    "port": number("Where /live, /ready and /metrics are offered; nowhere by default.", PORTS[0], PORTS[-1]),
    "host": text("The IP address of the port; 127.0.0.1 by default, 0.0.0.0 for all of the machine's."),
}


@dataclass(frozen=True, slots=True)
class LauncherEntry:
    """One launcher of a file, as the reader of its kind gets it.

    Attributes:
        kind: The key that makes it what it is, as `every` or `source`.
        place: Where its name stands.
        table: All of its keys, `processor` too.
        processor: The id of its processor; empty when there is none of that id, which is noted already.
    """

    name: str
    kind: str
    place: Place
    table: Table
    processor: str


def refused(node: Node, error: LauncherError | str) -> str:
    """Return the message of a value that was refused, with the file's own text in place of a placeholder's value."""
    hidden = isinstance(node, Scalar) and isinstance(node.value, str) and node.value != node.text
    return str(error).replace(str(node.value), node.text) if isinstance(node, Scalar) and hidden else str(error)


class LauncherReader(Protocol):
    """Reads the launchers of one kind; found through the entry point group `iocflow.launchers`.

    The entry point's name is the kind's key; its object is a class without arguments, made once for a file. `read` is
    called for each launcher that has the key. It constructs nothing that does anything: it notes mistakes in
    `scope.findings` and returns the builder, which is called with the built application once every check has passed.
    """

    def schema(self, kind: str) -> dict[str, Any]:
        """Return the JSON Schemas of the keys that a launcher of that kind may have, beside `processor`."""

    def read(self, entry: LauncherEntry, scope: Scope) -> Callable[[Wired], Launcher] | None:
        """Check a launcher; return its builder, None when it is wrong."""


class LaunchersReader:
    """Reads the section `launchers:`; `app.section("launchers")` is the tuple of the built launchers."""

    def __init__(self) -> None:
        """Make a reader of each kind that is installed."""
        found = entry_points(group="iocflow.launchers")
        made = {point.value: point.load()() for point in found}
        self._readers: dict[str, LauncherReader] = {point.name: made[point.value] for point in found}

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the section: a launcher is of exactly one kind."""
        kinds = [
            {
                "type": "object",
                "properties": {"processor": text("What is run."), **reader.schema(kind)},
                "required": ["processor", kind],
                "additionalProperties": False,
            }
            for kind, reader in sorted(self._readers.items())
        ]
        return {"type": "object", "additionalProperties": {"oneOf": kinds}}

    def read(self, section: Node, scope: Scope) -> Callable[[Wired], tuple[Launcher, ...]]:
        """Check every launcher; return the builder of all."""
        if not isinstance(section, Table):
            remedy = "write `launchers: {NAME: {processor: ID, every: 60s}}`"
            scope.findings.error(section.place, "`launchers` is no mapping", remedy)
            return lambda _: ()
        builders = [
            builder for name, place, node in section if (builder := self._read(name, place, node, scope)) is not None
        ]
        return lambda wired: tuple(build(wired) for build in builders)

    def _read(self, name: str, place: Place, node: Node, scope: Scope) -> Callable[[Wired], Launcher] | None:
        check_id(name, "launcher", place, scope.findings)
        if not isinstance(node, Table):
            remedy = f"write `{name}: {{processor: ID, every: 60s}}`"
            scope.findings.error(node.place, f"launcher `{name}` is no mapping", remedy)
            return None
        processor = self._processor(name, place, node, scope)
        kinds = self._kinds(name, place, node, scope)
        if not kinds:
            return None
        others = {key: value for key, value in node.entries.items() if key not in kinds[1:]}
        entry = LauncherEntry(name, kinds[0], place, Table(node.place, others, node.keys), processor or "")
        builder = self._readers[entry.kind].read(entry, scope)
        return builder if processor else None

    def _kinds(self, name: str, place: Place, table: Table, scope: Scope) -> list[str]:
        """Return the keys that say when the launcher starts a run, of which there should be exactly one."""
        kinds = [key for key in table.entries if key in self._readers]
        known = ", ".join(sorted(self._readers))
        if not kinds:
            strangers = [key for key in table.entries if key != "processor"]
            near = did_you_mean(strangers[0], self._readers) if len(strangers) == 1 else f"give it one of: {known}"
            where = table.keys[strangers[0]] if len(strangers) == 1 else place
            scope.findings.error(where, f"nothing says when launcher `{name}` starts a run", near)
        for surplus in kinds[1:]:
            scope.findings.error(
                table.keys[surplus],
                f"launcher `{name}` has both `{kinds[0]}` and `{surplus}`",
                "one launcher has one of them; write two launchers",
                related=[(table.keys[kinds[0]], f"`{kinds[0]}` stands here")],
            )
        return kinds

    def _processor(self, name: str, place: Place, table: Table, scope: Scope) -> str | None:
        node = table.entries.get("processor")
        if node is None:
            scope.findings.error(place, f"launcher `{name}` has no processor", "add `processor:` with a processor's id")
            return None
        id = scope.coerce(node, str, f"processor of launcher {name}")
        if isinstance(id, str) and id not in scope.processors:
            what = f"`{id}` is a bean, no processor" if id in scope.beans else f"there is no processor `{id}`"
            scope.findings.error(node.place, what, did_you_mean(id, scope.processors))
            return None
        return id if isinstance(id, str) else None


class DaemonReader:
    """Reads the section `daemon:`; `app.section("daemon")` is a `DaemonSettings`."""

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the section."""
        return {"type": "object", "properties": _DAEMON, "additionalProperties": False}

    def read(self, section: Node, scope: Scope) -> Callable[[Wired], DaemonSettings]:
        """Check the section; return the builder of the settings."""
        if not isinstance(section, Table):
            scope.findings.error(section.place, "`daemon` is no mapping", "write `daemon: {pool: 8, grace: 25s}`")
            return lambda _: DaemonSettings()
        given = read_settings(section, _BOUNDS, "the daemon", scope)
        if "host" in given:
            given["host"] = self._host(given["host"], section, scope)
        if "port" in given and not scope.elsewhere:
            self._check_installed(section.entries["port"], scope)
        return lambda _: DaemonSettings(**given)

    def _host(self, written: str, section: Table, scope: Scope) -> str:
        """Return the IP address to listen at; what is wrong with it is noted."""
        node = section.entries["host"]
        if "port" not in section.entries:
            what = "`host` of the daemon is that of its port, and there is no `port`"
            scope.findings.error(node.place, what, "write `port: 9100` beside it, or remove it")
        ip = ip_of(written)
        if ip is None:
            what = f"`host` of the daemon is `{refused(node, written)}`, which is no IP address"
            scope.findings.error(node.place, what, "write 127.0.0.1, or 0.0.0.0 for all addresses of the machine")
        return ip or LOOPBACK

    def _check_installed(self, node: Node, scope: Scope) -> None:
        """Note what is not installed and the port needs."""
        try:
            extra("launch.operations")
        except MissingExtraError as error:
            what, _, _ = str(error).partition("; ")
            scope.findings.error(node.place, f"`port` of the daemon: {what}", 'pip install "iocflow[metrics]"')
