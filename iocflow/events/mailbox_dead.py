"""What a mailbox source keeps on this machine: dead letters, and those that are brought again."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from iocflow.events import folder_dead
from iocflow.events.folder_places import REASON, Places
from iocflow.events.source import DeadLetter, Reason

__all__ = ["MailAside"]

READABLE = 80
"""How much of a mail's key its file's name shows; the rest is told apart by a hash."""


class MailAside:
    """A folder with dead letters in `failed`, as `NAME.eml` with `NAME.eml.reason.json` beside it.

    A replay moves one from there into the folder itself, where the source finds it. The folder is locked: it stands
    for the mailbox, which daemons of one machine so do not read twice.
    """

    def __init__(self, path: Path) -> None:
        """Take the folder's path; nothing is touched yet."""
        self._places = Places(path)

    def prepare(self) -> None:
        """Make the folder and lock it.

        Raises:
            ImpossibleSourceError: Something that is no folder is in the way.
            LockedError: Another process has it.
        """
        if not self._places.locked:
            self._places.prepare()

    def require(self) -> None:
        """Refuse to go on without the lock.

        Raises:
            LockLostError: It is gone.
        """
        self._places.require_lock()

    def keep(self, key: str, raw: bytes, reason: Reason, now: datetime) -> None:
        """Put a mail aside, on the disk when this returns; the same mail once, however often it is put there."""
        shown = re.sub(r"[^A-Za-z0-9._-]", "_", key)[:READABLE].lstrip(".")
        self._keep(f"{shown}-{hashlib.sha256(key.encode()).hexdigest()[:12]}.eml", raw, reason, now)

    def replayed(self) -> list[str]:
        """Return the names of the dead letters that are to be brought again."""
        with os.scandir(self._places.inbox) as entries:
            return sorted(one.name for one in entries if one.name[0] != "." and one.is_file(follow_symlinks=False))

    def read(self, name: str) -> bytes:
        """Return a dead letter that is brought again."""
        return (self._places.inbox / name).read_bytes()

    def forget(self, name: str) -> None:
        """Delete a dead letter that was brought again, and is dealt with."""
        (self._places.inbox / name).unlink(missing_ok=True)

    def keep_again(self, name: str, raw: bytes, reason: Reason, now: datetime) -> None:
        """Put a dead letter that was brought again aside once more; when the process dies in between it is both."""
        self._keep(name, raw, reason, now)
        self.forget(name)

    def release(self) -> None:
        """Let other processes have the folder."""
        self._places.release()

    def letters(self) -> Iterator[DeadLetter]:
        """Yield the dead letters, the oldest first."""
        return folder_dead.dead_letters(self._places)

    def replay(self, ids: Collection[str]) -> Sequence[str]:
        """Have dead letters brought again; return those that there were."""
        return folder_dead.replay(self._places, ids)

    def _keep(self, name: str, raw: bytes, reason: Reason, now: datetime) -> None:
        record = {"file": name, "failed_at": now.isoformat(), **reason.as_dict()}
        text = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
        self._write(name + REASON, text.encode("utf-8", "backslashreplace"))
        self._write(name, raw)

    def _write(self, name: str, content: bytes) -> None:
        draft, folder = self._places.working / ".draft.tmp", self._places.failed
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, folder / name)
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
