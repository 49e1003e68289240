"""How a command behaves as a process: signals, pipes, terminals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
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


BRANCHING = """

import asyncio


class Waiting(Activity[Shop]):
    def __init__(self, how: str = "") -> None:
        self.how = how

    def execute(self, context: Shop) -> object:
        print("waiting", file=sys.stderr, flush=True)
        if self.how == "retry":
            raise ConnectionError("not yet")
        return asyncio.sleep(60) if self.how == "async" else time.sleep(60)

    def close(self) -> None:
        print("closed", file=sys.stderr, flush=True)
"""
RETRY = "on-error: {retry: {attempts: 3, delay: 60s}}, "
SLOWLY_CLOSING = """

class Slow(Activity[Shop]):
    def __init__(self, name: str) -> None:
        self.name = name

    def execute(self, context: Shop) -> None:
        pass

    def close(self) -> None:
        print("closing", self.name, file=sys.stderr, flush=True)
        time.sleep(10 if self.name == "third" else 0)
        print("closed", self.name, file=sys.stderr, flush=True)
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


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("how", ["retry", "async", "thread"])
@pytest.mark.parametrize("branched", [True, False])
def test_a_signal_ends_what_waits(
    shop: Path, start: Start, how: str, branched: bool, number: signal.Signals, status: int
) -> None:
    """A pause before a retry and an async activity end at once, in branches too; a branch's own code at a second."""
    extend(shop, BRANCHING)
    retry = RETRY if how == "retry" else ""
    bean = f"{{class: .Waiting, {retry}close: close, args: {{how: {how}}}}}"
    text = shop.read_text(encoding="utf-8").replace("wait: {call: .wait}", f"wait: {bean}")
    if branched:
        text = text.replace("sequence: [wait]", "parallel-split: {a: wait, b: [greet, wait]}")
    shop.write_text(text, encoding="utf-8")
    process = start("run", "shop.yaml", "waiting", stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "waiting" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(0.3)
    process.send_signal(number)
    if branched and how == "thread":
        time.sleep(0.3)
        process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == status
    assert "closed" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_a_bean_is_closed(shop: Path, start: Start, number: signal.Signals, status: int) -> None:
    """Every other bean is closed all the same, and the exit status is that of the signal."""
    extend(shop, SLOWLY_CLOSING)
    slow = "{class: .Slow, close: close, args: {name: NAME}}"
    beans = "".join(f"\n  {name}: {slow.replace('NAME', name)}" for name in ("first", "second", "third"))
    text = shop.read_text(encoding="utf-8").replace("\n  stop: {call: .stop}", f"\n  stop: {{call: .stop}}{beans}")
    shop.write_text(text.replace("[stop, say]", "[stop, first, second, third]"), encoding="utf-8")
    process = start("run", "shop.yaml", "stopping", stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "closing third" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == status
    assert [line for line in errors.splitlines() if "closed" in line] == ["closed second", "closed first"]
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
        "--version",
        "run --help",
    ],
)
def test_a_reader_that_leaves_is_no_error(start: Start, command: str) -> None:
    """`| head` ends the command without a word on standard error, with what shells expect."""
    process = start(*command.split(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.wait(timeout=30)
    assert errors == ""
    assert process.returncode == 141


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


LOUD = """

class Loud(Activity[Shop]):
    def __init__(self, wrong: bool = False) -> None:
        self.wrong = wrong

    def execute(self, context: Shop) -> None:
        print("working", flush=True)

    def close(self) -> None:
        time.sleep(0.3)  # the reader has gone
        try:
            print("closing", flush=True)
        finally:
            if self.wrong:
                raise ValueError("no end")
"""


@pytest.mark.parametrize(("wrong", "status"), [("false", 141), ("true", 1)])
def test_a_reader_that_leaves_before_the_beans_are_closed(shop: Path, wrong: str, status: int) -> None:
    """Beans that print while they are closed are no error either, unless closing failed for another reason, too."""
    extend(shop, LOUD)
    text = shop.read_text(encoding="utf-8")
    loud = f"{{class: .Loud, close: close, args: {{wrong: {wrong}}}}}"
    shop.write_text(text.replace("stop: {call: .stop}", f"stop: {loud}\n  other: {loud}"), encoding="utf-8")
    shop.write_text(shop.read_text(encoding="utf-8").replace("[stop, say]", "[stop, other]"), encoding="utf-8")
    done = shell(shop, f"{{ {IOCFLOW} run shop.yaml stopping; echo $? >status; }} | head -5")
    assert (shop.parent / "status").read_text() == f"{status}\n"
    assert len(done.stdout.splitlines()) == 5
    assert ("ValueError: no end" in done.stderr) is (status == 1)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "status"), [("run shop.yaml stopping", 0), ("run shop.yaml gone", 2), ("nonsense", 2), ("--help", 141)]
)
def test_a_reader_of_both_streams_that_leaves(shop: Path, command: str, status: int) -> None:
    """With `2>&1 | head` there is nobody to be told of anything, and the exit status is what it was."""
    shell(shop, f"{{ sleep 0.3; {IOCFLOW} {command} 2>&1; echo $? >status; }} | true")
    assert (shop.parent / "status").read_text() == f"{status or 141}\n"


@pytest.mark.parametrize(
    "command",
    ["--help", "--version", "run --help", "graph shop.yaml", "check shop.yaml --json", "run shop.yaml stopping"],
)
def test_a_full_disk_is_told(shop: Path, command: str) -> None:
    """A result that cannot be written ends the command with 1 and one line that says why."""
    done = shell(shop, f"{IOCFLOW} {command} >/dev/full")
    assert done.returncode == 1
    assert done.stderr == "iocflow: standard output cannot be written: No space left on device\n"


def test_what_user_code_prints_onto_a_full_disk(shop: Path) -> None:
    """What was printed and still waits to be written at the end is told of as well."""
    extend(shop, "\n\ndef murmur(context: Shop) -> None:\n    print('murmured')\n")
    text = shop.read_text(encoding="utf-8").replace("{call: .stop}", "{call: .murmur}").replace("[stop, say]", "[stop]")
    shop.write_text(text, encoding="utf-8")
    done = shell(shop, f"env -u PYTHONUNBUFFERED {IOCFLOW} run shop.yaml stopping >/dev/full")
    assert done.returncode == 1
    assert done.stderr == "iocflow: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("command", ["check ../shop.yaml", "run ../shop.yaml stopping", "schema", "graph ../shop.yaml"])
def test_a_working_directory_that_is_gone(shop: Path, command: str) -> None:
    """It is told in one line; `--help` answers all the same."""
    done = shell(shop, f"mkdir gone; cd gone; rmdir ../gone; {IOCFLOW} {command}")
    assert done.returncode == 2
    assert done.stderr.startswith("iocflow: the working directory cannot be had (No such file or directory); change to")
    assert len(done.stderr.splitlines()) == 1
    assert shell(shop, f"mkdir gone; cd gone; rmdir ../gone; {IOCFLOW} --help").returncode == 0


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
