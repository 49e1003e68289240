"""A store that is lost for one call, whichever it is: the worker begins anew, and the run ends as if nothing were."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import iocflow.durable.worker.membership
from iocflow import ParallelSplitProcessor, ProcessContext, Processor, SequenceProcessor, activity
from iocflow.durable.engine import DurableEngine
from iocflow.durable.job import Job
from iocflow.durable.worker.worker import Worker, WorkerSettings
from iocflow.store.contract import Store
from iocflow.store.errors import StoreLostError
from tests.crash.benches import Bench, opened

LIMIT = 20.0


class Box(ProcessContext):
    seed_data: int = 0
    left: int = 0
    right: int = 0


def left(context: Box) -> None:
    context.left += 1


def right(context: Box) -> None:
    context.right += 1
    context.step.memo["right"] = context.right


def process() -> Processor[Any]:
    """Return a process that needs about everything of a store: its steps are of each mode, and it forks."""
    fork = ParallelSplitProcessor({"l": left, "r": [right, right]}, context=Box, name="split")
    written = activity(left, name="written", mode="transactional")
    return SequenceProcessor([left, written, fork, right], context=Box, name="main")


class Losing:
    """A store that is lost at the call of a number, before or after it was done."""

    def __init__(self, store: Store, at: int = 0, *, after: bool = False) -> None:
        """Take the store, and the number; 0 for never."""
        self._store, self._at, self._after = store, at, after
        self._lock = threading.Lock()
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        """Return what the store has by that name."""
        there = getattr(self._store, name)
        return self._counted(name, there) if callable(there) else there

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            with self._lock:
                self.calls.append(name)
                lost = len(self.calls) == self._at
            if lost and not self._after:
                raise StoreLostError("planted before")
            result = call(*arguments, **options)
            if lost:
                raise StoreLostError("planted after")
            return result

        return counted


def run(store: Store, number: int, losing: Losing) -> tuple[Any, ...]:
    """Do a run with a store that is lost at times; return what became of it."""
    main = process()
    engine = DurableEngine(losing, {"main": Job(main)}, WorkerSettings(threads=2, tick=0.05, lease=300.0))  # type: ignore[arg-type]
    id = DurableEngine(store, engine.jobs).client.submit("main", 1, number=str(number)).id
    losing.calls.clear()
    worker = Worker(losing, engine.jobs, engine.settings)  # type: ignore[arg-type]
    started = False
    while not started:
        try:
            worker.start()
            started = True
        except StoreLostError:
            pass  # as `start` says
    try:
        until = time.monotonic() + LIMIT
        while (status := store.status(id)) is not None and status.state not in ("completed", "failed", "suspended"):
            assert time.monotonic() < until, (losing.calls, status)
            time.sleep(0.001)
    finally:
        try:
            worker.stop()
        except StoreLostError:
            worker.stop()
    steps = [(one.thread, one.name, one.outcome) for one in store.history(id) if one.kind == "step"]
    return status.state, status.reason, sorted(steps), store.context(id)


def test_lost_at_every_call(bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Whichever call of the worker's fails once, before or after it was done, the run completes, each step once."""
    monkeypatch.setattr(iocflow.durable.worker.membership, "BACKOFF", (0.0,) * 5)
    caplog.set_level(logging.CRITICAL, "iocflow")
    store = opened(bench.url)
    calm = Losing(store)
    undisturbed = run(store, 0, calm)
    failures = []
    for at in range(1, len(calm.calls) + 1):
        for after in (False, True):
            losing = Losing(store, at, after=after)
            end = run(store, 2 * at + after, losing)
            if end != undisturbed:
                failures.append(f"{'after' if after else 'before'} call {at}, {losing.calls[at - 1 :][:1]}: {end}")
    found = list(store.doctor())
    store.close()
    assert not failures, f"undisturbed: {undisturbed}\n" + "\n".join(failures)
    assert found == []
