"""Every process of the table of behaviour is crashed at every commit, before it and after it, and ends all the same.

The crash is in this process: at a store call the engine is abandoned, or told that the store is lost. Of the few
processes that run into a bound after 1,000 steps only some commits are tried, more of them with IOCFLOW_CRASH_ALL.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from behaviour.composites import COMPOSITES
from behaviour.parts import Case, go_left, go_right, seq, split
from behaviour.sequences import SEQUENCES
from behaviour.test_engines import kind as kind_of
from behaviour.test_engines import row

import iocflow.durable.worker.membership
from iocflow.durable.engine import DurableEngine
from iocflow.durable.job import Job
from iocflow.durable.worker.worker import Worker, WorkerSettings
from iocflow.store.contract import Batch, Receipt, StepTransaction, Store
from iocflow.store.errors import StoreLostError
from iocflow.store.sqlite.store import SqliteStore

Way = Literal["abandoned", "lost"]
"""How a worker crashes: as if it were killed, or because it hears that the store is lost, and begins anew."""

Kind = Literal["leased", "transactional", "incident"]
"""How the activities of a process are done, all of them."""

CASES = [one for one in [*SEQUENCES, *COMPOSITES] if not (one.refused or one.timed)]
LEASE = 300.0
LIMIT = 20.0
MANY = 40
SAMPLE = 40 if os.environ.get("IOCFLOW_CRASH_ALL") else 1


class Abandoned(BaseException):
    """Ends the thread that it is raised in, without a word."""


class Failing:
    """A store that fails at the commit of a number, before it or after it, and when abandoned, from then on.

    Attributes:
        commits: How many commits there were that wrote something about a run.
    """

    def __init__(self, store: Store, way: Way, at: int = 0, *, after: bool = False) -> None:
        """Take the store, and the number; 0 for never."""
        self._store, self._way, self._at, self._after = store, way, at, after
        self._counting, self._calls = threading.Lock(), 0
        self.commits = 0
        self.failed = False

    @property
    def gone(self) -> bool:
        """Whether it was abandoned, with nobody inside: who came late would renew a lease that is to be over."""
        with self._counting:
            return self.failed and self._way == "abandoned" and not self._calls

    def __getattr__(self, name: str) -> Any:
        """Return what the store has by that name; it is called only while its user lives."""
        found = getattr(self._store, name)

        def call(*given: Any, **named: Any) -> Any:
            with self._inside():
                return found(*given, **named)

        return call if callable(found) else found

    def commit(self, worker: int, batch: Batch, *, lease: float) -> Receipt:
        """Commit, unless it is the one."""
        with self._inside():
            return self._do(lambda: self._store.commit(worker, batch, lease=lease), batch)

    @contextmanager
    def begin(self, worker: int, *, lease: float) -> Iterator[StepTransaction]:
        """Begin a transaction, whose commit is one like others."""
        with self._inside(), self._store.begin(worker, lease=lease) as transaction:
            commit = transaction.commit
            transaction.commit = lambda batch: self._do(lambda: commit(batch), batch)  # type: ignore[method-assign]
            yield transaction

    @contextmanager
    def _inside(self) -> Iterator[None]:
        with self._counting:
            if self.failed and self._way == "abandoned":
                raise Abandoned
            self._calls += 1
        try:
            yield
        finally:
            with self._counting:
                self._calls -= 1

    def _do(self, commit: Callable[[], Receipt], batch: Batch) -> Receipt:
        writes = bool(batch.records or batch.endings or batch.rests)
        self.commits += writes
        if not writes or self.commits != self._at or self.failed:
            return commit()
        if self._after:
            commit()
        with self._counting:
            self.failed = True
        raise Abandoned if self._way == "abandoned" else StoreLostError("planted")


@dataclass(frozen=True)
class End:
    """What a run left behind."""

    outcome: str
    trail: str
    error: str
    raises: bool
    fields: tuple[Any, ...]


class Trial:
    """One process on one store, run again and again.

    Attributes:
        doubts: Why runs were suspended that an operator let go on.
    """

    def __init__(self, case: Case, path: Path, kind: Kind, threads: int) -> None:
        """Open a store whose time can be moved on; the disk is not waited for: no power fails here."""
        self._case, self._threads, self._shift = case, threads, 0.0
        self.doubts: list[str] = []
        self.store = SqliteStore(path, synchronous="normal", clock=lambda: time.time() + self._shift)
        self._processor = case.build()
        for one in self._processor.plan["p"].values():
            for step in (*one["steps"], *one["finally"]):
                step["mode"] = "transactional" if kind == "transactional" else "leased"
                step["on_lost"] = "incident" if kind == "incident" else "retry"

    def run(self, way: Way = "lost", at: int = 0, *, after: bool = False) -> tuple[End, int]:
        """Run the process with a crash at a commit; return what it left, and how many commits there were."""
        failing = Failing(self.store, way, at, after=after)
        engine = self._engine(failing)
        run = engine.client.submit(self._processor.name, self._case.seed).id
        with working(engine):
            wait(lambda: failing.gone if failing.failed and way == "abandoned" else self._over(run))
        if way == "abandoned" and at:
            self._shift += LEASE + 1
            engine = self._engine(self.store)
            self.store.sweep(deliveries=5)
            with working(engine):
                wait(lambda: self._over(run))
        return self._end(engine, run), failing.commits

    def _engine(self, store: Any) -> DurableEngine:
        settings = WorkerSettings(threads=self._threads, lease=LEASE, tick=0.05)
        return DurableEngine(store, {self._processor.name: Job(self._processor)}, settings)

    def _over(self, run: int) -> bool:
        status = self.store.status(run)
        assert status is not None
        if status.state == "suspended":
            assert "in doubt" in status.reason
            self.doubts.append(status.reason)
            self.store.retry(run, who="operator", why="it did not take place")
        return status.state in ("completed", "failed")

    def _end(self, engine: DurableEngine, id: int) -> End:
        run = engine.run_of(id)
        fields = tuple(getattr(run.context, name) for name in self._case.fields)
        return End(run.outcome.name, ", ".join(map(row, run.steps)), kind_of(run.error), run.raises, fields)


@contextmanager
def working(engine: DurableEngine) -> Iterator[None]:
    """Let a worker work, and stop it, unless it is no more."""
    worker = Worker(engine.store, engine.jobs, engine.settings)
    worker.start()
    try:
        yield
    finally:
        with suppress(Abandoned):
            worker.stop()


def wait(done: Callable[[], object]) -> None:
    """Wait until it is so."""
    until = time.monotonic() + LIMIT
    while not done():
        assert time.monotonic() < until, "the run did not end"
        time.sleep(0.001)


def places(commits: int) -> list[int]:
    """Return the numbers of the commits at which to crash."""
    if commits <= MANY:
        return [*range(1, commits + 1)]
    return [round((i + 1) * commits / (SAMPLE + 1)) for i in range(SAMPLE)]


@pytest.fixture(autouse=True)
def _crashing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A worker that lost its store tries again without a pause; one that is abandoned goes in silence."""
    tell = threading.excepthook
    monkeypatch.setattr(iocflow.durable.worker.membership, "BACKOFF", (0.0,) * 5)
    monkeypatch.setattr(threading, "excepthook", lambda told: told.exc_type is Abandoned or tell(told))
    caplog.set_level(logging.CRITICAL, "iocflow")


