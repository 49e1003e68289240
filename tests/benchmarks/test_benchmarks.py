"""The benchmarks run; their figures depend on the machine and are for people."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker import AMQP, reachable


@pytest.mark.parametrize(
    ("script", "figures"),
    [
        ("inline.py", [r"bare loop.* us  x1\.00", r"iocflow SequenceProcessor.* us  x\d"]),
        ("loading.py", [r"first load.* ms", r"check 200 beans.* ms", r"build and close 200 beans.* ms"]),
        ("store_commits.py", [r"raw commit, 1 rows.* us  x1\.00", r"store commit, 64 runs of 5 steps.* us  x\d"]),
        ("timers.py", [r"APScheduler alone .*ticks/s", r"daemon over SQLite .*p99.* ms"]),
        ("isolated.py", [r"bare pipe.* us  x1\.00", r"process pool.* us  x\d", r"isolate: process.* us  x\d"]),
        ("startup.py", [r"python -c pass.* ms", r"iocflow --help.* ms"]),
        (
            "durable.py",
            [r"1 in flight.*commits/s +x\d", r"submit to first activity.* ms", r"1000 waiting.* us a group"],
        ),
    ],
)
def test_benchmark_prints_its_figures(script: str, figures: list[str]) -> None:
    """Every benchmark runs to its end, however short its rounds, and prints what it measured."""
    run(script, figures)


@pytest.mark.service("amqp")
@pytest.mark.parametrize(
    ("script", "figures"),
    [
        ("events.py", [r"raw consume and acknowledge.* events/s +x1\.00", r"durable on SQLite.* events/s +x\d"]),
        ("event_latency.py", [r"raw consume .*p99.* ms +x1\.0", r"durable on SQLite .*p99.* ms +x\d"]),
    ],
)
def test_benchmark_of_a_broker_prints_its_figures(script: str, figures: list[str]) -> None:
    """Those that need a broker do so too."""
    if not reachable(AMQP):
        pytest.skip(f"no broker answers at {AMQP}")
    run(script, figures)


def run(script: str, figures: list[str]) -> None:
    """Run a script for a moment, and find its figures."""
    command = [sys.executable, str(Path(__file__).with_name(script)), "--rounds", "1", "--seconds", "0.001"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    for figure in figures:
        assert re.search(figure, done.stdout), done.stdout
