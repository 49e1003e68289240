"""Hosts, waiting, and processors that a test can hold up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from iocflow.context import ProcessContext
from iocflow.launch.clock import SystemClock
from iocflow.launch.counters import Counters
from iocflow.launch.host import DaemonHost
from iocflow.launch.pool import Pool
from iocflow.launch.settings import DaemonSettings
from iocflow.sequence import SequenceProcessor


class Seeded(ProcessContext):
    """A context that takes any seed."""

    seed_data: Any


@pytest.fixture
def process() -> Callable[..., SequenceProcessor[Seeded]]:
    """Return a function that makes a processor of one activity."""
    return lambda act, name="p": SequenceProcessor([act], context=Seeded, name=name)


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Return a function that waits until a condition holds, five seconds at most."""

    def wait(condition: Callable[[], bool]) -> None:
        for _ in range(1000):
            if condition():
                return
            threading.Event().wait(0.005)
        raise AssertionError("it never came about")

    return wait


@pytest.fixture
def pools() -> Iterator[Callable[..., Pool]]:
    """Return a function that makes a started pool."""
    made: list[Pool] = []

    def make(size: int, limits: dict[str, int] | None = None) -> Pool:
        pool = Pool(size, SystemClock(), limits)
        pool.start()
        made.append(pool)
        return pool

    yield make
    for pool in made:
        pool.close()


@pytest.fixture
def host() -> Iterator[DaemonHost]:
    """Return a host for a launcher named `x`."""
    made = DaemonHost(
        SystemClock(),
        DaemonSettings(),
        {"x": Counters()},
        limits={},
        mask=str,
        give_up=lambda code, why: None,
        changed=lambda: None,
    )
    made.pool.start()
    yield made
    made.pool.close()
