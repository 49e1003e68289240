"""The places of a folder source, and the moves between them: each a rename, so that a crash leaves every file whole."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import stat
from datetime import datetime
from pathlib import Path

from iocflow.errors import IocflowError
from iocflow.events.source import Reason
from iocflow.launch.errors import ImpossibleSourceError, LockedError
from iocflow.launch.texts import printable

__all__ = ["REASON", "FileRefusedError", "LockLostError", "Places", "read_file"]

logger = logging.getLogger("iocflow.events")

NAME_BYTES = 255
"""The longest file name of Linux's file systems (NAME_MAX)."""
EXTENSION_BYTES = 20
REASON = ".reason.json"
"""How the name of the file ends that lies beside one that failed."""


class FileRefusedError(IocflowError):
    """A file is nothing that an event could be read from, and never will be; the message says why."""


class LockLostError(IocflowError):
    """The file that keeps other processes out is gone, or is another one: somebody removed or replaced the folder."""


def read_file(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes, without following a link or waiting for a pipe.

    Raises:
        FileRefusedError: It is too large, or no regular file.
        OSError: It cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise FileRefusedError("it is no regular file") from None
        raise
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise FileRefusedError("it is no regular file")
        if found.st_size > limit:
            raise FileRefusedError(f"it has {found.st_size:,} bytes, more than the {limit:,} that are allowed")
        return file.read(limit)


class Places:
    """An inbox with three folders in it: `working` for what is in hand, `done`, and `failed`.

    They lie inside the inbox, and so on its file system: a rename between file systems would be a copy, which a crash
    can leave half done.
    """

    def __init__(self, inbox: Path) -> None:
        """Take the path of the inbox; nothing is touched yet."""
        self.inbox = inbox
        self.working = inbox / "working"
        self.done = inbox / "done"
        self.failed = inbox / "failed"
        self._lock_file = self.working / ".lock"
        self._lock: int | None = None
        self._failing: dict[str, str] = {}

    def prepare(self) -> None:
        """Make the folders that are missing, and keep other processes out, anew if the lock was lost.

        Raises:
            ImpossibleSourceError: Something that is no folder is in the way.
            LockedError: Another process, or another source of this one, reads the inbox.
            OSError: They cannot be made now.
        """
        try:
            for folder in (self.inbox, self.working, self.done, self.failed):
                folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise ImpossibleSourceError(f"{error.filename} is in the way: it is no folder") from error
        if not self.locked:
            self.release()
            self._lock = self._locked()

    @property
    def locked(self) -> bool:
        """Whether other processes are kept out: the file that was locked is the one that they would find."""
        try:
            return self._lock is not None and os.path.samestat(os.fstat(self._lock), os.stat(self._lock_file))
        except OSError:
            return False

    def require_lock(self) -> None:
        """Refuse to go on when other processes are not kept out any more.

        Raises:
            LockLostError: The folder has to be prepared again.
        """
        if not self.locked:
            why = "another process may have the folder now; it is locked anew before anything is read"
            raise LockLostError(f"{self._lock_file} is gone or was replaced: {why}")

    def release(self) -> None:
        """Let other processes in."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def claim(self, name: str) -> Path | None:
        """Move a file from the inbox to `working`; None when that cannot be now: it is gone, or its name is taken."""
        target = self.working / name
        if os.path.lexists(target):
            return None
        try:
            os.rename(self.inbox / name, target)
        except FileNotFoundError:
            return None
        return target

    def give_back(self, name: str) -> bool:
        """Move a file from `working` to the inbox; return whether there is none of that name now."""
        if os.path.lexists(self.inbox / name):
            return False
        self._move(name, self.inbox / name)
        return True

    def finish(self, name: str, now: datetime) -> None:
        """Move a file from `working` to `done`, under another name when that is taken."""
        self._move(name, self.done / self.unused(self.done, name, now))

    def fail(self, name: str, reason: Reason, now: datetime) -> None:
        """Move a file from `working` to `failed`, and put the reason beside it, which is written first."""
        # Tried again after an error, it goes under the name under which its reason may lie there already.
        target = self._failing.setdefault(name, self.unused(self.failed, name, now, beside=REASON))
        record = {"file": name, "failed_at": now.isoformat(), **reason.as_dict()}
        text = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
        beside = self.failed / f"{target}{REASON}"
        draft = self.working / ".reason.tmp"
        draft.write_bytes(text.encode("utf-8", "backslashreplace"))
        os.replace(draft, beside)
        self._move(name, self.failed / target)
        del self._failing[name]

    def writable(self) -> bool:
        """Whether files can be moved from the inbox to `working` at all."""
        folders = (self.inbox, self.working)
        return all(os.access(folder, os.W_OK | os.X_OK, effective_ids=True) for folder in folders)

    def left_over(self) -> list[str]:
        """Return what `working` holds, the oldest first: what an earlier process had in hand when it was killed."""
        with os.scandir(self.working) as entries:
            files = [(one.stat(follow_symlinks=False).st_mtime_ns, one.name) for one in entries if one.name[0] != "."]
        return [name for _, name in sorted(files)]

    def _locked(self) -> int:
        descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise LockedError(f"another process reads {self.inbox}, or another launcher of this one") from None
        except OSError as error:
            # Some network file systems have no locks; one daemon alone does not need any.
            logger.warning("%s cannot be locked (%s): see that only one daemon reads it", self.inbox, error)
        return descriptor

    def _move(self, name: str, target: Path) -> None:
        try:
            os.rename(self.working / name, target)
        except FileNotFoundError:
            if not self.working.is_dir() or not target.parent.is_dir():
                raise
            logger.warning("event file %s is gone; somebody else moved it", printable(name))

    def unused(self, folder: Path, name: str, now: datetime, *, beside: str = "") -> str:
        """Return `name`, or one with the time in it: free in `folder`, as is the name that has `beside` added to it."""
        most = NAME_BYTES - len(beside)
        candidate, number = name, 0
        stem, extension = os.path.splitext(name)
        if len(os.fsencode(extension)) > EXTENSION_BYTES:
            stem, extension = name, ""
        while len(os.fsencode(candidate)) > most or any(
            os.path.lexists(folder / one) for one in (candidate, candidate + beside)
        ):
            number += 1
            suffix = f".{now:%Y%m%dT%H%M%S.%f}{f'-{number}' if number > 1 else ''}{extension}"
            candidate = os.fsdecode(os.fsencode(stem)[: most - len(os.fsencode(suffix))]) + suffix
        return candidate
