"""The durable engine: what a durable processor hands its runs to, in the place of the inline loop."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from iocflow.durable.client import Client
from iocflow.durable.job import Job
from iocflow.durable.settings import WorkerSettings
from iocflow.durable.worker.worker import Worker
from iocflow.errors import LiveErrors, RecordedError, record_of
from iocflow.processor import Processor
from iocflow.run import Outcome, Run, Step, StepOutcome
from iocflow.store.contract import Entry, RunStatus, Store

_ROWS = ("step", "attempt", "mark", "begun", "memo", "doubt")
_OUTCOMES = {"ok": Outcome.COMPLETED, "stopped": Outcome.STOPPED, "cancelled": Outcome.INTERRUPTED}


class DurableEngine:
    """Submits the runs of durable processors, and works on them here when it is asked to."""

    def __init__(self, store: Store, jobs: Mapping[str, Job], settings: WorkerSettings | None = None) -> None:
        """Take the store and the processors by id."""
        self.store, self.jobs, self.settings = store, jobs, settings or WorkerSettings()
        self.client = Client(store, jobs)

    def launch(
        self,
        processor: Processor[Any],
        seed: Any,
        *,
        run_id: str,
        scheduled_for: datetime | None,
        idempotency_key: str,
        here: bool,
    ) -> Run[Any]:
        """Submit a run; with `here`, work until it is closed or suspended, and return what became of it.

        Else the run that is returned is SUBMITTED: any worker will do it. Its number is the seed's, where that has one.
        """
        own = bool(self.jobs[processor.name].durable.number)
        key = None if own else idempotency_key or run_id or uuid.uuid4().hex
        ticket = self.client.launch(processor.name, seed, key)
        if here:
            self.run_until_closed(ticket.id)
        return self.run_of(ticket.id, scheduled_for=scheduled_for)

    def run_until_closed(self, run: int) -> None:
        """Work in this process until a run is closed or suspended."""
        worker = Worker(self.store, self.jobs, self.settings)
        worker.start()
        try:
            self.client.wait(run)
        finally:
            worker.stop()

    def run_of(self, id: int, *, scheduled_for: datetime | None = None) -> Run[Any]:
        """Return a run's record, made of what is stored."""
        status = self.client.status(id)
        job, errors = self.jobs[status.processor], LiveErrors()
        run: Run[Any] = Run()
        run.of, run.id, run.scheduled_for = job.processor, str(id), scheduled_for
        run.ticks = [status.started or status.submitted]
        run.context = job.processor.new_context()
        stored = self.store.context(id)
        if stored is not None:
            job.codec.read(stored, run.context)
        rows = [entry for entry in self.store.history(id) if entry.kind in _ROWS]
        run.rows = [_step(entry, errors) for entry in _in_order(rows) if entry.kind == "step"]
        run.outcome = _outcome(status)
        if status.error is not None:
            run.error, run.raises = errors.live(json.loads(json.dumps(status.error))), bool(status.error.get("raises"))
        elif run.outcome is Outcome.FAILED:
            text = f"run {id} is {status.state}: {status.reason or status.outcome}"
            run.error = RecordedError(record_of(TimeoutError, text))
        return run


def _outcome(status: RunStatus) -> Outcome:
    if status.state in ("queued", "running", "waiting"):
        return Outcome.SUBMITTED
    return _OUTCOMES.get(status.outcome, Outcome.FAILED)


def _in_order(rows: Iterable[Entry], thread: str = "") -> Iterator[Entry]:
    """Return the rows of a thread of control, those of its branches one branch after the other, not as they came.

    Whatever kind a row is of: one of the thread itself stands before and after each fork.
    """
    depth = thread.count(".") + 1 if thread else 0

    def branch(row: Entry) -> int:
        return int(row.thread.split(".")[depth])

    for own, part in itertools.groupby(rows, lambda row: row.thread == thread):
        if own:
            yield from part
        else:
            for i, rest in itertools.groupby(sorted(part, key=branch), branch):
                yield from _in_order(rest, f"{thread}.{i}" if thread else str(i))


def _step(entry: Entry, errors: LiveErrors) -> Step:
    began = datetime.fromtimestamp(entry.at if entry.began is None else entry.began, UTC)
    ended = datetime.fromtimestamp(entry.at, UTC)
    error = errors.live({**entry.error}) if entry.error else None  # type: ignore[typeddict-item]
    return Step(entry.name, StepOutcome[entry.outcome], entry.attempts, began, max(began, ended), error, entry.result)
