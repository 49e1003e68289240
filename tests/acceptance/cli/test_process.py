"""How a command behaves as a process: signals, pipes, terminals."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

IOCFLOW = str(Path(sys.executable).with_name("iocflow"))


def on_a_terminal(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> str:
    """Run a command with its output on a terminal; return what it wrote there."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [IOCFLOW, *arguments],
        cwd=folder,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", **(env or {})},
    )
    os.close(terminal)
    written = b""
    try:
        while chunk := os.read(controller, 4096):
            written += chunk
    except OSError:
        written += b""  # Linux tells the end of a terminal by EIO
    assert process.wait(timeout=30) == 0
    os.close(controller)
    return written.decode()


def test_ctrl_c_leaves_with_130(shop: Path) -> None:
    """Ctrl-C in the middle of a run says so and leaves with 130, without a traceback."""
    process = subprocess.Popen(
        [IOCFLOW, "run", "shop.yaml", "waiting"],
        cwd=shop.parent,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while "waiting" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "iocflow: interrupted" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("command", ["graph shop.yaml", "schema", "run shop.yaml stopping", "--help"])
def test_a_reader_that_leaves_is_no_error(shop: Path, command: str) -> None:
    """`| head` ends the command without a word on standard error."""
    process = subprocess.Popen(
        [IOCFLOW, *command.split()], cwd=shop.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.wait(timeout=30)
    process.stderr.close()
    assert errors == ""
    assert process.returncode in (1, 141)


def test_a_terminal_that_knows_only_ascii(iocflow: Any, shop: Path) -> None:
    """What the output's encoding cannot show is written as an escape, and the run is not disturbed."""
    text = shop.read_text(encoding="utf-8")
    shop.write_text(text.replace("word: Hello", "word: 王小明"), encoding="utf-8")
    env = {"PYTHONIOENCODING": "ascii"}
    done = iocflow("run", "shop.yaml", "failing", "--seed", '{"id": 1}', "--json", env=env)
    assert (done.returncode, json.loads(done.stdout)["error"]) == (1, "ConnectionError: no route to 王小明")
    assert "\\u738b" in iocflow("run", "shop.yaml", "failing", "--seed", '{"id": 1}', env=env).stderr


def test_colours_on_a_terminal_only(shop: Path) -> None:
    """A terminal gets colours, unless --no-color or NO_COLOR says otherwise."""
    run = ("run", "shop.yaml", "stopping")
    assert "\x1b[" in on_a_terminal(shop.parent, *run)
    assert "\x1b[" not in on_a_terminal(shop.parent, *run, "--no-color")
    assert "\x1b[" not in on_a_terminal(shop.parent, *run, env={"NO_COLOR": "1"})
