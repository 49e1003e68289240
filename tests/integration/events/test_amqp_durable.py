"""RabbitMQ and a store: every message is one run, whatever is cut or killed in between."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from iocflow.container import App
from iocflow.context import ProcessContext
from iocflow.durable.client import Client
from iocflow.events.publishing.broker import BrokerPublisher
from iocflow.sequence import SequenceProcessor
from tests import rabbitmq_server
from tests.broker import Proxy, Queue, eventually
from tests.integration.events.conftest import Bench, source
from tests.integration.events.daemon import Daemon

pytestmark = pytest.mark.service("amqp")


class Word(ProcessContext):
    """A context that can be stored."""

    seed_data: str


@pytest.fixture
def daemon(tmp_path: Path, queue: Queue, proxy: Proxy) -> Iterator[Daemon]:
    """Return a daemon whose connection goes through the proxy; it is killed in the end."""
    made = Daemon(tmp_path, f"{proxy.url}?queue={queue.name}")
    yield made
    if made.process is not None and made.process.poll() is None:
        made.kill()


def numbers(first: int, last: int) -> dict[str, bytes]:
    """Return messages by their ids."""
    return {f"m{n}": json.dumps({"n": n}).encode() for n in range(first, last)}


def test_two_thousand_messages_through_cuts(daemon: Daemon, queue: Queue, proxy: Proxy) -> None:
    """The connection is cut several times under load: each message is one run, with its effects once."""
    queue.send_many(numbers(0, 2000))
    daemon.start()
    for part in range(1, 5):
        eventually(lambda part=part: len(daemon.noted()) >= 300 * part, 120)
        assert proxy.cut() == 1
    eventually(lambda: len(set(daemon.noted())) == 2000, 120)
    eventually(lambda: daemon.states() == {"completed": 2000}, 60)
    daemon.stop()
    assert sorted(daemon.noted()) == daemon.effects() == list(range(2000))
    assert (queue.ready(), queue.ready(queue.dead)) == (0, 0)
    assert daemon.log().count("was lost") >= 4


def test_a_daemon_that_is_killed_under_load(daemon: Daemon, queue: Queue) -> None:
    """Killed and started again several times, it loses no message, and does what is transactional once."""
    queue.send_many(numbers(0, 600))
    for part in range(1, 4):
        daemon.start()
        eventually(lambda part=part: len(daemon.noted()) >= 100 * part, 60)
        daemon.kill()
    daemon.start()
    eventually(lambda: queue.ready() == 0 and daemon.states() == {"completed": 600}, 90)
    daemon.stop()
    assert daemon.effects() == list(range(600))
    assert set(daemon.noted()) == set(range(600))
    assert queue.ready() == 0


@pytest.mark.service("rabbitmq-server")
def test_a_broker_that_is_killed_under_load(tmp_path: Path) -> None:
    """Killed and started again twice with 3,000 messages, none is lost, and each one's effect is there once."""
    if not rabbitmq_server.server():
        pytest.skip("rabbitmq-server is not installed")
    with rabbitmq_server.own_broker(tmp_path / "rabbitmq") as broker:
        queue = Queue(broker.url, "numbers")
        queue.send_many(numbers(0, 3_000))
        (tmp_path / "app").mkdir()
        daemon = Daemon(tmp_path / "app", queue.address, steps="[.note]")
        daemon.start()
        for part in (1, 2):
            eventually(lambda part=part: len(daemon.noted()) >= 700 * part, 120)
            broker.kill()
            time.sleep(1)
            broker.start()
        eventually(lambda: len(set(daemon.noted())) == 3_000, 180)
        eventually(lambda: daemon.states() == {"completed": 3_000}, 60)
        queue.reconnect()
        eventually(lambda: queue.ready() == 0)
        daemon.stop()
        assert sorted(daemon.noted()) == list(range(3_000))
        assert queue.ready(queue.dead) == 0
        queue.close()


