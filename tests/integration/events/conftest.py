"""Queues of real brokers, and a launcher on one."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from iocflow.context import ProcessContext
from iocflow.events.address import Address
from iocflow.events.broker import BrokerSource
from iocflow.events.broker_options import BrokerOptions
from iocflow.events.launcher import EventLauncher
from iocflow.events.source import EventSource
from iocflow.launch.clock import SystemClock
from iocflow.launch.counters import Counters
from iocflow.launch.exit_codes import ExitCode
from iocflow.launch.host import DaemonHost
from iocflow.launch.settings import DaemonSettings
from iocflow.sequence import SequenceProcessor
from tests.broker import AMQP, REDIS, Proxy, Queue, eventually, proxied, reachable
from tests.inbox import Inbox, inboxes

PATIENT = 30.0


class Seeded(ProcessContext):
    """A context that takes any seed."""

    seed_data: Any


class Bench:
    """A host and a processor whose runs can be held up; what a run saw is in `seen`."""

    def __init__(self, pool: int = 4) -> None:
        self.given_up: list[tuple[ExitCode, str]] = []
        self.counters = {"x": Counters(), "y": Counters()}
        self.host = DaemonHost(
            SystemClock(),
            DaemonSettings(pool=pool),
            self.counters,
            limits={},
            mask=str,
            give_up=lambda code, why: self.given_up.append((code, why)),
            changed=lambda: None,
        )
        self.host.pool.start()
        self.processor: Any = SequenceProcessor([self.act], context=Seeded, name="p")
        self.seen: list[Any] = []
        self.begun: list[Any] = []
        self.keys: list[str] = []
        self.go = threading.Event()
        self.go.set()
        self.launchers: list[EventLauncher] = []

    def act(self, context: Seeded) -> None:
        self.begun.append(context.seed_data)
        self.keys.append(context.step.idempotency_key)
        assert self.go.wait(PATIENT)
        if context.seed_data == "bad":
            raise ValueError("bad it is")
        self.seen.append(context.seed_data)

    def start(self, source: EventSource, name: str = "x") -> EventLauncher:
        """Start a launcher on a source."""
        launcher = EventLauncher(name, source, self.processor)
        launcher.start(self.host)
        self.launchers.append(launcher)
        return launcher

    def counts(self) -> dict[str, int]:
        """Return what was counted, without noughts."""
        return {name: number for name, number in self.counters["x"].as_dict().items() if number}

    def finish(self) -> None:
        """Stop as the daemon does."""
        self.go.set()
        for launcher in self.launchers:
            launcher.stop()
        self.host.pool.close()
        for launcher in self.launchers:
            assert launcher.finish(self.host.clock.monotonic() + PATIENT)
        self.launchers.clear()

    def times(self) -> Counter[Any]:
        """Return how often each seed's run began."""
        return Counter(self.begun)


@pytest.fixture
def running() -> list[Bench]:
    """Return the benches that are to be stopped before their queue is deleted."""
    return []


@pytest.fixture
def benches(running: list[Bench]) -> Callable[..., Bench]:
    """Return a function that makes a bench; it is stopped at the end."""

    def make(pool: int = 4) -> Bench:
        running.append(Bench(pool))
        return running[-1]

    return make


@pytest.fixture
def bench(benches: Callable[..., Bench]) -> Bench:
    """Return a bench with a pool of four."""
    return benches()


@pytest.fixture
def queue(running: list[Bench]) -> Iterator[Queue]:
    """Return a queue of RabbitMQ that is the test's own."""
    if not reachable(AMQP):
        pytest.skip(f"no broker answers at {AMQP}")
    made = Queue(AMQP, f"iocflow-test-{uuid.uuid4().hex[:12]}")
    yield made
    for bench in running:
        bench.finish()
    made.close()


@pytest.fixture
def proxy(queue: Queue) -> Iterator[Proxy]:
    """Return a proxy in front of RabbitMQ."""
    with proxied(queue.url) as made:
        yield made


@pytest.fixture
def redis_address(running: list[Bench]) -> Iterator[str]:
    """Return the address of a queue in Redis that is the test's own."""
    if not reachable(REDIS):
        pytest.skip(f"no Redis answers at {REDIS}")
    import redis  # noqa: PLC0415

    name = f"iocflow-test-{uuid.uuid4().hex[:12]}"
    yield f"{REDIS}?queue={name}"
    for bench in running:
        bench.finish()
    client = redis.Redis.from_url(REDIS)
    client.delete(name, f"{name}.dead")
    client.close()


@pytest.fixture
def inbox(postgres: str, running: list[Bench]) -> Iterator[Inbox]:
    """Return a table that is the test's own."""
    with inboxes(postgres) as made:
        yield made
        for bench in running:
            bench.finish()


def source(address: str, **changes: Any) -> BrokerSource:
    """Return the source at an address, with options that no address may have."""
    options = BrokerOptions.of(Address.parse(address))
    return BrokerSource(replace(options, **changes))


__all__ = ["Bench", "eventually", "source"]
