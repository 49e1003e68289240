"""`iocflow serve` as systemd starts it: ready, watched and stopping over a real datagram socket."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.web import PATIENT, ask, free_port

IOCFLOW = str(Path(sys.executable).with_name("iocflow"))

MODULE = """
import time
from typing import Any

from iocflow import ProcessContext


class Ctx(ProcessContext):
    seed_data: Any


def work(context: Ctx) -> None:
    time.sleep(context.seed_data["seconds"])
"""

CONTAINER = """
iocflow: 1
package: unit
processors:
  p: {context: .Ctx, sequence: [.work]}
launchers:
  events: {processor: p, source: "folder:there/in?interval=20ms"}
"""


class Unit:
    """The daemon in a process of its own, and the socket that it tells how it is."""

    def __init__(self, folder: Path, daemon: str, watchdog: float | None = None) -> None:
        self.folder = folder
        (folder / "unit.py").write_text(MODULE, encoding="utf-8")
        (folder / "unit.yaml").write_text(f"{CONTAINER}daemon: {daemon}\n", encoding="utf-8")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(folder / "notify"))
        self.socket.settimeout(PATIENT)
        watched = {} if watchdog is None else {"WATCHDOG_USEC": f"{watchdog * 1e6:.0f}"}
        self.process = subprocess.Popen(
            [IOCFLOW, "serve", "unit.yaml"],
            cwd=folder,
            env={**os.environ, "NOTIFY_SOCKET": str(folder / "notify"), **watched},
            stderr=subprocess.PIPE,
            text=True,
        )

    def hear(self, wanted: Callable[[list[str]], bool]) -> list[list[str]]:
        """Return what is told until something wanted is."""
        found: list[list[str]] = []
        end = time.monotonic() + PATIENT
        while time.monotonic() < end:
            found.append(self.socket.recv(4096).decode().splitlines())
            if wanted(found[-1]):
                return found
        raise AssertionError(found)

    def silent(self, seconds: float, word: str) -> bool:
        """Return whether a word is not told for that long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                if word in self.socket.recv(4096).decode():
                    return False
            except TimeoutError:
                return True
            finally:
                self.socket.settimeout(PATIENT)
        return True

    def put(self, name: str, seconds: float) -> None:
        """Drop an event whose run takes that long."""
        draft = self.folder / "there" / "in" / f"{name}.part"
        draft.write_text(f'{{"seconds": {seconds}}}')
        draft.rename(draft.with_suffix(".json"))

    def end(self) -> tuple[int, str]:
        """Stop the daemon; return its exit code and its log."""
        self.process.send_signal(signal.SIGTERM)
        _, log = self.process.communicate(timeout=PATIENT)
        return self.process.returncode, log


@pytest.fixture
def unit(tmp_path: Path) -> Iterator[Callable[..., Unit]]:
    """Return a function that starts the daemon; what still runs at the end is killed."""
    started: list[Unit] = []

    def start(daemon: str = "{}", **options: float) -> Unit:
        started.append(Unit(tmp_path, daemon, **options))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()
        one.socket.close()


def test_ready_and_stopping(unit: Callable[..., Unit]) -> None:
    """READY comes when the folder is open, and STOPPING when the daemon is told to stop, before it is over."""
    one = unit()
    assert one.hear(lambda lines: "READY=1" in lines)[-1] == ["READY=1", "STATUS=ready"]
    assert (one.folder / "there" / "in" / "working").is_dir()
    one.put("a", 0.5)
    (one.folder / "there" / "in" / "working").stat()
    code, log = one.end()
    assert code == 0, log
    told = one.hear(lambda lines: "STOPPING=1" in lines)[-1]
    assert told == ["STOPPING=1", "STATUS=stopping: SIGTERM", "EXTEND_TIMEOUT_USEC=35000000"]


def test_not_ready_while_a_source_is_away(unit: Callable[..., Unit], tmp_path: Path) -> None:
    """As long as a source cannot be opened the start is not over, and the status tells why."""
    there = tmp_path / "there"
    there.symlink_to(there)
    one = unit()
    told = one.hear(lambda lines: "launcher events is retrying" in lines[0])
    assert not any("READY=1" in lines for lines in told)
    assert told[-1][0].startswith("STATUS=not ready: launcher events is retrying: OSError: ")
    there.unlink()
    one.hear(lambda lines: "READY=1" in lines)


def test_the_watchdog_is_fed(unit: Callable[..., Unit]) -> None:
    """A watched daemon shows life in half of the time, though its own heartbeat is slower."""
    one = unit("{heartbeat: 30s}", watchdog=1.0)
    one.hear(lambda lines: "READY=1" in lines)
    began = time.monotonic()
    for _ in range(6):
        one.hear(lambda lines: "WATCHDOG=1" in lines)
    assert time.monotonic() - began < 2 * PATIENT
    one.process.send_signal(signal.SIGSTOP)
    assert one.silent(0.2, "READY")
    while not one.silent(1.0, "WATCHDOG=1"):
        continue  # what was told before it stood still
    one.process.send_signal(signal.SIGCONT)
    one.hear(lambda lines: "WATCHDOG=1" in lines)


def test_the_watchdog_starves_when_the_pool_hangs(unit: Callable[..., Unit]) -> None:
    """When every thread hangs, nothing more feeds the watchdog, so that systemd will start the daemon anew."""
    port = free_port()
    one = unit(f"{{pool: 2, overdue: 1s, grace: 0s, port: {port}}}", watchdog=0.5)
    one.hear(lambda lines: "READY=1" in lines)
    one.put("a", 60)
    one.hear(lambda lines: any("overdue" in line for line in lines))
    assert ask(port, "GET", "/live").status == 200
    assert ask(port, "GET", "/ready").status == 503
    one.hear(lambda lines: "WATCHDOG=1" in lines)
    one.put("b", 60)
    one.hear(lambda lines: any("none of 2 threads came free" in line for line in lines))
    assert one.silent(1.5, "WATCHDOG=1")
    assert ask(port, "GET", "/live").status == 503
    assert one.end()[0] == 5
