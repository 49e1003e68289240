"""Events into a folder: a file each, which is there as a whole or not at all."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from iocflow.durable.outgoing import PublisherAddressError, PublishError

__all__ = ["FolderPublisher"]


class FolderPublisher:
    """`folder:var/outbox`: an event is the file `NAME.json`, its name made of the event's id.

    An event that is sent again writes the same file again. A `folder:` source on the same folder reads them.
    """

    def __init__(self, folder: Path) -> None:
        """Take the folder, which is made with the first event."""
        self._folder = folder
        self.name = f"folder:{folder}"

    @classmethod
    def at(cls, text: str) -> FolderPublisher:
        """Return the publisher at an address.

        Raises:
            PublisherAddressError: The address is wrong.
        """
        path = text.partition(":")[2]
        if not path or "?" in path:
            raise PublisherAddressError("a publisher folder: has a path, and no options; write folder:var/outbox")
        return cls(Path(path))

    def publish(self, id: str, document: bytes) -> None:
        """Write the file, and see that it is on the disk.

        Raises:
            PublishError: It cannot be written.
        """
        name = hashlib.sha256(id.encode()).hexdigest()[:32]
        unfinished, file = self._folder / f".{name}", self._folder / f"{name}.json"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with unfinished.open("wb") as written:
                written.write(document)
                written.flush()
                os.fsync(written.fileno())
            unfinished.replace(file)
            _settle(self._folder)
        except OSError as error:
            raise PublishError(f"{self.name} takes no event: {error.strerror or error}") from error

    def close(self) -> None:
        """Do nothing: nothing is open."""


def _settle(folder: Path) -> None:
    """See that the folder's own entries are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
