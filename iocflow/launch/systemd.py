"""What systemd is told of a daemon: datagrams to the socket that it names, as sd_notify(3) has them.

A library is not worth it: the ones on the package index that are not bindings of libsystemd are some twenty lines too.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping

from iocflow.launch.clock import Clock

__all__ = ["ServiceManager"]

logger = logging.getLogger("iocflow.launch")

SEND_SECONDS = 0.5
"""How long one datagram may take: a manager that does not read must not hold up the daemon."""
STOP_SECONDS = 10.0
"""How much longer than its grace time a daemon may take to end."""


class ServiceManager:
    """Tells systemd that the daemon is ready, alive, or stopping; does nothing where systemd did not start it.

    Used in the daemon's main thread only.
    """

    def __init__(self, environment: Mapping[str, str], clock: Clock) -> None:
        """Take the environment, which names the socket."""
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._clock = clock
        self._ready = False
        self._status = ""
        self._pinged = float("-inf")
        self.interval = _interval(environment) if self._address else None
        """After how many seconds at most systemd wants to hear that the daemon is alive; None when it does not."""

    def tell(self, *, ready: bool, alive: bool, status: str) -> None:
        """Tell how it is; called at least every `interval`.

        Args:
            ready: Whether sources are connected; what counts is the first time.
            alive: Whether timer, consumers and pool made progress; when they do not, systemd gets nothing more and
                starts the daemon anew.
            status: The same in words.
        """
        lines = []
        if ready and not self._ready:
            self._ready = True
            lines.append("READY=1")
        if status != self._status:
            self._status = status
            lines.append(f"STATUS={_line(status)}")
        now = self._clock.monotonic()
        if alive and self.interval is not None and now - self._pinged >= self.interval / 2:
            self._pinged = now
            lines.append("WATCHDOG=1")
        self._send(lines)

    def stopping(self, grace: float, status: str) -> None:
        """Tell that it stops, and how long that may take: it says nothing more until then."""
        patience = f"{(grace + STOP_SECONDS) * 1e6:.0f}"
        lines = ["STOPPING=1", f"STATUS={_line(status)}", f"EXTEND_TIMEOUT_USEC={patience}"]
        if self.interval is not None:
            lines += [f"WATCHDOG_USEC={patience}", "WATCHDOG=1"]
        self._send(lines)

    def _send(self, lines: list[str]) -> None:
        if not self._address or not lines:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sending:
                sending.settimeout(SEND_SECONDS)
                sending.sendto("\n".join(lines).encode(), address)
        except OSError as error:
            logger.warning("systemd could not be told %s at %s: %s", " ".join(lines), self._address, error)


def _interval(environment: Mapping[str, str]) -> float | None:
    """Return half of the time after which systemd ends a silent process; None when it watches none, or another one."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    text = environment.get("WATCHDOG_USEC", "")
    return int(text) / 2e6 if text.isdecimal() and int(text) else None


def _line(text: str) -> str:
    return " ".join(text.split())
