"""A store as a worker that is to be killed sees it: nothing is done by the clock, and its writes are places."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from iocflow.store.contract import Batch, Receipt, StepTransaction, Store, Swept
from tests.crash.points import Points

_WRITES = ("submit", "signal", "plan", "register", "commit", "retire")


class Stage:
    """Passes everything on to a store, but for heartbeat, tick and listening, so that the writes are always the same.

    The return from each write is a place, as it is right after the commit.
    """

    def __init__(self, store: Store, points: Points) -> None:
        """Take the store."""
        self._store = store
        self._points = points
        self._roused = threading.Event()

    def __getattr__(self, name: str) -> Any:
        """Return what the store has by that name."""
        there = getattr(self._store, name)
        if name not in _WRITES:
            return there

        def write(*arguments: Any, **options: Any) -> Any:
            result = there(*arguments, **options)
            self._points.reach(f"after {name}")
            return result

        return write

    @contextmanager
    def begin(self, worker: int, *, lease: float) -> Iterator[StepTransaction]:
        """Begin the transaction of one step."""
        with self._store.begin(worker, lease=lease) as transaction:
            commit = transaction.commit

            def committed(batch: Batch) -> Receipt:
                receipt = commit(batch)
                self._points.reach("after the step's commit")
                return receipt

            transaction.commit = committed  # type: ignore[method-assign]
            yield transaction

    def tick(self, deliveries: int) -> Swept:
        """Sweep, by hand."""
        return self._store.sweep(deliveries=deliveries)

    def sweep(self, *, deliveries: int, by: int = 0) -> Swept:
        """Do nothing: that is for `tick`."""
        return Swept(0, 0, 0, 0)

    def beat(self, worker: int, *, lease: float) -> frozenset[int]:
        """Do nothing: no heart beats within a test that takes no time on the store's clock."""
        return frozenset()

    def listen(self, timeout: float) -> None:
        """Wait, without a look at the store."""
        if self._roused.wait(timeout):
            self._roused.clear()

    def rouse(self) -> None:
        """Let `listen` return."""
        self._roused.set()
