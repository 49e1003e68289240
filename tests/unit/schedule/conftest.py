"""Time that stands still until a test moves it, and a timer that turns when a test says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from unit.schedule.kit import Work

from iocflow.launch.counters import Counters
from iocflow.launch.host import DaemonHost
from iocflow.launch.settings import DaemonSettings
from iocflow.schedule.ledger import Ledger
from iocflow.schedule.timer import Timer
from iocflow.store.launchers import Launchers

START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


class Watch:
    """Both clocks. The wall clock is the process's own, stopped; the monotonic one is a number."""

    def __init__(self, traveller: time_machine.Traveller) -> None:
        self._traveller = traveller
        self._monotonic = 1000.0

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return self._monotonic

    def pass_by(self, seconds: float) -> None:
        """Let time go by, on both clocks."""
        self._traveller.shift(seconds)
        self._monotonic += seconds

    def set_wall(self, by: timedelta) -> None:
        """Set the wall clock, while no time goes by."""
        self._traveller.shift(by)


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Return clocks that stand at noon of a Monday."""
    with time_machine.travel(START, tick=False) as traveller:
        yield Watch(traveller)


@pytest.fixture
def host_with(watch: Watch) -> Iterator[Callable[..., DaemonHost]]:
    """Return a function that makes a host for launchers of the given names; its timer and ledger have no threads."""
    made: list[DaemonHost] = []

    def make(*names: str, pool: int = 4, book: Launchers | None = None) -> DaemonHost:
        host = DaemonHost(
            watch,
            DaemonSettings(pool=pool),
            {name: Counters() for name in names},
            limits={},
            mask=str,
            give_up=lambda code, why: None,
            changed=lambda: None,
            book=book,
        )
        host.pool.start()
        timer = Timer(host)
        timer.prepare()
        # The timer's thread would turn whenever it likes; here the test turns it.
        timer.start = lambda: None  # type: ignore[method-assign]
        ledger = Ledger(host)
        made.append(host)
        service: Callable[[Any], Any] = {Timer: timer, Ledger: ledger}.__getitem__
        host.service = service  # type: ignore[method-assign]
        return host

    yield make
    for host in made:
        host.service(Timer).stop()
        host.pool.close()


@pytest.fixture
def timer(host_with: Callable[..., DaemonHost]) -> Timer:
    """Return a timer that turns when the test says so."""
    return host_with().service(Timer)


@pytest.fixture
def work() -> Work:
    """Return an activity that notes its seeds, in a processor."""
    return Work()
