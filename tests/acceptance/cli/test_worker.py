"""`iocflow worker`, and the worker in `iocflow serve`: how they stop, and what they leave."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli.orders import FILE

SECONDS = 30.0
Submit = Callable[..., int]
Told = Callable[..., Any]


class Working:
    """A worker or daemon in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.log = ""

    def until(self, text: str) -> None:
        """Read the log until a line holds `text`."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log += line
            if text in line:
                return
        raise AssertionError(self.log)

    def end(self) -> int:
        """Return the exit status."""
        self.log += self.process.communicate(timeout=SECONDS)[1]
        return self.process.returncode


@pytest.fixture
def working(start: Any, orders: Path) -> Callable[..., Working]:
    """Return a function that starts a command that goes on."""
    return lambda *arguments: Working(start(*arguments, stderr=subprocess.PIPE, text=True))


def test_a_worker_stops_in_good_order(working: Any, submit: Submit, told: Told) -> None:
    """A first SIGTERM lets the activity under way end and be recorded; the rest of the run is another worker's."""
    id = submit("PO-1", takes=1.0)
    worker = working("worker", FILE, "--threads", "1")
    worker.until("checking PO-1")
    worker.process.send_signal(signal.SIGTERM)
    assert worker.end() == 0, worker.log
    assert "stopping: SIGTERM" in worker.log
    assert told("status", FILE, str(id))["activity"] == "check"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_a_worker_at_once(working: Any, submit: Submit, told: Told, number: int) -> None:
    """What it had in hand is still its own until its lease has run out."""
    id = submit("PO-1", takes=60.0)
    worker = working("worker", FILE)
    worker.until("checking PO-1")
    worker.process.send_signal(number)
    worker.until("stopping")
    time.sleep(0.2)  # an echo of the first one would be left alone
    began = time.monotonic()
    worker.process.send_signal(number)
    assert worker.end() == 5
    assert time.monotonic() - began < 10
    assert told("status", FILE, str(id))["state"] == "running"


def test_another_worker_takes_over(working: Any, submit: Submit, iocflow: Any, told: Told) -> None:
    """What a killed worker had in hand is done by the next one, when the lease has run out."""
    id = submit("PO-1", takes=0.5)
    worker = working("worker", FILE)
    worker.until("checking PO-1")
    worker.process.kill()
    worker.process.communicate()
    other = working("worker", FILE)
    assert iocflow("status", FILE, str(id), "--wait", "--timeout", "60", timeout=90).returncode == 0
    other.process.send_signal(signal.SIGTERM)
    assert other.end() == 0
    assert "lost" in [one["kind"] for one in told("history", FILE, str(id))]


@pytest.mark.parametrize("behind", [0, 2])
def test_until_idle_carries_on_what_a_killed_worker_left(
    working: Any, submit: Submit, iocflow: Any, told: Told, behind: int
) -> None:
    """`--until-idle` right after a `kill -9` waits for the lease of the dead, and does its runs and those behind."""
    ids = [submit(f"PO-{n}", takes=0.5) for n in range(1 + behind)]
    worker = working("worker", FILE)
    worker.until("checking PO-0")
    worker.process.kill()
    worker.process.communicate()
    assert told("status", FILE, str(ids[0]))["state"] == "running"
    done = iocflow("worker", FILE, "--until-idle", timeout=90)
    assert (done.returncode, done.stdout) == (0, "no run is ready\n"), done.stderr
    assert "other workers have runs in hand" in done.stderr
    assert {told("status", FILE, str(id))["state"] for id in ids} == {"completed"}
    assert [one["kind"] for one in told("history", FILE, str(ids[0]))].count("lost") == 1


def test_until_idle_leaves_living_workers_their_runs(working: Any, submit: Submit, iocflow: Any, told: Told) -> None:
    """A worker that goes on for longer than a lease lives: its run is not waited for until it ends."""
    id = submit("PO-1", takes=60.0)
    worker = working("worker", FILE)
    worker.until("checking PO-1")
    done = iocflow("worker", FILE, "--until-idle", timeout=50)
    assert (done.returncode, done.stdout) == (0, "no run is ready; 1 running\n"), done.stderr
    assert "lost" not in [one["kind"] for one in told("history", FILE, str(id))]


def test_serve_has_a_worker_beside_the_launchers(working: Any, orders: Path, iocflow: Any, told: Told) -> None:
    """An event is submitted and settled at once; the worker of the same daemon does its run."""
    daemon = working("serve", FILE)
    daemon.until("worker: 2 threads work on runs of asking, careful, order")
    daemon.until("launcher dropped")
    draft = orders / ".one"
    draft.write_text('{"po": "PO-1", "customer": "ACME"}', encoding="utf-8")
    draft.rename(orders / "inbox" / "one.json")
    daemon.until("was submitted")
    assert iocflow("status", FILE, "1", "--wait", "--timeout", "30").returncode == 0
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.end() == 0
    assert (orders / "inbox" / "done" / "one.json").exists()
    assert told("status", FILE, "1")["state"] == "completed"
