"""The daemon's contract as a process: signals, exit codes, and what is left when it is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("program.py")
SECONDS = 30.0


class Running:
    """A daemon in a process of its own, with its inbox, journal and log."""

    def __init__(self, folder: Path, root: Path, **options: Any) -> None:
        self.inbox = folder / "inbox"
        self.journal_file = folder / "journal"
        self.log_file = folder / "log"
        options = {"journal": str(self.journal_file), "source": f"folder:{self.inbox}?interval=20ms", **options}
        self._log = self.log_file.open("ab")
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), json.dumps({k: v for k, v in options.items() if v is not None})],
            stderr=self._log if not options.get("chatter") else subprocess.PIPE,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(root)},
        )

    def put(self, name: str, seconds: float = 0.0) -> None:
        """Drop an event into the inbox, at once."""
        draft = self.inbox / f".{name}"
        self.inbox.mkdir(exist_ok=True)
        draft.write_text(json.dumps({"name": name, "seconds": seconds}))
        draft.rename(self.inbox / f"{name}.json")

    def journal(self) -> list[str]:
        """Return what the runs noted."""
        return self.journal_file.read_text().splitlines() if self.journal_file.exists() else []

    def log(self) -> str:
        """Return the log."""
        return self.log_file.read_text()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds, while the process runs."""
        end = time.monotonic() + SECONDS
        while not condition():
            assert self.process.poll() is None or condition(), self.log()
            assert time.monotonic() < end, self.log()
            time.sleep(0.01)

    def ready(self) -> Running:
        """Wait until the daemon says so."""
        self.wait_for(lambda: "INFO ready" in self.log())
        return self

    def signal(self, number: signal.Signals) -> Running:
        """Send a signal."""
        self.process.send_signal(number)
        return self

    def exit_code(self, seconds: float = SECONDS) -> int:
        """Wait for the end and return the exit code."""
        code = self.process.wait(seconds)
        self._log.close()
        return code

    def files(self, place: str) -> list[str]:
        """Return the files in a place of the inbox."""
        return sorted(one.name for one in (self.inbox / place).iterdir() if one.is_file() and one.name[0] != ".")


@pytest.fixture
def run(tmp_path: Path, root: Path) -> Iterator[Callable[..., Running]]:
    """Return a function that starts the program; what still runs at the end is killed."""
    started: list[Running] = []

    def start(**options: Any) -> Running:
        started.append(Running(tmp_path, root, **options))
        return started[-1]

    try:
        yield start
    finally:
        for one in started:
            if one.process.poll() is None:
                one.process.kill()
            one.exit_code()
            if one.process.stderr:
                one.process.stderr.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_finishes_what_is_in_hand(run: Callable[..., Running], number: signal.Signals) -> None:
    """After the first signal the run in hand ends, its event is done, beans are closed, and the exit code is 0."""
    daemon = run().ready()
    daemon.put("a", 0.5)
    daemon.wait_for(lambda: daemon.journal() == ["began a"])
    daemon.signal(number)
    daemon.wait_for(lambda: f"stopping: {number.name}" in daemon.log())
    daemon.put("late")
    assert daemon.exit_code() == 0
    assert daemon.journal() == ["began a", "ended a", "closing", "closed"]
    assert (daemon.files(""), daemon.files("working"), daemon.files("done")) == (["late.json"], [], ["a.json"])
    assert "launcher p-source: started 1, completed 1" in daemon.log()


def test_a_timer_stops_too(run: Callable[..., Running]) -> None:
    """A polling daemon ticks until the signal, and not after it."""
    daemon = run(source=None, every="100ms").ready()
    daemon.wait_for(lambda: daemon.journal().count("ended tick") >= 3)
    assert daemon.signal(signal.SIGTERM).exit_code() == 0
    assert daemon.journal()[-2:] == ["closing", "closed"]


def test_a_second_signal_ends_at_once(run: Callable[..., Running]) -> None:
    """A hung run cannot hold the process at the second signal; its event runs again at the next start."""
    daemon = run(grace=60.0).ready()
    daemon.put("a", 60)
    daemon.wait_for(lambda: daemon.journal() == ["began a"])
    daemon.signal(signal.SIGTERM)
    daemon.wait_for(lambda: "stopping: SIGTERM" in daemon.log())
    daemon.signal(signal.SIGINT)
    assert daemon.exit_code(5) == 5
    assert "ERROR forced to stop: another signal came, SIGINT" in daemon.log()
    in_hand = r"still in hand: launcher p-source, run [\w-]+ of p for event a\.json#\w+, for \d+ s"
    assert re.search(in_hand, daemon.log())
    assert daemon.files("working") == ["a.json"]
    again = run(grace=0.2).ready()
    again.wait_for(lambda: again.journal() == ["began a", "began a"])


def test_one_signal_that_comes_twice(run: Callable[..., Running]) -> None:
    """What sends a signal to the process and to its group, as timeout(1) does, means one stop and not two."""
    daemon = run().ready()
    daemon.put("a", 0.5)
    daemon.wait_for(lambda: daemon.journal() == ["began a"])
    daemon.signal(signal.SIGTERM)
    time.sleep(0.005)
    assert daemon.signal(signal.SIGTERM).exit_code() == 0
    assert daemon.journal() == ["began a", "ended a", "closing", "closed"]


