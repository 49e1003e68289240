"""How a command behaves as a process: signals, pipes, terminals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

IOCFLOW = str(Path(sys.executable).with_name("iocflow"))
CLOSING = """

class Waiting(Activity[Shop]):
    def execute(self, context: Shop) -> None:
        wait(context)

    def close(self) -> None:
        print("closed", file=sys.stderr, flush=True)
"""


Start = Callable[..., "subprocess.Popen[str]"]


def written_on(controller: int) -> str:
    """Read what a command writes on its terminal, to its end."""
    written = b""
    try:
        while chunk := os.read(controller, 4096):
            written += chunk
    except OSError:
        written += b""  # Linux tells the end of a terminal by EIO
    return written.decode()


@pytest.mark.parametrize(
    ("number", "status", "says"),
    [(signal.SIGINT, 130, "iocflow: interrupted"), (signal.SIGTERM, 143, "iocflow: terminated")],
)
def test_a_signal_ends_a_run_in_good_order(
    shop: Path, start: Start, number: signal.Signals, status: int, says: str
) -> None:
    """Ctrl-C and SIGTERM in a run close the beans, say so and leave with what shells expect, without a traceback."""
    extend(shop, CLOSING)
    text = shop.read_text(encoding="utf-8").replace("wait: {call: .wait}", "wait: {class: .Waiting, close: close}")
    shop.write_text(text, encoding="utf-8")
    process = start("run", "shop.yaml", "waiting", stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "waiting" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == status
    assert "closed" in errors
    assert says in errors
    assert "Traceback" not in errors


def test_signals_reach_commands_also_where_the_tests_run_in_the_background(root: Path) -> None:
    """What a shell starts with `&` ignores SIGINT; a test session started so interrupts commands all the same."""
    test = f"{Path(__file__)}::test_a_signal_ends_a_run_in_good_order"
    line = f"trap '' INT; exec '{sys.executable}' -m pytest -q -p no:cacheprovider -k 130 '{test}'"
    done = subprocess.run(["sh", "-c", line], cwd=root, capture_output=True, text=True, check=False, timeout=120)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


CLOSED = ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"]


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("check shop.yaml", 0),
        ("check shop.yaml --json", 0),
        ("run shop.yaml greeting --seed '{\"id\": 1}'", 0),
        ("run shop.yaml stopping --json", 0),
        ("run shop.yaml failing", 1),
        ("run shop.yaml gone", 2),
        ("graph shop.yaml", 0),
        ("--help", 0),
        ("--version", 0),
    ],
)
def test_closed_streams_are_no_error(shop: Path, command: str, status: int, closed: str) -> None:
    """A command whose standard streams were closed, as by some cron, does its work and leaves as ever."""
    done = shell(shop, f"{IOCFLOW} {command} {closed}")
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert "NoneType" not in done.stderr


@pytest.mark.parametrize("closed", CLOSED)
def test_nothing_else_gets_the_number_of_a_closed_stream(shop: Path, closed: str) -> None:
    """What is printed never ends up in a file that happened to be opened under a standard stream's number."""
    opening = "\n\nopened = open('opened.txt', 'w')\n"
    extend(shop, opening)
    done = shell(shop, f"{IOCFLOW} run shop.yaml greeting --seed '{{\"id\": 1}}' {closed}")
    assert done.returncode == 0, done.stderr
    assert (shop.parent / "opened.txt").read_text() == ""


@pytest.mark.parametrize("closed", ["", *CLOSED])
def test_the_daemon_runs_with_closed_streams(shop: Path, closed: str) -> None:
    """serve runs, logs where it can, and ends in good order without standard streams."""
    launchers = 'launchers: {drops: {processor: greeting, source: "folder:in?interval=20ms"}}\n'
    shop.write_text(shop.read_text(encoding="utf-8") + launchers, encoding="utf-8")
    inbox = shop.parent / "in"
    inbox.mkdir()
    (inbox / "a.json").write_text('{"id": 1}')
    stop = "for i in $(seq 600); do test -e in/done/a.json && break; sleep 0.05; done; kill $!; wait $!"
    done = shell(shop, f"{IOCFLOW} serve shop.yaml {closed} & {stop}")
    assert done.returncode == 0, done.stderr
    assert ("stopped: everything in hand was finished" in done.stderr) is ("2>&-" not in closed)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def extend(shop: Path, code: str) -> None:
    """Add code to the shop's module."""
    module = shop.with_suffix(".py")
    module.write_text(module.read_text(encoding="utf-8") + code, encoding="utf-8")


