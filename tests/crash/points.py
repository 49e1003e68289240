"""The places where a process may be killed: counted, named, and deadly when the count is the chosen one."""

from __future__ import annotations

import os
import signal


class Points:
    """Counts the places that the process comes by.

    Attributes:
        names: What they were, in order.
        deadly: The number of the place, from 1, where this process is killed; None to survive.
    """

    def __init__(self) -> None:
        """Survive, for now."""
        self.names: list[str] = []
        self.deadly: int | None = None

    def begin(self, deadly: int | None) -> None:
        """Count from here on."""
        self.names.clear()
        self.deadly = deadly

    def reach(self, name: str) -> None:
        """Come by a place; there is no return from the deadly one."""
        self.names.append(name)
        if len(self.names) == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()
