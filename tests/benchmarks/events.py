"""Events a second from RabbitMQ to finished runs of one activity, beside the raw limit of the same client library.

    python tests/benchmarks/events.py                      broker at IOCFLOW_TEST_AMQP, else on this machine
    python tests/benchmarks/events.py --seconds 5 --rounds 5

The messages lie in the queue before a turn begins; a turn is measured from its first message to its last one. Celery
and Dramatiq take part where they are installed (`pip install 'iocflow[bench]'`): one process with as many threads, late
acknowledgement, and no results kept. Ratios are events a second over those of the raw limit, both of one sitting.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import amqp  # type: ignore[import-untyped]
from measuring import parser

from iocflow import App, ProcessContext, SequenceProcessor
from iocflow.events import on_event
from iocflow.launch import DaemonSettings
from iocflow.launch.daemon import Daemon

URL = os.environ.get("IOCFLOW_TEST_AMQP", "amqp://guest:guest@127.0.0.1:5672//")
THREADS = 8
PATIENCE = 120.0


class Small(ProcessContext):
    """A context of a few bytes."""

    seed_data: int


class Counter:
    """An activity that counts, and notes when the first and the last event came."""

    def __init__(self, most: int) -> None:
        self.most, self.count, self.began, self.ended = most, 0, 0.0, 0.0
        self.done = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, context: Any = None) -> None:
        """Count."""
        with self._lock:
            self.began = self.began or time.perf_counter()
            self.count += 1
            if self.count == self.most:
                self.ended = time.perf_counter()
                self.done.set()

    def rate(self) -> float:
        """Return events a second, once all have come."""
        if not self.done.wait(PATIENCE):
            raise TimeoutError(f"{self.count} of {self.most} events came in {PATIENCE} s")
        return self.most / (self.ended - self.began)


def connect() -> Any:
    """Return a connection of the client library."""
    parts = urlsplit(URL)
    vhost = parts.path[1:] or "/"
    connection = amqp.Connection(f"{parts.hostname}:{parts.port}", parts.username, parts.password, virtual_host=vhost)
    connection.connect()
    return connection


@contextlib.contextmanager
def filled(messages: int) -> Iterator[str]:
    """Lend a queue with so many messages."""
    name = f"iocflow-bench-{uuid.uuid4().hex[:8]}"
    with contextlib.closing(connect()) as connection:
        channel = connection.channel()
        channel.queue_declare(name, durable=True, auto_delete=False)
        channel.tx_select()
        for n in range(messages):
            channel.basic_publish(amqp.Message(str(n), delivery_mode=2, message_id=f"{name}-{n}"), "", name)
        channel.tx_commit()
        try:
            yield name
        finally:
            for queue in (name, f"{name}.dead"):
                channel.queue_delete(queue)


def raw(messages: int) -> float:
    """Consume and acknowledge, and nothing else."""
    counter = Counter(messages)
    with filled(messages) as queue, contextlib.closing(connect()) as connection:
        channel = connection.channel()
        channel.basic_qos(0, THREADS, False)

        def take(message: Any) -> None:
            counter()
            channel.basic_ack(message.delivery_tag)

        channel.basic_consume(queue, callback=take)
        while not counter.done.is_set():
            connection.drain_events(timeout=PATIENCE)
        return counter.rate()


def iocflow(messages: int, *, durable: bool) -> float:
    """Run a processor of one activity for each message."""
    counter = Counter(messages)
    processor = SequenceProcessor([counter.__call__], context=Small, name="one")
    with filled(messages) as queue, tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/runs.db" if durable else None
        launcher = on_event(f"{URL}?queue={queue}", processor)
        with App(processor, launchers=[launcher], store=store) as app:
            daemon = Daemon(app, settings=DaemonSettings(pool=THREADS), companions=app.companions())
            thread = threading.Thread(target=daemon.run)
            thread.start()
            try:
                return counter.rate()
            finally:
                daemon.stop()
                thread.join()


def peer(name: str, messages: int) -> float:
    """Let another framework's worker do as many tasks of the same effect."""
    script, queue = Path(__file__).with_name("events_peers.py"), f"iocflow-bench-{uuid.uuid4().hex[:8]}"
    command = [sys.executable, str(script), name, str(messages), str(THREADS), URL, queue]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * PATIENCE)
    with contextlib.closing(connect()) as connection:
        for suffix in ("", ".DQ", ".XQ"):  # of Dramatiq, its delayed and its dead messages
            connection.channel().queue_delete(queue + suffix)
    rate = re.search(r"^rate (.+)$", done.stdout, re.M)
    if done.returncode or rate is None:
        raise RuntimeError(f"{name} ended with {done.returncode}: {done.stderr[-2000:]}")
    return float(rate[1])


def contestants() -> dict[str, Callable[[int], float]]:
    """Return what takes part, the raw limit first."""
    found: dict[str, Callable[[int], float]] = {
        "raw consume and acknowledge": raw,
        "iocflow": lambda messages: iocflow(messages, durable=False),
        "iocflow, durable on SQLite": lambda messages: iocflow(messages, durable=True),
    }
    for name in ("celery", "dramatiq"):
        if importlib.util.find_spec(name):
            found[name] = lambda messages, name=name: peer(name, messages)
    return found


def main() -> None:
    """Measure in turns, and print the medians."""
    options = parser("Events a second from RabbitMQ.")
    options.set_defaults(rounds=3, seconds=2.0)
    given = options.parse_args()
    messages = max(int(1500 * given.seconds), 50)
    taking_part = contestants()
    rates: dict[str, list[float]] = {name: [] for name in taking_part}
    for _ in range(given.rounds):
        for name, contestant in taking_part.items():
            rates[name].append(contestant(messages))
    for name, found in rates.items():
        ratio = statistics.median(
            one / limit for one, limit in zip(found, rates["raw consume and acknowledge"], strict=True)
        )
        print(f"{name:32} {statistics.median(found):9.0f} events/s   x{ratio:.2f}")


if __name__ == "__main__":
    main()
