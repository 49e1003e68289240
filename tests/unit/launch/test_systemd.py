"""What systemd is told, through a real datagram socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iocflow.launch.systemd import ServiceManager

WATCHED = {"WATCHDOG_USEC": "4000000", "WATCHDOG_PID": str(os.getpid())}


class Clock:
    """A clock that goes on when a test says so."""

    seconds = 100.0

    def now(self) -> datetime:
        return datetime(2026, 3, 1, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds


class Systemd:
    """The other end."""

    def __init__(self, address: str) -> None:
        self.environment = {"NOTIFY_SOCKET": address.replace("\0", "@")}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.setblocking(False)

    def heard(self) -> list[list[str]]:
        """Return the datagrams that came, each as its lines."""
        found = []
        try:
            while True:
                found.append(self._socket.recv(4096).decode().splitlines())
        except BlockingIOError:
            return found

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systemd]:
    """Return a socket that listens, in the file system or outside of it."""
    one = Systemd(str(tmp_path / "notify") if request.param == "path" else f"\0iocflow-test-{os.getpid()}")
    yield one
    one.close()


def test_a_life(systemd: Systemd) -> None:
    """READY comes once, with the first time that it is; the status each time that it is another one."""
    manager = ServiceManager(systemd.environment, Clock())
    manager.tell(ready=False, alive=True, status="not ready: no route\nto host")
    manager.tell(ready=True, alive=True, status="ready")
    manager.tell(ready=True, alive=True, status="ready")
    manager.tell(ready=False, alive=True, status="not ready")
    manager.tell(ready=True, alive=True, status="ready")
    manager.stopping(25, "stopping: SIGTERM")
    assert systemd.heard() == [
        ["STATUS=not ready: no route to host"],
        ["READY=1", "STATUS=ready"],
        ["STATUS=not ready"],
        ["STATUS=ready"],
        ["STOPPING=1", "STATUS=stopping: SIGTERM", "EXTEND_TIMEOUT_USEC=35000000"],
    ]


def test_the_watchdog(systemd: Systemd) -> None:
    """It is fed at most half of its time apart, and not at all while something makes no progress."""
    clock = Clock()
    manager = ServiceManager({**systemd.environment, **WATCHED}, clock)
    assert manager.interval == 2.0
    for alive in (True, True, False, True):
        manager.tell(ready=False, alive=alive, status="x")
        clock.seconds += manager.interval
    manager.tell(ready=False, alive=True, status="x")
    manager.tell(ready=False, alive=True, status="x")
    assert systemd.heard() == [["STATUS=x", "WATCHDOG=1"], *[["WATCHDOG=1"]] * 3]
    manager.stopping(25, "y")
    assert systemd.heard()[0][-2:] == ["WATCHDOG_USEC=35000000", "WATCHDOG=1"]


@pytest.mark.parametrize(
    "changed",
    [
        {"WATCHDOG_PID": "1"},
        {"WATCHDOG_USEC": ""},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "-1"},
        {"WATCHDOG_USEC": "1s"},
    ],
)
def test_no_watchdog(systemd: Systemd, changed: dict[str, str]) -> None:
    """A watchdog of another process, as that of a parent, or none that makes sense, is not fed."""
    manager = ServiceManager({**systemd.environment, **WATCHED, **changed}, Clock())
    assert manager.interval is None
    manager.tell(ready=True, alive=True, status="ready")
    manager.stopping(1, "stopping")
    assert "WATCHDOG" not in str(systemd.heard())


def test_without_systemd(caplog: pytest.LogCaptureFixture) -> None:
    """Where nobody named a socket nothing is told, and nothing is in the log."""
    manager = ServiceManager({"WATCHDOG_USEC": "1000000"}, Clock())
    assert manager.interval is None
    manager.tell(ready=True, alive=True, status="ready")
    manager.stopping(1, "stopping")
    assert caplog.text == ""


def test_a_socket_that_is_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A socket that does not listen is logged, and is nobody's end."""
    manager = ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "gone")}, Clock())
    manager.tell(ready=True, alive=True, status="ready")
    assert "systemd could not be told READY=1 STATUS=ready" in caplog.text
