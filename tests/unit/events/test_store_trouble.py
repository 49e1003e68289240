"""Events whose runs are durable, while their store is in trouble."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from iocflow.context import ProcessContext
from iocflow.events import launcher as launching
from iocflow.events.launcher import EventLauncher
from iocflow.events.memory import MemorySource
from iocflow.launch.clock import SystemClock
from iocflow.launch.counters import Counters
from iocflow.launch.host import DaemonHost
from iocflow.launch.settings import DaemonSettings
from iocflow.launch.snapshot import LauncherState
from iocflow.run import Outcome, Run
from iocflow.sequence import SequenceProcessor
from iocflow.store.errors import StoreLostError


class Engine:
    """Takes runs as a store does, once it is well."""

    def __init__(self) -> None:
        self.well = threading.Event()
        self.asked: list[Any] = []
        self.taken: list[Any] = []

    def launch(self, processor: Any, seed: object, **asked: object) -> Run[Any]:
        self.asked.append(seed)
        if not self.well.is_set():
            raise StoreLostError("the server is gone")
        self.taken.append(seed)
        run: Run[Any] = Run()
        run.of, run.outcome, run.ticks, run.context = processor, Outcome.SUBMITTED, [0.0], processor.new_context()
        return run


def test_events_wait_for_the_store(
    eventually: Callable[[Callable[[], bool]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events are given back with growing pauses until the store takes them; none is lost, none is a dead letter."""
    monkeypatch.setattr(launching, "PAUSES", (0.02, 0.04))
    host = DaemonHost(
        SystemClock(),
        DaemonSettings(pool=4),
        {"x": Counters()},
        limits={},
        mask=str,
        give_up=lambda code, why: None,
        changed=lambda: None,
    )
    host.pool.start()
    processor: SequenceProcessor[Any] = SequenceProcessor([], context=ProcessContext, name="p")
    engine = Engine()
    processor.entrust(engine)
    source = MemorySource("m")
    launcher = EventLauncher("x", source, processor)
    launcher.start(host)
    for seed in ("a", "b", "c"):
        source.put(seed)
    eventually(lambda: launcher.state is LauncherState.RETRYING and len(engine.asked) > 6)
    assert "the server is gone" in launcher.trouble
    engine.well.set()
    eventually(lambda: sorted(engine.taken) == ["a", "b", "c"] and launcher.state is LauncherState.RUNNING)
    assert launcher.trouble == ""
    launcher.stop()
    host.pool.close()
    assert launcher.finish(host.clock.monotonic() + 10)
    counts = host.counters("x").as_dict()
    assert (counts["submitted"], counts["failed"]) == (3, 0)
    assert not source.dead
