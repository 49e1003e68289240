"""Timers over a store from the outside: restarted, killed, served twice, paused, resumed and triggered."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

IOCFLOW = str(Path(sys.executable).with_name("iocflow"))
MODULE = """
import os
import time

from iocflow import ProcessContext


def note(context: ProcessContext) -> None:
    with open("keys.txt", "a") as file:
        file.write(f"{os.getpid()} {context.step.idempotency_key}\\n")


def hang(context: ProcessContext) -> None:
    note(context)
    time.sleep(0 if os.path.exists("quick") else 60)
"""
FILE = """
iocflow: 1
allow: [timers]
store: {store}
launchers:
  often: {{processor: noting, every: 700ms}}
  daily: {{processor: noting, cron: "30 6 * * *"}}
  hanging: {{processor: hanging, cron: "0 0 1 1 *"}}
processors:
  noting: {{context: iocflow.ProcessContext, sequence: [timers.note]}}
  hanging: {{context: iocflow.ProcessContext, sequence: [timers.hang]}}
"""


class Timers:
    """A folder with a file of timers, its commands and its daemons."""

    def __init__(self, folder: Path, store: str) -> None:
        self.folder = folder
        (folder / "timers.py").write_text(MODULE)
        (folder / "timers.yaml").write_text(FILE.format(store=store))
        self._daemons: list[subprocess.Popen[bytes]] = []

    def run(self, command: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        given = [IOCFLOW, command, "timers.yaml", *words]
        return subprocess.run(given, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)

    def standing(self, launcher: str = "often") -> dict[str, Any]:
        """Return how a launcher stands."""
        told = json.loads(self.run("schedule", "--json", "-n", "1").stdout)
        found: dict[str, Any] = told[launcher]["standing"]
        return found

    def serve(self) -> subprocess.Popen[bytes]:
        """Start a daemon; return when it is ready."""
        log = self.folder / f"log-{len(self._daemons)}.txt"
        with log.open("w") as stream:
            command = [IOCFLOW, "serve", "timers.yaml"]
            daemon = subprocess.Popen(command, cwd=self.folder, stderr=stream, stdout=subprocess.DEVNULL)
        self._daemons.append(daemon)
        self.until(lambda: ": ready" in log.read_text(), "the daemon is ready")
        return daemon

    def fired(self, launcher: str = "often") -> list[tuple[str, str]]:
        """Return the process and the key of each run of a launcher."""
        try:
            lines = (self.folder / "keys.txt").read_text().splitlines()
        except FileNotFoundError:
            return []
        found = [line.split(" ", 1) for line in lines]
        return [(process, key.partition("/")[0]) for process, key in found if re.match(f"{launcher}[@#]", key)]

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds."""
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, what
            time.sleep(0.05)

    def end(self, daemon: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> int:
        """Send a signal; return the exit status."""
        daemon.send_signal(number)
        return daemon.wait(30)

    def close(self) -> None:
        """Kill what still runs."""
        for daemon in self._daemons:
            daemon.kill()
            daemon.wait()


@pytest.fixture
def timers(tmp_path: Path) -> Iterator[Timers]:
    """Return timers over a SQLite file."""
    made = Timers(tmp_path, "sqlite:///timers.db")
    (tmp_path / "quick").touch()
    yield made
    made.close()


@pytest.fixture
def shared(tmp_path: Path, postgres_url: str) -> Iterator[Timers]:
    """Return timers over a PostgreSQL schema."""
    made = Timers(tmp_path, postgres_url)
    (tmp_path / "quick").touch()
    yield made
    made.close()


def seconds(key: str) -> float:
    """Return the moment in a key."""
    return datetime.fromisoformat(key.partition("@")[2]).timestamp()


def test_a_second_daemon_over_a_sqlite_store_exits_with_4(timers: Timers) -> None:
    """It starts nothing, says what to do, and the first one goes on; when that ended, another may serve."""
    first = timers.serve()
    second = timers.run("serve")
    assert second.returncode == 4
    assert "another daemon serves launchers over" in second.stderr
    assert "Traceback" not in second.stderr
    assert "grace time" not in second.stderr
    n = len(timers.fired())
    timers.until(lambda: len(timers.fired()) > n, "the first one goes on")
    assert {process for process, _ in timers.fired()} == {str(first.pid)}
    assert timers.end(first) == 0
    timers.serve()


def test_a_killed_daemon_is_gone_on_from(timers: Timers) -> None:
    """The interval's moments stay those of the first start, one run each, over kill -9 and over a stop."""
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
        daemon = timers.serve()
        n = len(timers.fired())
        timers.until(lambda n=n: len(timers.fired()) >= n + 3, "it fires")
        timers.end(daemon, number)
    keys = [key for _, key in timers.fired()]
    assert len(set(keys)) >= len(keys) - 2  # a kill between the run and its record repeats that one run
    first = seconds(keys[0])
    assert {round((seconds(key) - first) / 0.7 % 1, 3) % 1 for key in keys} == {0.0}


def test_a_tick_that_was_killed_is_begun_anew(timers: Timers) -> None:
    """The next daemon begins the very firing at once, since no other one can be alive."""
    (timers.folder / "quick").unlink()
    daemon = timers.serve()
    assert timers.run("trigger", "hanging").returncode == 0
    timers.until(lambda: len(timers.fired("hanging")) == 1, "it began")
    timers.end(daemon, signal.SIGKILL)
    (timers.folder / "quick").touch()
    timers.serve()
    timers.until(lambda: len(timers.fired("hanging")) >= 2, "it is begun again")
    assert [key for _, key in timers.fired("hanging")[:2]] == ["hanging#1", "hanging#1"]
    timers.until(lambda: timers.standing("hanging")["answered"] == 1, "it is dealt with")


def test_pause_trigger_resume(timers: Timers) -> None:
    """Each command says what it did; the schedule shows it, with who and why."""
    unknown = timers.run("pause", "often")
    assert (unknown.returncode, "no store" in unknown.stderr) == (2, True)
    timers.serve()
    paused = timers.run("pause", "often", "--who", "ann", "--why", "lunch")
    assert paused.stdout == "often is paused: what is due is passed over until `iocflow resume`\n"
    n = len(timers.fired())
    assert timers.run("trigger", "often").stdout == "often: a daemon fires it now\n"
    timers.until(lambda: timers.fired()[-1][1] == "often#1", "it was triggered")
    assert len(timers.fired()) <= n + 2
    told = timers.run("schedule", "-n", "1").stdout
    assert re.search(r"often: every 700ms -> noting\n  paused by \w+ at .*\n  last: completed, run \S+, 20", told)
    assert timers.run("resume", "often", "--json").returncode == 0
    n = len(timers.fired())
    timers.until(lambda: len(timers.fired()) > n, "it goes on")
    assert not timers.standing()["paused"]
    wrong = timers.run("resume", "oftn")
    assert (wrong.returncode, "did you mean `often`" in wrong.stderr) == (1, True)
    assert timers.run("trigger").returncode == 2


def test_schedule_tells_of_the_last_firing_without_a_daemon(timers: Timers) -> None:
    """The store remembers; before there is one, the next firings are listed, and none is made."""
    assert "often: every 700ms -> noting" in timers.run("schedule").stdout
    assert not (timers.folder / "timers.db").exists()
    daemon = timers.serve()
    timers.until(lambda: len(timers.fired()) >= 2, "it fires")
    timers.end(daemon)
    told = timers.run("schedule", "-n", "2").stdout
    assert re.search(r"  last: completed, run \S+, 20\d\d-", told)
    assert re.search(r"  fired \d+, missed 0, since 20\d\d-", told)
    assert timers.standing("daily")["upto"] is None


@pytest.mark.service("postgres")
def test_several_daemons_over_postgres_fire_once(shared: Timers) -> None:
    """Three daemons, one of them killed and started again: each moment has one run, and none is left out."""
    daemons = [shared.serve() for _ in range(3)]
    shared.until(lambda: len(shared.fired()) >= 5, "they fire")
    shared.end(daemons[0], signal.SIGKILL)
    n = len(shared.fired())
    shared.serve()
    shared.until(lambda: len(shared.fired()) >= n + 8, "they go on")
    for daemon in daemons[1:]:
        assert shared.end(daemon) == 0
    keys = [key for _, key in shared.fired()]
    assert len(set(keys)) >= len(keys) - 1  # the kill may come between a run and its record
    moments = sorted({seconds(key) for key in keys})
    gaps = [round((after - before) / 0.7) for before, after in itertools.pairwise(moments)]
    assert gaps.count(1) >= len(gaps) - 2, gaps
    assert len({process for process, _ in shared.fired()}) > 1