def test_a_message_that_kills_the_process(daemon: Daemon, queue: Queue) -> None:
    """Its run is put aside after three deaths, the messages before and behind it are done, and it can be looked at."""
    queue.send_many({**numbers(0, 30), "deadly": b'{"n": -1, "kills": 1}', **numbers(30, 60)})
    for _ in range(3):
        daemon.start()
        eventually(daemon.died, 60)
    daemon.start()
    eventually(lambda: daemon.states() == {"completed": 60, "suspended": 1}, 60)
    daemon.stop()
    assert daemon.effects() == list(range(60))
    command = [str(Path(sys.executable).with_name("iocflow")), "dead", "list", "app.yaml", "--json"]
    done = subprocess.run(command, cwd=daemon.folder, env={**os.environ, "SOURCE": "folder:x"}, stdout=-1, check=True)
    (dead,) = json.loads(done.stdout)
    assert dead["number"].endswith("#deadly")
    assert queue.ready() == 0


@pytest.fixture
def serve(tmp_path: Path, bench: Bench) -> Callable[[Any], Client]:
    """Return a function that entrusts the bench's processor, with another activity, to a store, and works on it."""

    def start(activity: Any) -> Client:
        bench.processor = SequenceProcessor([activity], context=Word, name="p")
        app = App(bench.processor, store=f"sqlite:///{tmp_path}/app.db")
        worker = app.worker(threads=2)
        worker.start()
        stop = bench.finish

        def finish() -> None:
            stop()
            if bench.processor is not None:
                worker.stop()
                app.close()
                bench.processor = None

        bench.finish = finish  # type: ignore[method-assign]
        return app.client

    return start


def test_a_message_that_comes_twice_is_one_run(bench: Bench, queue: Queue, serve: Callable[[Any], Client]) -> None:
    """The same id with the same data is the same run; with other data it is a dead letter, which tells why."""
    client = serve(bench.act)
    queue.send(b'"one"', b'"one"', message_id="m1")
    bench.start(source(queue.address))
    eventually(lambda: bench.counts().get("submitted", 0) + bench.counts().get("completed", 0) == 2)
    queue.send(b'"two"', message_id="m1")
    eventually(lambda: queue.ready(queue.dead) == 1)
    eventually(lambda: [run.state for run in client.runs()] == ["completed"])
    assert bench.seen == ["one"]
    (letter,) = queue.letters()
    assert "ConflictError" in json.loads(letter.properties["application_headers"]["x-iocflow-dead"])["reason"]


def test_k8(bench: Bench, queue: Queue, serve: Callable[[Any], Client]) -> None:
    """K8: an event that a relay sent again, having died before it noted that, is one run of the receiver."""
    client = serve(bench.act)
    publisher = BrokerPublisher.at(queue.address)
    for _ in range(2):
        publisher.publish("e1", b'{"specversion":"1.0","id":"e1","source":"/shop","type":"t","data":"one"}')
    publisher.close()
    assert queue.ready() == 2
    bench.start(source(queue.address))
    eventually(lambda: queue.ready() == 0 and [run.state for run in client.runs()] == ["completed"])
    bench.finish()
    assert (bench.seen, queue.ready(), queue.ready(queue.dead)) == (["one"], 0, 0)


def test_a_message_of_a_run_that_failed_already(bench: Bench, queue: Queue, serve: Callable[[Any], Client]) -> None:
    """Brought again, it is acknowledged: its run is on record, and whoever looks after the store sees to it."""
    client = serve(bench.act)
    queue.send(b'"bad"', message_id="m1")
    bench.start(source(queue.address))
    eventually(lambda: [run.state for run in client.runs()] == ["failed"])
    queue.send(b'"bad"', message_id="m1")
    queue.send(b'"next"', message_id="m2")
    eventually(lambda: bench.seen == ["next"])
    eventually(lambda: queue.ready() == 0)
    bench.finish()
    assert (queue.ready(), queue.ready(queue.dead), bench.times()["bad"]) == (0, 0, 1)
