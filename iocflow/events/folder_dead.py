"""Dead letters of a folder: the files in `failed`, each with its reason beside it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from iocflow.events.folder_places import REASON, Places
from iocflow.events.source import DeadLetter

__all__ = ["dead_letters", "replay"]


def dead_letters(places: Places) -> Iterator[DeadLetter]:
    """Yield the files that failed, the oldest first; what others put there has no reason."""
    found = [(letter.at or _changed(path), letter.id, letter) for path, letter in _letters(places)]
    for _, _, letter in sorted(found, key=lambda one: one[:2]):
        yield letter


def replay(places: Places, ids: Collection[str]) -> Sequence[str]:
    """Move files that failed back into the inbox, under the names that they came with; return those that there were.

    The inbox may be read by a daemon meanwhile: each move is one rename, and takes no name that is taken.
    """
    wanted, replayed = set(ids), list[str]()
    with _alone(places.failed):
        for path, letter in _letters(places):
            if letter.id in wanted:
                name = os.path.basename(str(_record(path).get("file") or path.name))
                while not _moved(path, places.inbox / places.unused(places.inbox, name, datetime.now(UTC))):
                    pass  # somebody took that name meanwhile
                _beside(path).unlink(missing_ok=True)
                replayed.append(letter.id)
    return replayed


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep out others that replay from a folder, if it is there."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        yield
        return
    try:
        with contextlib.suppress(OSError):  # some network file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _letters(places: Places) -> Iterator[tuple[Path, DeadLetter]]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for path in sorted(places.failed.iterdir()):
            if path.is_file() and not path.name.startswith(".") and not path.name.endswith(REASON):
                yield path, _letter(path)


def _letter(path: Path) -> DeadLetter:
    record = _record(path)
    try:
        body = path.read_bytes()
    except OSError:
        body = None
    return DeadLetter.of(path.name, body, {"file": str(record.get("file") or path.name)}, record)


def _record(path: Path) -> dict[str, Any]:
    """Return what the file beside it tells; it may be missing, or somebody may have edited it."""
    try:
        record = json.loads(_beside(path).read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _beside(path: Path) -> Path:
    return path.with_name(path.name + REASON)


def _changed(path: Path) -> datetime:
    with contextlib.suppress(OSError):
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return datetime.fromtimestamp(0, UTC)


def _moved(path: Path, target: Path) -> bool:
    """Move a file to a name that nobody has; return whether that could be."""
    try:
        os.link(path, target)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if os.path.lexists(target):
            return False
        os.rename(path, target)
        return True
    path.unlink()
    return True
