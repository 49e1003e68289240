"""`iocflow serve` with an `http:` source, killed and restarted under its clients: each 202 is a run, once."""

from __future__ import annotations

import http.client
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

import pytest

from iocflow.store import open_store
from tests.web import PATIENT, ask, free_port

IOCFLOW = str(Path(sys.executable).with_name("iocflow"))

MODULE = """
import os
from dataclasses import dataclass

from iocflow import ProcessContext


@dataclass
class Order:
    number: int


class Shop(ProcessContext):
    seed_data: Order


def note(context: Shop) -> None:
    descriptor = os.open("journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{context.seed_data.number}\\n".encode())
    os.close(descriptor)
"""

CONTAINER = """
iocflow: 1
package: netshop
store: sqlite:///netshop.db
worker: {{lease: 1s, tick: 100ms, deliveries: 1000}}
processors:
  order: {{context: .Shop, sequence: [.note], durable: true}}
launchers:
  orders: {{processor: order, source: "http:{port}/orders"}}
"""


class Served:
    """The daemon in a process of its own, started again as often as it ended."""

    def __init__(self, folder: Path, log: IO[bytes]) -> None:
        self.folder = folder
        self.port = free_port()
        (folder / "netshop.py").write_text(MODULE, encoding="utf-8")
        (folder / "netshop.yaml").write_text(CONTAINER.format(port=self.port), encoding="utf-8")
        self._log = log
        self.start()

    def start(self) -> None:
        """Start the process and wait until it listens."""
        command = [IOCFLOW, "serve", "netshop.yaml"]
        self.process = subprocess.Popen(command, cwd=self.folder, stdout=self._log, stderr=self._log)
        end = time.monotonic() + PATIENT
        while not self._answers():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < end
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            return ask(self.port, "GET", "/orders").status == 405
        except OSError:
            return False

    def end(self, number: signal.Signals) -> int:
        """End the process and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENT)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """Return a running daemon."""
    with (tmp_path / "log").open("ab") as log:
        one = Served(tmp_path, log)
        try:
            yield one
        finally:
            one.process.kill()
            one.process.wait(PATIENT)


class Clients:
    """Threads that post orders, each until it is acknowledged, with the same key at every try."""

    def __init__(self, port: int, orders: int, threads: int = 8) -> None:
        self.port = port
        self.acknowledged: dict[int, str] = {}
        self.statuses: Counter[int] = Counter()
        self._numbers = iter(range(orders))
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._work) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while (number := self._next()) is not None:
            while not self._posted(number):
                time.sleep(0.02)

    def _next(self) -> int | None:
        with self._lock:
            return next(self._numbers, None)

    def _posted(self, number: int) -> bool:
        try:
            answer = ask(self.port, "POST", "/orders", {"number": number}, Idempotency_Key=f"k{number}")
        except (OSError, http.client.HTTPException):
            return False
        with self._lock:
            self.statuses[answer.status] += 1
            if answer.status == 202:
                self.acknowledged[number] = answer.json["run"]
        return answer.status == 202

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        end = time.monotonic() + 3 * PATIENT
        while not condition():
            assert time.monotonic() < end, (len(self.acknowledged), self.statuses)
            time.sleep(0.01)

    def finish(self) -> None:
        """Wait until all orders are acknowledged."""
        for thread in self._threads:
            thread.join(3 * PATIENT)
            assert not thread.is_alive(), self.statuses


def check(served: Served, clients: Clients, orders: int) -> None:
    """Every acknowledged order is one recorded run, which is done in the end, and its answers named that run."""
    with closing(open_store(f"sqlite:///{served.folder}/netshop.db")) as client:
        runs = client.runs(limit=10 * orders)
        assert len(runs) == orders
        found = {int(run.number.removeprefix("/orders#k")): str(run.id) for run in runs}
        assert found == clients.acknowledged
        clients.wait_for(lambda: all(run.state == "completed" for run in client.runs(limit=10 * orders)))
    noted = (served.folder / "journal").read_text().split()
    assert {int(line) for line in noted} == set(range(orders))


def test_restarted_under_load(served: Served) -> None:
    """Stopped and started while clients post, the daemon ends well each time, and every 202 is a run, once."""
    orders = 300
    clients = Clients(served.port, orders)
    for part in (1, 2, 3):
        clients.wait_for(lambda part=part: len(clients.acknowledged) >= part * 60)
        assert served.end(signal.SIGTERM) == 0
        served.start()
    clients.finish()
    check(served, clients, orders)
    assert set(clients.statuses) <= {202, 503}


def test_killed_in_the_middle(served: Served) -> None:
    """Killed again and again while clients post: what is sent again with its key is one run, the same."""
    orders = 300
    chance = random.Random(4)
    clients = Clients(served.port, orders)
    for part in (1, 2, 3, 4):
        clients.wait_for(lambda part=part: len(clients.acknowledged) >= part * 50)
        time.sleep(chance.uniform(0, 0.05))
        assert served.end(signal.SIGKILL) == -signal.SIGKILL
        served.start()
    clients.finish()
    check(served, clients, orders)
    assert set(clients.statuses) == {202}


def test_an_answer_that_was_lost(served: Served) -> None:
    """A client that was cut off before its answer finds its run under the same key after a kill."""
    body = json.dumps({"number": 7}).encode()
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENT)
    connection.request("POST", "/orders", body, {"Content-Type": "application/json", "Idempotency-Key": "k"})
    connection.close()
    end = time.monotonic() + PATIENT
    with closing(open_store(f"sqlite:///{served.folder}/netshop.db")) as client:
        while not client.runs():
            assert time.monotonic() < end
            time.sleep(0.01)
        served.end(signal.SIGKILL)
        served.start()
        again = ask(served.port, "POST", "/orders", {"number": 7}, Idempotency_Key="k")
        assert (again.status, again.json["run"]) == (202, str(client.runs()[0].id))
        assert len(client.runs()) == 1
