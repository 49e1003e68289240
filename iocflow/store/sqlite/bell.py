"""How a worker hears that there may be something to claim in a SQLite file, which tells nobody of what is written."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

SHORTEST, LONGEST = 0.001, 0.02
"""Seconds between two looks at the file."""

PATIENCE = 250
"""How many times as long as a pause the quiet before it was."""


class Bell:
    """Rung by this process when it wrote something; what others wrote shows in the file's version.

    A claim that left nothing notes both: whoever listens then returns as soon as one of them is another. So nothing
    is missed between the claim and the listening.
    """

    def __init__(self) -> None:
        """Start as if there were news."""
        self._changed = threading.Condition(threading.Lock())
        self._rung = 1
        self._noted = 0
        self._version: int | None = None

    def ring(self) -> None:
        """Say that there may be something to claim."""
        with self._changed:
            self._rung += 1
            self._changed.notify_all()

    def note(self, version: int) -> None:
        """Note that nothing is left to be claimed at this version of the file."""
        with self._changed:
            self._noted, self._version = self._rung, version

    def listen(self, timeout: float, version: Callable[[], int | None]) -> None:
        """Return when there is news, or after `timeout` seconds; `version` is None while it cannot be had."""
        began = time.monotonic()
        while True:
            now = version()
            with self._changed:
                if self._rung != self._noted or (now is not None and now != self._version):
                    return
                quiet = time.monotonic() - began
                if quiet >= timeout:
                    return
                pause = min(max(quiet / PATIENCE, SHORTEST), LONGEST, timeout - quiet)
                self._changed.wait(pause)
