"""What the tests of scheduled launchers share: an activity that can be held up, and looking at a host's counters."""

from __future__ import annotations

import threading
from collections.abc import Callable

from iocflow.context import ProcessContext
from iocflow.launch.host import DaemonHost
from iocflow.schedule.polling import PollingLauncher
from iocflow.schedule.timer import Timer
from iocflow.sequence import SequenceProcessor

HostWith = Callable[..., DaemonHost]


class Work:
    """An activity that a test can hold up."""

    def __init__(self) -> None:
        self.seeds: list[object] = []
        self.keys: list[str] = []
        self.go = threading.Event()
        self.go.set()
        self.entered = threading.Semaphore(0)
        self.behaviour: Callable[[ProcessContext], None] = lambda context: None
        self.processor = SequenceProcessor([self.act], context=ProcessContext, name="fares")

    def act(self, context: ProcessContext) -> None:
        self.seeds.append(vars(context).get("seed_data"))
        self.keys.append(context.step.idempotency_key)
        self.entered.release()
        assert self.go.wait(10)
        self.behaviour(context)


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds that the pool's threads bring about; time in `watch` stands still meanwhile."""
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError("it never came about")


def started(host: DaemonHost, launcher: PollingLauncher) -> Timer:
    """Start a launcher and return its timer."""
    launcher.start(host)
    timer: Timer = host.service(Timer)
    return timer


def counts(host: DaemonHost, name: str) -> dict[str, int]:
    """Return what was counted, without noughts."""
    return {name: number for name, number in host.counters(name).as_dict().items() if number}