def test_the_grace_time_is_over(run: Callable[..., Running]) -> None:
    """A run that goes on after the grace time is left behind: its event is back in the inbox, and the code is 5."""
    daemon = run(grace=0.3).ready()
    daemon.put("a", 60)
    daemon.put("b", 0.1)
    daemon.wait_for(lambda: "began a" in daemon.journal() and "ended b" in daemon.journal())
    began = time.monotonic()
    assert daemon.signal(signal.SIGTERM).exit_code(10) == 5
    assert time.monotonic() - began < 5
    assert (daemon.files(""), daemon.files("working"), daemon.files("done")) == (["a.json"], [], ["b.json"])
    assert "closing" not in daemon.journal()
    assert "still in hand: launcher p-source, run " in daemon.log()


def test_what_has_not_begun_is_given_back(run: Callable[..., Running]) -> None:
    """Events that were received and wait for a thread go back to the inbox at the stop."""
    daemon = run(pool=1).ready()
    for name in "abc":
        daemon.put(name, 0.5)
    daemon.wait_for(lambda: len(daemon.journal()) == 1)
    assert daemon.signal(signal.SIGTERM).exit_code() == 0
    assert (len(daemon.files("")), daemon.files("working"), len(daemon.files("done"))) == (2, [], 1)


def test_killed_in_the_middle_of_an_event(run: Callable[..., Running]) -> None:
    """kill -9 while an event runs: after the restart it runs again, with the same id, and is done."""
    daemon = run().ready()
    daemon.put("a", 0.4)
    daemon.wait_for(lambda: daemon.journal() == ["began a"])
    daemon.signal(signal.SIGKILL)
    assert daemon.exit_code() == -signal.SIGKILL
    assert daemon.files("working") == ["a.json"]
    again = run()
    again.wait_for(lambda: again.journal() == ["began a", "began a", "ended a"])
    assert again.signal(signal.SIGTERM).exit_code() == 0
    assert again.files("done") == ["a.json"]
    assert "a.json was in hand when a process ended" in again.log()


def test_killed_again_and_again(run: Callable[..., Running]) -> None:
    """However often the daemon is killed among many events, each of them has run in the end, and none is left."""
    names = [f"e{number:02}" for number in range(40)]
    daemon = run().ready()
    for name in names:
        daemon.put(name, 0.02)
    for round_ in range(1, 6):
        daemon.wait_for(lambda one=daemon, lines=12 * round_: len(one.journal()) > lines)
        daemon.signal(signal.SIGKILL)
        daemon.exit_code()
        daemon = run()
    daemon.wait_for(lambda: len(daemon.files("done")) == len(names))
    assert daemon.ready().signal(signal.SIGTERM).exit_code() == 0
    assert {line.removeprefix("ended ") for line in daemon.journal() if line.startswith("ended ")} == set(names)
    assert (daemon.files(""), daemon.files("working"), daemon.files("failed")) == ([], [], [])


def test_a_reader_that_does_not_read(run: Callable[..., Running]) -> None:
    """A full pipe behind standard error blocks whoever logs; two signals end the process all the same."""
    daemon = run(chatter=True, source=None, every="1h")
    daemon.wait_for(lambda: "began tick" in daemon.journal())
    time.sleep(0.5)
    daemon.signal(signal.SIGTERM)
    time.sleep(0.2)
    daemon.signal(signal.SIGTERM)
    assert daemon.exit_code(10) == 5


def test_closing_that_takes_too_long(run: Callable[..., Running]) -> None:
    """Beans have the rest of the grace time to close; then the process ends without them."""
    daemon = run(close=60.0, grace=0.5).ready()
    assert daemon.signal(signal.SIGTERM).exit_code(10) == 5
    assert daemon.journal() == ["closing"]
    assert "forced to stop: the beans were not closed within the grace time" in daemon.log()


def test_a_second_daemon_on_one_inbox(run: Callable[..., Running]) -> None:
    """A folder that another daemon reads ends the second one with code 4, and leaves the first one alone."""
    daemon = run().ready()
    assert run().exit_code() == 4
    assert "another process reads" in daemon.log()
    daemon.put("a")
    daemon.wait_for(lambda: daemon.files("done") == ["a.json"])
    assert daemon.signal(signal.SIGTERM).exit_code() == 0


def test_a_second_daemon_fires_no_timer(run: Callable[..., Running]) -> None:
    """A daemon that ends with code 4 has run nothing before, whatever launchers it has beside the locked one."""
    daemon = run(every="1h").ready()
    daemon.wait_for(lambda: daemon.journal() == ["began tick", "ended tick"])
    for _ in range(3):
        assert run(every="1h").exit_code() == 4
    assert daemon.journal().count("began tick") == 1
    assert daemon.signal(signal.SIGTERM).exit_code() == 0


def test_a_source_that_can_never_work(run: Callable[..., Running], tmp_path: Path) -> None:
    """An inbox that is a file ends the daemon with code 3 and says so."""
    (tmp_path / "inbox").write_text("")
    daemon = run()
    assert daemon.exit_code() == 3
    assert "inbox is in the way: it is no folder" in daemon.log()


def test_nothing_to_serve(run: Callable[..., Running]) -> None:
    """An application without launchers is a mistake of its configuration."""
    daemon = run(source=None)
    assert daemon.exit_code() == 3
    assert "there is nothing to serve" in daemon.log()
