"""`iocflow serve` from the outside: what the command adds to the daemon, whose own tests lie with it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

IOCFLOW = str(Path(sys.executable).with_name("iocflow"))
TICKING = """
launchers:
  often: {processor: greeting, every: 200ms}
"""


@pytest.fixture
def ticking(shop: Path) -> Path:
    """Return the shop's file with a timer that fires all the time; its processor needs no seed."""
    shop.write_text(shop.read_text(encoding="utf-8") + TICKING, encoding="utf-8")
    return shop


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run the daemon while the block runs, and end it at any rate."""
    command = [IOCFLOW, "serve", "shop.yaml", *options]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


def read_until(process: subprocess.Popen[str], wanted: Callable[[str], bool]) -> list[str]:
    """Read lines of the log until one is `wanted`."""
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if wanted(line):
            return lines
    raise AssertionError(f"the daemon ended: {lines}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_runs_until_it_is_told_to_stop(ticking: Path, number: signal.Signals) -> None:
    """The daemon logs its runs at INFO on standard error, and a signal ends it with 0."""
    with serving(ticking.parent) as process:
        read_until(process, lambda line: "ended COMPLETED" in line)
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "stopped: everything in hand was finished" in errors
    assert "Traceback" not in errors


def test_json_log_tells_launcher_and_run(ticking: Path) -> None:
    """With --log-format json every line is an object; a run's end names launcher, processor, run id and outcome."""
    with serving(ticking.parent, "--log-format", "json") as process:
        *_, line = read_until(process, lambda line: "ended COMPLETED" in line)
    ended = json.loads(line)
    assert (ended["launcher"], ended["processor"], ended["outcome"]) == ("often", "greeting", "COMPLETED")
    assert len(ended["run_id"]) == 36


DROPS = """
launchers:
  drops: {processor: greeting, source: "folder:in?interval=20ms"}
"""


def test_events_and_their_runs_can_be_told_apart(shop: Path) -> None:
    """The end of a run names event and run id; all lines of the run begin with the same characters, also in between."""
    text = shop.read_text(encoding="utf-8").replace("sequence: [greet, say]", "sequence: [greet, note]")
    text = text.replace("  say: {call: .say}", "  say: {call: .say}\n  note: {call: .note}")
    shop.write_text(text + DROPS, encoding="utf-8")
    module = shop.with_suffix(".py")
    note = "\n\ndef note(context: Shop) -> None:\n    logging.info('order %d', context.seed_data.id)\n"
    module.write_text(module.read_text(encoding="utf-8").replace("import os", "import logging\nimport os") + note)
    inbox = shop.parent / "in"
    inbox.mkdir()
    for number in range(8):
        (inbox / f"order-{number}.json").write_text(f'{{"id": {number}}}')
    ended: dict[str, str] = {}
    with serving(shop.parent) as process:
        lines: list[str] = []
        while len(ended) < 8:
            lines += read_until(process, lambda line: "ended COMPLETED" in line)
            found = re.search(r"run (\S+) of greeting for event order-(\d)\.json#\w+ ended", lines[-1])
            assert found, lines
            ended[found[2]] = found[1][:8]
    for number, run in ended.items():
        assert any(f"INFO [{run}] greeting/note: order {number}\n" in line for line in lines), lines
        assert any(line.partition("INFO ")[2].startswith(f"[{run}] greeting: drops: run {run}") for line in lines)


def test_nothing_to_serve(iocflow: Any, shop: Path) -> None:
    """A file without launchers cannot be served: 3, with the reason."""
    done = iocflow("serve", "shop.yaml")
    assert done.returncode == 3
    assert "nothing to serve" in done.stderr
    assert "Traceback" not in done.stderr


def test_live_line_on_a_terminal(ticking: Path, on_a_terminal: Callable[..., Any]) -> None:
    """On a terminal each launcher has a line with what it did, and the log scrolls above it."""
    process, controller = on_a_terminal("serve", ticking.name, stdout=subprocess.DEVNULL, env={"COLUMNS": "120"})
    written = b""
    end = time.monotonic() + 30
    while b"3 completed" not in written and time.monotonic() < end:
        written += os.read(controller, 4096)
    process.send_signal(signal.SIGTERM)
    drain = threading.Thread(target=_drain, args=(controller,), daemon=True)
    drain.start()
    assert process.wait(timeout=30) == 0
    drain.join(5)
    assert b"often" in written
    assert b"every 200ms -> greeting" in written
    assert b"3 completed" in written
    assert b"INFO" in written


def test_log_lines_stay_whole_on_a_terminal(ticking: Path, on_a_terminal: Callable[..., Any]) -> None:
    """A log line is written as one line however narrow the terminal is: it can be searched and copied."""
    process, controller = on_a_terminal("serve", ticking.name, stdout=subprocess.DEVNULL, env={"COLUMNS": "40"})
    written = b""
    end = time.monotonic() + 30
    whole = re.compile(rb"INFO \[\w{8}\] greeting: often: run [\w-]{36} of greeting ended COMPLETED after [\d.]+ s\r\n")
    while not whole.search(written) and time.monotonic() < end:
        written += os.read(controller, 4096)
    process.kill()
    process.wait(timeout=30)
    assert whole.search(written), written.decode()


def _drain(controller: int) -> None:
    """Read what is left, so that the daemon is not held up by a full terminal."""
    try:
        while os.read(controller, 4096):
            continue
    except OSError:
        return  # Linux tells the end of a terminal by EIO
