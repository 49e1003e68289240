"""A store with a client, the processors that are wired, and workers as a test wants them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from iocflow import ProcessContext, Processor, SequenceProcessor
from iocflow.durable.client import Client
from iocflow.durable.engine import DurableEngine
from iocflow.durable.job import Durable, Job
from iocflow.durable.settings import WorkerSettings
from iocflow.durable.worker.idling import run_until_idle
from iocflow.durable.worker.worker import Worker
from iocflow.run import Run
from iocflow.store.contract import RunStatus, Store
from iocflow.store.postgres.connections import Address
from tests.contract.store.stores import Kit, SqliteKit

PATIENCE = 20.0
"""Seconds after which what should happen at once did not."""

FOR_EVER = 1e6
"""A lease that also lasts when a test moves the clock."""


class House:
    """One store and what works on it in this process; the clock is moved by `kit.advance`."""

    def __init__(self, kit: Kit) -> None:
        """Begin with no processor and no worker."""
        self.kit = kit
        self.store = kit.open()
        self.jobs: dict[str, Job] = {}
        self.client = Client(self.store, self.jobs)
        self._workers: list[Worker] = []

    # Wiring.

    def wire(self, processor: Processor[Any], **durable: Any) -> str:
        """Make a processor durable; return its id. Another one of that name takes its place for workers to come."""
        self.jobs[processor.name] = Job(processor, Durable(**durable))
        return processor.name

    def sequence(self, *steps: Any, context: Any, durable: Mapping[str, Any] | None = None, **options: Any) -> str:
        """Wire a sequence, named `job` unless the options say otherwise."""
        wired: Processor[Any] = SequenceProcessor(steps, context=context, **{"name": "job", **options})
        return self.wire(wired, **(durable or {}))

    def table(self, name: str) -> str:
        """Make a table of the domain, with one column, `what`; return its name, with its schema's if need be."""
        if not isinstance(self.kit, SqliteKit):
            name = f"{Address.parse(self.kit.url).schema}.{name}"
        self.kit.sql(f"create table {name}(what text)")
        return name

    # Working.

    def worker(self, *, store: Store | None = None, **settings: Any) -> Worker:
        """Start a worker with the processors as they are wired now; it is stopped when the test has ended."""
        worker = self.unstarted(store=store, **settings)
        worker.start()
        self._workers.append(worker)
        return worker

    def unstarted(self, *, store: Store | None = None, **settings: Any) -> Worker:
        """Return a worker that is not started."""
        given = {"threads": 4, "lease": FOR_EVER, "tick": 0.02, **settings}
        return Worker(store or self.store, dict(self.jobs), WorkerSettings(**given))

    def work(self, **settings: Any) -> None:
        """Work until nothing is ready."""
        run_until_idle(self.unstarted(**settings))

    def outlast(self, worker: Worker, lease: float = 30.0) -> None:
        """Move the clock beyond the lease of a worker as soon as it has written all, and take its runs from it."""
        self.eventually(lambda: not worker._pending)
        with worker._lead:  # so that it cannot show life in between
            self.kit.advance(lease + 1)
            # Not while its own sweep, which began before, looks at the workers.
            self.eventually(lambda: self.store.sweep(deliveries=5).workers == 1)

    def close(self) -> None:
        """Stop the workers, let the doctor look, and close the store."""
        for worker in self._workers:
            worker.stop(PATIENCE)
        self.kit.close()

    # Looking.

    def submit(self, processor: str = "job", seed: Any = None, **terms: Any) -> int:
        """Submit a run; return its id."""
        return self.client.submit(processor, seed, **terms).id

    def wait(self, run: int) -> RunStatus:
        """Return the status of a run that is closed or suspended."""
        return self.client.wait(run, timeout=PATIENCE)

    def wait_all(self, runs: Iterable[int]) -> list[str]:
        """Return the states of runs that are closed or suspended."""
        return [self.wait(run).state for run in runs]

    def until(self, run: int, state: str) -> RunStatus:
        """Return the status of a run once it is in a state."""
        return self.eventually(lambda: status if (status := self.client.status(run)).state == state else None)

    @staticmethod
    def eventually(look: Callable[[], Any]) -> Any:
        """Return what `look` returns as soon as that is something.

        Raises:
            TimeoutError: It never was.
        """
        end = time.monotonic() + PATIENCE
        while not (found := look()):
            if time.monotonic() > end:
                raise TimeoutError("it never came")
            time.sleep(0.002)
        return found

    def state(self, run: int) -> str:
        """Return the state of a run."""
        return self.client.status(run).state

    def run(self, run: int) -> Run[Any]:
        """Return the record of a run."""
        return DurableEngine(self.store, self.jobs).run_of(run)

    def context(self, run: int) -> Any:
        """Return the context of a run as it was recorded last."""
        return self.run(run).context

    def trail(self, run: int) -> str:
        """Return the trail of a run in short: a row is its path, with the outcome unless DONE, and attempts."""
        rows = []
        for step in self.run(run).steps:
            attempts = f" x{step.attempts}" if step.attempts > 1 else ""
            outcome = f" {step.outcome.name}{attempts}" if step.outcome.name != "DONE" or attempts else ""
            rows.append(step.activity + outcome)
        return ", ".join(rows)

    def kinds(self, run: int) -> list[str]:
        """Return the kinds of the entries of a run's journal, which are numbered without a gap."""
        history = self.client.history(run)
        assert [entry.number for entry in history] == list(range(1, len(history) + 1))
        return [entry.kind for entry in history]


class Ledger:
    """A foreign system: it notes every call in order, and applies each key once."""

    def __init__(self) -> None:
        """Begin empty."""
        self.calls: list[tuple[str, Any]] = []

    def note(self, context: ProcessContext, what: Any = None) -> None:
        """Note a call of the activity under way; appending is atomic."""
        self.calls.append((context.step.idempotency_key, what))

    @property
    def whats(self) -> list[Any]:
        """What was noted, in order."""
        return [what for _, what in self.calls]

    @property
    def effects(self) -> int:
        """How many different keys were seen."""
        return len({key for key, _ in self.calls})
