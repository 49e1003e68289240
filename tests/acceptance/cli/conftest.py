"""A small shop for the command line to work on: one module and one container file, in a folder of its own."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cli.orders import CONTAINER as ORDERS
from tests.acceptance.cli.orders import FILE
from tests.acceptance.cli.orders import MODULE as ORDERS_MODULE

IOCFLOW = str(Path(sys.executable).with_name("iocflow"))

MODULE = """
from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass

from iocflow import Activity, App, ProcessContext, SequenceProcessor


@dataclass
class Order:
    id: int
    price: float = 1.0


class Shop(ProcessContext):
    seed_data: Order
    text: str = ""


class Greet(Activity[Shop]):
    def __init__(self, word: str, token: str = "") -> None:
        self.word, self.token = word, token

    def execute(self, context: Shop) -> None:
        context.text = f"{self.word} {self.token}".strip()


def say(context: Shop) -> None:
    print("said on standard output:", context.text, flush=True)
    subprocess.run([sys.executable, "-c", "print('said by a child')"], check=True)


def stop(context: Shop) -> None:
    context.stop_process("nobody is interested")


def fail(context: Shop) -> None:
    raise ConnectionError(f"no route to {context.text or 'host'}")


def leave(context: Shop) -> None:
    sys.exit(3)


def wait(context: Shop) -> None:
    print("waiting", file=sys.stderr, flush=True)
    time.sleep(30)


app = App(SequenceProcessor([say], context=Shop, name="greeting"))
nothing = 1
"""

CONTAINER = """\
iocflow: 1
package: shop
values:
  word: Hello
beans:
  greet: {class: .Greet, args: {word: "${word}", token: "${secret:SHOP_TOKEN:}"}}
  say: {call: .say}
  stop: {call: .stop}
  fail: {call: .fail}
  leave: {call: .leave}
  wait: {call: .wait}
processors:
  greeting: {context: .Shop, sequence: [greet, say]}
  stopping: {context: .Shop, sequence: [stop, say]}
  failing: {context: .Shop, sequence: [greet, fail, say]}
  leaving: {context: .Shop, sequence: [leave]}
  waiting: {context: .Shop, sequence: [wait]}
profiles:
  loud:
    values: {word: HELLO}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return the container file `shop.yaml`, beside its module `shop.py`, in the folder where commands run."""
    (tmp_path / "shop.py").write_text(MODULE, encoding="utf-8")
    file = tmp_path / "shop.yaml"
    file.write_text(CONTAINER, encoding="utf-8")
    return file


@pytest.fixture
def start(shop: Path) -> Iterator[Callable[..., subprocess.Popen[Any]]]:
    """Return a function that starts a command in the shop's folder and does not wait for it.

    What still runs at the end of the test is killed, and its pipes are closed.
    """
    with ExitStack() as ending:

        def started(*arguments: str, **how: Any) -> subprocess.Popen[Any]:
            process: subprocess.Popen[Any] = subprocess.Popen([IOCFLOW, *arguments], cwd=shop.parent, **how)
            ending.enter_context(process)
            ending.callback(process.kill)
            return process

        yield started


@pytest.fixture
def on_a_terminal(start: Callable[..., subprocess.Popen[Any]]) -> Iterator[Callable[..., Any]]:
    """Return a function that starts a command on a terminal; it returns the process and the end to read from."""
    with ExitStack() as ending:

        def started(*arguments: str, env: dict[str, str] | None = None, **how: Any) -> tuple[Any, int]:
            controller, terminal = pty.openpty()
            ending.callback(os.close, controller)
            try:
                streams = {"stdout": terminal, "stderr": terminal, **how}
                return start(*arguments, env={**os.environ, "TERM": "xterm", **(env or {})}, **streams), controller
            finally:
                os.close(terminal)

        yield started


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Return the folder with a container file of durable processors, and their module."""
    (tmp_path / "orders.py").write_text(ORDERS_MODULE, encoding="utf-8")
    (tmp_path / FILE).write_text(ORDERS, encoding="utf-8")
    return tmp_path


@pytest.fixture
def submit(iocflow: Any, orders: Path) -> Callable[..., int]:
    """Return a function that submits an order and returns its run's id."""

    def submit(po: str, *options: str, processor: str = "order", **seed: Any) -> int:
        data = json.dumps({"po": po, "customer": "ACME", **seed})
        done = iocflow("submit", FILE, processor, "--seed", data, "--json", *options)
        assert done.returncode == 0, done.stderr
        return int(json.loads(done.stdout)["id"])

    return submit


@pytest.fixture
def told(iocflow: Any, orders: Path) -> Callable[..., Any]:
    """Return a function that runs a command with `--json` and returns what it printed."""

    def told(*arguments: str) -> Any:
        done = iocflow(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return told
