"""A copy of what a fresh clone holds of the samples, and commands that run in it as a reader would run them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent

Shell = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def clone(root: Path, tmp_path: Path) -> Path:
    """Return a folder with `config` and `samples` and nothing else; `var` will be made in it."""
    for folder in ("config", "samples"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def environment() -> dict[str, str]:
    """Return this environment, with its programs first and without what would change the samples."""
    kept = {name: value for name, value in os.environ.items() if name not in ("FARES_DB", "SMTP_PASSWORD")}
    return {**kept, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture
def shell(clone: Path) -> Shell:
    """Return a function that runs one command line in the clone; it must exit with `status`."""

    def run(line: str, *, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=clone,
            env=environment(),
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        assert done.returncode == status, f"{line}\n{done.stdout}{done.stderr}"
        return done

    return run


@pytest.fixture
def serve(clone: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts the daemon in the clone; it is ended after the test if it still runs."""
    started: list[subprocess.Popen[str]] = []

    def start(*options: str, file: str = "config/fare_drop.yaml") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [BIN / "iocflow", "serve", file, *options],
            cwd=clone,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.communicate()


def ended(process: subprocess.Popen[str]) -> str:
    """Ask the daemon to stop, and return all that it printed; it must end well."""
    process.send_signal(signal.SIGTERM)
    printed, _ = process.communicate(timeout=40)
    assert process.returncode == 0, printed
    return printed


def until(what: Callable[[], bool], seconds: float = 40) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to that in time"
        time.sleep(0.05)
