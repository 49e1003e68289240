"""A daemon in a thread of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable

from iocflow.launch import ExitCode
from iocflow.launch.daemon import Daemon


class Serving:
    """A daemon that runs in a thread, where it heeds no signals."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.code: ExitCode | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.code = self.daemon.run()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        for _ in range(4000):
            if condition():
                return
            threading.Event().wait(0.005)
        raise AssertionError(f"it never came about: {self.daemon.snapshot()}")

    def stop(self) -> ExitCode | None:
        """Stop the daemon and return its exit code."""
        self.daemon.stop()
        self._thread.join(20)
        assert not self._thread.is_alive()
        return self.code
