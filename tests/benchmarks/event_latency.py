"""From an event in RabbitMQ to the first activity of its run: p50 and p99, beside the raw limit of the client library.

    python tests/benchmarks/event_latency.py               broker at IOCFLOW_TEST_AMQP, else on this machine
    python tests/benchmarks/event_latency.py --seconds 10

Events are sent one by one at a rate that leaves everybody idle in between, each with the time when it was sent, by
another process's clock of the same machine. Ratios are medians over the median of the raw limit, all of one sitting.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import amqp  # type: ignore[import-untyped]
from events import PATIENCE, THREADS, URL, Small, connect, filled
from measuring import parser

from iocflow import App, SequenceProcessor
from iocflow.events import on_event
from iocflow.launch import DaemonSettings
from iocflow.launch.daemon import Daemon

RATE = 50.0
"""Events a second."""
WARM = 10
"""How many events do not count: the first ones find nothing ready."""


class Waits:
    """An activity that notes how long its event was on the way."""

    def __init__(self, most: int) -> None:
        self.most, self.seconds = most, []
        self.done = threading.Event()

    seconds: list[float]

    def __call__(self, context: Small) -> None:
        """Note it."""
        self.take(context.seed_data)

    def take(self, sent: int) -> None:
        """Note what was sent at a time in nanoseconds."""
        self.seconds.append((time.time_ns() - sent) / 1e9)
        if len(self.seconds) == self.most:
            self.done.set()


def send(queue: str, messages: int) -> None:
    """Send so many events, evenly."""
    with contextlib.closing(connect()) as connection:
        channel, began = connection.channel(), time.perf_counter()
        for n in range(messages):
            time.sleep(max(0.0, began + n / RATE - time.perf_counter()))
            channel.basic_publish(amqp.Message(str(time.time_ns()), message_id=f"{queue}-{n}"), "", queue)


@contextlib.contextmanager
def raw(queue: str, waits: Waits) -> Iterator[None]:
    """Consume and acknowledge, and nothing else."""

    def consume() -> None:
        with contextlib.closing(connect()) as connection:
            channel = connection.channel()

            def take(message: Any) -> None:
                waits.take(int(message.body))
                channel.basic_ack(message.delivery_tag)

            channel.basic_consume(queue, callback=take)
            while not waits.done.is_set():
                connection.drain_events(timeout=PATIENCE)

    thread = threading.Thread(target=consume)
    thread.start()
    yield
    thread.join()


@contextlib.contextmanager
def iocflow(queue: str, waits: Waits, *, durable: bool) -> Iterator[None]:
    """Run a processor for each message."""
    processor = SequenceProcessor([waits.__call__], context=Small, name="one")
    launcher = on_event(f"{URL}?queue={queue}", processor)
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/runs.db" if durable else None
        with App(processor, launchers=[launcher], store=store) as app:
            daemon = Daemon(app, settings=DaemonSettings(pool=THREADS), companions=app.companions())
            thread = threading.Thread(target=daemon.run)
            thread.start()
            try:
                yield
            finally:
                daemon.stop()
                thread.join()


def main() -> None:
    """Measure one after the other."""
    options = parser("From an event to the first activity.")
    options.set_defaults(seconds=4.0)
    messages = max(int(RATE * options.parse_args().seconds), 20) + WARM
    contestants: dict[str, Callable[[str, Waits], Any]] = {
        "raw consume": raw,
        "iocflow": lambda queue, waits: iocflow(queue, waits, durable=False),
        "iocflow, durable on SQLite": lambda queue, waits: iocflow(queue, waits, durable=True),
    }
    limit = 0.0
    for name, contestant in contestants.items():
        waits = Waits(messages)
        with filled(0) as queue, contestant(queue, waits):
            send(queue, messages)
            if not waits.done.wait(PATIENCE):
                raise TimeoutError(f"{name}: {len(waits.seconds)} of {messages} events came in {PATIENCE} s")
        found = [1000 * one for one in waits.seconds[WARM:]]
        p50, p99 = statistics.median(found), statistics.quantiles(found, n=100)[98]
        limit = limit or p50
        print(f"{name:32} p50 {p50:7.2f} ms   p99 {p99:7.2f} ms   x{p50 / limit:.1f}")


if __name__ == "__main__":
    main()