@pytest.mark.parametrize(
    ("kind", "threads"), [("leased", 1), ("leased", 3), ("transactional", 1), ("transactional", 3), ("incident", 1)]
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_crashed_at_every_commit(case: Case, kind: Kind, threads: int, tmp_path: Path) -> None:
    """Whichever commit the engine is abandoned at, outcome, trail, error and fields are those of an undisturbed run."""
    trial = Trial(case, tmp_path / "store.db", kind, threads)
    undisturbed, commits = trial.run()
    failures = []
    for at in places(commits):
        for way in ("lost", "abandoned"):
            for after in (False, True):
                end, _ = trial.run(way, at, after=after)
                if end != undisturbed:
                    failures.append(f"{way} {'after' if after else 'before'} commit {at} of {commits}: {end}")
    assert not failures, f"undisturbed: {undisturbed}\n" + "\n".join(failures)
    found = list(trial.store.doctor())
    trial.store.close()
    assert found == []


def test_every_step_in_doubt_is_named(tmp_path: Path) -> None:
    """A run with steps in doubt in two branches says so of both: the operator's answer is for both."""
    case = Case("two in doubt", seq(split({"l": go_left, "r": go_right})), "")
    trial = Trial(case, tmp_path / "store.db", "incident", 1)
    undisturbed, commits = trial.run()
    for at in range(1, commits + 1):
        assert trial.run("abandoned", at)[0] == undisturbed
    trial.store.close()
    assert any("split/l/go-left" in reason and "split/r/go-right" in reason for reason in trial.doubts)
