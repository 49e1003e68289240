"""A folder as a source: one JSON file is one event."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from iocflow.events import folder_dead
from iocflow.events.address import Address
from iocflow.events.envelope import UnfinishedEventError, UnreadableEventError, read_event
from iocflow.events.folder_places import FileRefusedError, Places, read_file
from iocflow.events.source import DeadLetter, Delivery, Event, Reason
from iocflow.launch.clock import Clock, SystemClock
from iocflow.launch.errors import LauncherError, LockedError
from iocflow.launch.texts import printable
from iocflow.wiring.duration import duration_text

__all__ = ["FolderOptions", "FolderSource"]

logger = logging.getLogger("iocflow.events")

UNFINISHED = (".tmp", ".part")
"""Endings under which programs write what they will rename when it is complete."""

Signature = tuple[int, int, int]
"""Which file it is, and how it was when it was looked at: inode, size, time of the last change in ns."""


@dataclass(frozen=True, slots=True)
class FolderOptions:
    """How a folder is watched.

    Attributes:
        interval: How often it is looked at. A file is taken when it is unchanged for that long.
        patience: For how long a file that is no JSON (yet) has to be unchanged before it is refused.
        limit: The largest file, in bytes, that is read.
    """

    interval: timedelta = timedelta(milliseconds=200)
    patience: timedelta = timedelta(seconds=2)
    limit: int = 10_000_000


@dataclass(slots=True)
class _Sighting:
    """A file in the inbox: how it looks and since when, why it cannot be read, and whether it cannot be moved."""

    name: str
    signature: Signature
    since: float
    unreadable: str = ""
    stuck: bool = False


class FolderSource:
    """`folder:var/inbox`: every file in the folder is an event, taken in the order of the files' times.

    A file is claimed by renaming it into `working/`, which no two processes can do with one file; it goes to `done/`,
    or to `failed/` with a `NAME.reason.json` beside it. What is in `working/` when the source is opened was in hand
    when an earlier process died, and is delivered again. Left alone are folders, and files whose name begins with a dot
    or ends in `.tmp` or `.part`: write under such a name and rename, and no reader ever sees half a file. A file that
    grows is waited for. Links and other things that are no files are refused. `done/` and `failed/` grow until somebody
    tidies them up; a file that is moved from there to the inbox runs again.
    """

    def __init__(self, path: str | Path, options: FolderOptions | None = None, clock: Clock | None = None) -> None:
        """Take the folder's path, relative to the working directory; it is made when the source is opened."""
        self.path = Path(path)
        self.options = options or FolderOptions()
        self._clock = clock or SystemClock()
        self._places = Places(self.path)
        self._sightings: dict[str, _Sighting] = {}
        self._ready: deque[_Sighting] = deque()
        self._left_over: deque[str] = deque()
        self._held: dict[str, tuple[Delivery, Signature | None]] = {}
        self._looked = float("-inf")
        self._woken = threading.Event()

    @classmethod
    def at(cls, address: Address) -> FolderSource:
        """Return the source at an address, as `folder:var/inbox?interval=200ms&patience=2s&limit=10MB`."""
        address.only(("interval", "patience", "limit"))
        least, most = timedelta(milliseconds=10), timedelta(hours=1)
        default = FolderOptions()
        options = FolderOptions(
            address.duration("interval", default.interval, least, most),
            address.duration("patience", default.patience, timedelta(0), most),
            address.size("limit", default.limit),
        )
        if address.path.startswith("//") and not address.path.startswith("///"):
            raise LauncherError(f"`{address.text}` names a host; write folder:var/inbox, or folder:/var/inbox")
        return cls(address.path.removeprefix("//"), options)

    @property
    def name(self) -> str:
        """The address."""
        return f"folder:{self.path}"

    @property
    def identity(self) -> str:
        """The folder's real path, without links; it need not exist."""
        return f"folder:{os.path.realpath(self.path)}"

    def reserve(self) -> None:
        """Make the folders and lock them, as far as that can be done now; `open` does the rest, and tells why not."""
        with contextlib.suppress(OSError):
            self._places.prepare()

    def open(self) -> None:
        """Make the folders, lock them, and find what an earlier process had in hand.

        When the lock was lost, what was in hand stays so only if it still lies there: another process may have had it.
        """
        kept = self._places.locked
        self._places.prepare()
        if not kept:
            self._held = {name: held for name, held in self._held.items() if self._in_place(name) == held[1]}
        self._left_over = deque(name for name in self._places.left_over() if name not in self._held)
        for name in self._left_over:
            logger.warning("event file %s was in hand when a process ended; it is brought again", printable(name))

    def receive(self, limit: int, timeout: float) -> Sequence[Delivery]:
        """Return up to `limit` events; look at the folder when it is time to."""
        self._places.require_lock()
        found: list[Delivery] = []
        while self._left_over and len(found) < limit:
            found.append(self._again(self._left_over.popleft()))
        if len(found) < limit:
            found += self._new(limit - len(found))
        if not found:
            due = self._looked + self.options.interval.total_seconds() - self._clock.monotonic()
            self._woken.wait(max(min(due, timeout), 0.001))
            self._woken.clear()
        return found

    def acknowledge(self, delivery: Delivery) -> None:
        """Move the file to `done/`."""
        name = str(delivery.key)
        if self._has(delivery):
            self._places.finish(name, self._clock.now())
            del self._held[name]

    def give_back(self, delivery: Delivery) -> None:
        """Move the file to the inbox; if another one has its name there, it is brought again from where it is."""
        name = str(delivery.key)
        if self._has(delivery):
            if not self._places.give_back(name):
                self._left_over.append(name)
            del self._held[name]

    def dead_letter(self, delivery: Delivery, reason: Reason) -> None:
        """Move the file to `failed/`, with the reason beside it."""
        name = str(delivery.key)
        if self._has(delivery):
            self._places.fail(name, reason, self._clock.now())
            del self._held[name]

    def wake(self) -> None:
        """Let a `receive` that waits return now."""
        self._woken.set()

    def close(self) -> None:
        """Let other processes have the folder."""
        self._places.release()

    def dead_letters(self) -> Iterator[DeadLetter]:
        """Yield the files in `failed/`, the oldest first."""
        return folder_dead.dead_letters(self._places)

    def replay(self, ids: Collection[str]) -> Sequence[str]:
        """Move files from `failed/` back into the folder, and their reasons away."""
        return folder_dead.replay(self._places, ids)

    @property
    def _remedy(self) -> str:
        """What to do about a file that was taken before it was complete."""
        patience = duration_text(self.options.patience)
        return (
            f"if it was still being written, write it under a name that ends in {' or '.join(UNFINISHED)} and rename it"
            f" when it is complete, or raise `patience` (now {patience})"
        )

    def _has(self, delivery: Delivery) -> bool:
        """Return whether the file of a delivery is still this source's to move; tell it when it is not."""
        if not self._places.locked:
            try:
                self.open()
            except LockedError:
                self._held.clear()
        held = self._held.get(str(delivery.key))
        if held is not None and held[0] is delivery:
            return True
        logger.warning("event file %s is gone with its folder, and is left as it is", delivery.name)
        return False

    def _in_place(self, name: str) -> Signature | None:
        """Return how the file in hand looks now, None when it is gone."""
        return _signature(self._places.working / name)

    def _new(self, limit: int) -> list[Delivery]:
        now = self._clock.monotonic()
        if not self._ready and now - self._looked >= self.options.interval.total_seconds():
            self._look(now)
        found: list[Delivery] = []
        while self._ready and len(found) < limit:
            delivery = self._take(self._ready.popleft(), now)
            if delivery is not None:
                found.append(delivery)
        return found

    def _look(self, now: float) -> None:
        """Note every file of the inbox; those that look as they did a while ago are ready to be read."""
        sightings: dict[str, _Sighting] = {}
        with os.scandir(self.path) as entries:
            for entry in entries:
                if entry.name.startswith(".") or entry.name.endswith(UNFINISHED) or entry.is_dir(follow_symlinks=False):
                    continue
                signature = _signature(Path(entry.path))
                if signature is None:
                    continue
                before = self._sightings.get(entry.name)
                if before is None or before.signature != signature:
                    before = _Sighting(entry.name, signature, now)
                sightings[entry.name] = before
        self._sightings, self._looked = sightings, now
        settled = (one for one in sightings.values() if now - one.since >= self.options.interval.total_seconds())
        self._ready = deque(sorted(settled, key=lambda one: (one.signature[2], one.name)))

    def _take(self, sighting: _Sighting, now: float) -> Delivery | None:
        """Read and claim a file; None when it is better looked at again later."""
        path = self.path / sighting.name
        if _signature(path) != sighting.signature:
            return None
        event: Event | None = None
        if not sighting.unreadable:
            event, sighting.unreadable, final = self._read(path)
            if event is None and final:
                sighting.since = float("-inf")
        if event is None and now - sighting.since < self.options.patience.total_seconds():
            return None
        claimed = self._claim(sighting)
        if claimed is None:
            return None
        self._sightings.pop(sighting.name, None)
        if _signature(claimed) != sighting.signature:
            # Somebody wrote between reading and claiming.
            self.give_back(self._delivery(sighting.name, None, ""))
            return None
        return self._delivery(sighting.name, event, sighting.unreadable)

    def _claim(self, sighting: _Sighting) -> Path | None:
        try:
            return self._places.claim(sighting.name)
        except PermissionError as error:
            if not self._places.writable():
                raise
            if not sighting.stuck:
                sighting.stuck = True
                logger.warning("event file %s is left alone, it cannot be moved: %s", printable(sighting.name), error)
            return None

    def _again(self, name: str) -> Delivery:
        event, refusal, _ = self._read(self._places.working / name)
        return self._delivery(name, event, refusal)

    def _delivery(self, name: str, event: Event | None, refusal: str) -> Delivery:
        delivery = Delivery(printable(name), event, "" if event else refusal, key=name)
        self._held[name] = delivery, self._in_place(name)
        return delivery

    def _read(self, path: Path) -> tuple[Event | None, str, bool]:
        """Return the event in a file; or why there is none, and whether waiting would not change that."""
        try:
            raw = read_file(path, self.options.limit)
            # The same file gets the same id when it is brought again; another one under an old name gets another one.
            id = f"{printable(path.name)}#{hashlib.sha256(raw).hexdigest()[:16]}"
            return read_event(raw, source=self.name, id=id), "", True
        except FileRefusedError as error:
            return None, f"refused: {error}", True
        except UnfinishedEventError as error:
            return None, f"refused: {error}; {self._remedy}", False
        except UnreadableEventError as error:
            return None, f"refused: {error}", False
        except OSError as error:
            return None, f"cannot be read: {error.strerror}", False


def _signature(path: Path) -> Signature | None:
    """Return a file's signature, None when it is gone."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
