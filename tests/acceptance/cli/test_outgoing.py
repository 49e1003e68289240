"""Outgoing events of real processes: a relay that is killed while it sends loses none, and sends in order."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

MODULE = """
from iocflow import ProcessContext

class Work(ProcessContext):
    seed_data: int
    n: int = 0

def add(context: Work) -> None:
    context.n += 1
"""
FILE = """\
iocflow: 1
package: told
store: sqlite:///told.db
worker: {threads: 2, lease: 2s, tick: 200ms}
values: {to: "http://127.0.0.1:1/x"}
beans:
  add: {call: .add}
  tell: {class: iocflow.activities.PublishEvent, args: {to: "${to}", type: t, data: {seed: seed_data, n: n}}}
processors:
  job: {context: .Work, sequence: [add, tell, add, tell], durable: true}
"""


class Place:
    """A server that takes events, and kills the process that sends one when it is told to, before it answers."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.kill_at: dict[int, Callable[[], None]] = {}
        place = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                place.events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                kill = place.kill_at.pop(len(place.events), None)
                if kill is not None:
                    kill()
                    return
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/orders"


@pytest.fixture
def place() -> Iterator[Place]:
    place = Place()
    thread = threading.Thread(target=place.http.serve_forever, args=(0.01,))
    thread.start()
    yield place
    place.http.shutdown()
    thread.join()
    place.http.server_close()


@pytest.fixture
def file(shop: Path, iocflow: Any) -> str:
    """Return a container file with ten runs submitted."""
    (shop.parent / "told.py").write_text(MODULE, encoding="utf-8")
    (shop.parent / "told.yaml").write_text(FILE, encoding="utf-8")
    seeds = "\n".join(map(str, range(10)))
    (shop.parent / "seeds.jsonl").write_text(seeds, encoding="utf-8")
    done = iocflow("submit", "told.yaml", "job", "--seeds", "@seeds.jsonl")
    assert done.returncode == 0, done.stderr
    return "told.yaml"


def test_a_relay_that_is_killed(file: str, place: Place, start: Any, iocflow: Any) -> None:
    """The event under way is sent again with its id, maybe the last ones before it too; each run's are in order."""
    options = ("--set", f"to={place.url}")
    worker = start("worker", file, *options)
    killed = threading.Event()

    def kill() -> None:
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait(20)
        killed.set()

    place.kill_at[7] = kill
    assert killed.wait(20)
    before = len(place.events)
    done = iocflow("worker", file, "--until-idle", *options)
    assert (done.returncode, done.stdout) == (0, "no run is ready\n"), done.stderr
    times = Counter(event["id"] for event in place.events)
    assert len(times) == 20
    again = {id for id, number in times.items() if number > 1}
    assert place.events[before - 1]["id"] in again <= {event["id"] for event in place.events[:before]}
    assert len({json.dumps(event, sort_keys=True) for event in place.events}) == 20
    for seed in range(10):
        told = [event["data"]["n"] for event in place.events if event["data"]["seed"] == seed]
        assert list(dict.fromkeys(told)) == [1, 2]


def test_a_place_that_is_away(file: str, place: Place, iocflow: Any, told: Callable[..., Any]) -> None:
    """The runs are done all the same; what could not be sent is told, kept, and sent by the next one."""
    done = iocflow("worker", file, "--until-idle")
    assert done.returncode == 0
    assert "no run is ready; 10 or more events could not be sent" in done.stdout
    assert "http://127.0.0.1:1/x takes no event" in done.stderr
    states = {run["state"] for run in told("runs", file)}
    assert states == {"completed"}
    again = iocflow("worker", file, "--until-idle", "--set", f"to={place.url}")
    assert "10 or more events could not be sent" in again.stdout
    assert "nothing in this wiring sends to http://127.0.0.1:1/x" in again.stderr