def shell(shop: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in the folder of the container file."""
    return subprocess.run(
        ["bash", "-c", line], cwd=shop.parent, capture_output=True, text=True, check=False, timeout=60, input=""
    )


@pytest.mark.parametrize(
    "command",
    [
        "graph shop.yaml",
        "schema",
        "run shop.yaml stopping",
        "run shop.yaml stopping --json",
        "check shop.yaml",
        "--help",
    ],
)
def test_a_reader_that_leaves_is_no_error(start: Start, command: str) -> None:
    """`| head` ends the command without a word on standard error."""
    process = start(*command.split(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.wait(timeout=30)
    assert errors == ""
    assert process.returncode in (1, 141)


PRINTING = """

class Printing(Activity[Shop]):
    def __init__(self, own: bool = False) -> None:
        if own:
            raise BrokenPipeError("a pipe of its own")
        print("built", flush=True)

    def execute(self, context: Shop) -> None:
        context.stop_process()
"""


@pytest.mark.parametrize("before", ["", "PYTHONUNBUFFERED=1 "])
def test_a_reader_that_leaves_before_the_beans_are_built(shop: Path, before: str) -> None:
    """A constructor that prints for a reader who has gone ends the command silently with 141, as any other print."""
    extend(shop, PRINTING)
    text = shop.read_text(encoding="utf-8")
    shop.write_text(text.replace("{call: .stop}", "{class: .Printing}"), encoding="utf-8")
    # The reader has gone for certain when the command begins.
    line = f"{{ sleep 0.3; {before}{IOCFLOW} run shop.yaml stopping; echo $? >status; }} | true"
    done = shell(shop, line)
    assert (shop.parent / "status").read_text() == "141\n"
    assert done.stderr == ""


def test_another_pipe_that_breaks_is_an_error(shop: Path) -> None:
    """A constructor whose own pipe broke is one that cannot be built: 3, with the reason."""
    extend(shop, PRINTING)
    text = shop.read_text(encoding="utf-8")
    shop.write_text(text.replace("{call: .stop}", "{class: .Printing, args: {own: true}}"), encoding="utf-8")
    done = shell(shop, f"{IOCFLOW} run shop.yaml stopping")
    assert done.returncode == 3
    assert "BrokenPipeError" in done.stderr


def test_a_terminal_that_knows_only_ascii(iocflow: Any, shop: Path) -> None:
    """What the output's encoding cannot show is written as an escape, and the run is not disturbed."""
    text = shop.read_text(encoding="utf-8")
    shop.write_text(text.replace("word: Hello", "word: 王小明"), encoding="utf-8")
    env = {"PYTHONIOENCODING": "ascii"}
    done = iocflow("run", "shop.yaml", "failing", "--seed", '{"id": 1}', "--json", env=env)
    assert (done.returncode, json.loads(done.stdout)["error"]) == (1, "ConnectionError: no route to 王小明")
    assert "\\u738b" in iocflow("run", "shop.yaml", "failing", "--seed", '{"id": 1}', env=env).stderr


@pytest.mark.parametrize(
    ("options", "env", "coloured"),
    [((), {}, True), (("--no-color",), {}, False), ((), {"NO_COLOR": "1"}, False)],
)
def test_colours_on_a_terminal_only(
    on_a_terminal: Callable[..., Any], options: tuple[str, ...], env: dict[str, str], coloured: bool
) -> None:
    """A terminal gets colours, unless --no-color or NO_COLOR says otherwise."""
    process, controller = on_a_terminal("run", "shop.yaml", "stopping", *options, env=env)
    assert ("\x1b[" in written_on(controller)) is coloured
    assert process.wait(timeout=30) == 0
