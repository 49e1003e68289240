"""The durable processors of an application with their store, which is opened when it is first needed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from iocflow.container.failures import NotDurableError
from iocflow.processor import Processor
from iocflow.run import Run
from iocflow.wiring.extras import extra

if TYPE_CHECKING:  # they are loaded when they are needed
    from iocflow.durable.engine import DurableEngine
    from iocflow.durable.job import Job
    from iocflow.durable.relay import Relay
    from iocflow.durable.worker.worker import Worker
    from iocflow.store.contract import RunStatus, Store
    from iocflow.store.launchers import Launchers, Standing

__all__ = ["Stored"]


class Holder(Protocol):
    """The application, as far as it is needed here."""

    path: str

    def __getitem__(self, id: str) -> Any:
        """Return the processor of that id."""

    def section(self, key: str) -> Any:
        """Return what the section of that key became."""


class Stored:
    """Carries out the runs of an application's durable processors: the engine that these are entrusted to."""

    def __init__(self, app: Holder, options: Mapping[str, Any], store: Store | None = None) -> None:
        """Take the application.

        Args:
            app: It has the processors, and the sections `store` and `worker`.
            options: By the id of each durable processor, a `Durable`, or what one is made of.
            store: An open one, which is its owner's to close; without it, the URL of the section says which.
        """
        self._app = app
        self._options = options
        self._given = self._store = store
        self._engine: DurableEngine | None = None
        self._lock = threading.RLock()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the durable processors."""
        return tuple(self._options)

    @property
    def engine(self) -> DurableEngine:
        """What submits and works.

        Raises:
            NotDurableError: The application has no store.
            StoreError: The store cannot be opened.
        """
        with self._lock:
            if self._engine is None:
                store = self._opened()
                settings = extra("durable.settings").WorkerSettings(**(self._app.section("worker") or {}))
                self._engine = extra("durable.engine").DurableEngine(store, self.jobs(), settings)
            return self._engine

    @property
    def book(self) -> Launchers | None:
        """What the store keeps of scheduled launchers; None when the application has no store.

        Raises:
            StoreError: The store cannot be opened.
        """
        with self._lock:
            known = self._store is not None or self._app.section("store") is not None
            return self._opened().launchers if known else None

    def standings(self) -> dict[str, Standing]:
        """Return how scheduled launchers stand, by name; none without a store, which is not made for this.

        Raises:
            StoreError: The store cannot be opened.
        """
        with self._lock:
            if self._store is not None:
                return {one.name: one for one in self._store.launchers.standings()}
        settings = self._app.section("store")
        if settings is None:
            return {}
        try:
            store: Store = extra("store").open_store(settings.url, create=False)
        except extra("store.errors").StoreUrlError:  # nothing was ever done with it
            return {}
        try:
            return {one.name: one for one in store.launchers.standings()}
        finally:
            store.close()

    def jobs(self) -> dict[str, Job]:
        """Return what a worker knows of each processor.

        Raises:
            ContextTypeError: A context cannot be stored.
        """
        if not self._options:
            return {}
        found = {id: self._app[id] for id in self._options}
        job = extra("durable.job")
        given = {id: job.Durable(**one) if isinstance(one, Mapping) else one for id, one in self._options.items()}
        # what stands in for a processor in a test runs where it is called
        return {id: job.Job(found[id], given[id]) for id in found if isinstance(found[id], Processor)}

    def worker(self, threads: int | None = None) -> Worker:
        """Return a worker that is not started yet; `threads` in place of what the file says."""
        engine = self.engine
        settings = engine.settings if threads is None else replace(engine.settings, threads=threads)
        made: Worker = extra("durable.worker.worker").Worker(engine.store, engine.jobs, settings)
        return made

    def relay(self) -> Relay | None:
        """Return what sends the events of durable runs, not started yet; None when none of them publishes any."""
        module, engine = extra("durable.relay"), self.engine
        publishers = module.publishers_of(engine.jobs.values())
        made: Relay | None = module.Relay(engine.store, publishers) if publishers else None
        return made

    def run_here(self, id: str, seed: Any) -> Run[Any]:
        """Submit a run and work in this process until it is done."""
        asked = {"run_id": "", "scheduled_for": None, "idempotency_key": "", "here": True}
        return self.launch(self._app[id], seed, **asked)

    def launch(self, processor: Processor[Any], seed: Any, **asked: Any) -> Run[Any]:
        """Carry out a run, as `iocflow.processor.Engine` says."""
        return self.engine.launch(processor, seed, **asked)

    def status(self, *which: str | int) -> RunStatus:
        """Return the status of a run, as `Client.status` says."""
        return self.engine.client.status(*which)

    def entrust(self) -> None:
        """Take over the runs of the durable processors that there are now."""
        for id in self._options:
            processor = self._app[id]
            if isinstance(processor, Processor):
                processor.entrust(self)

    @contextlib.contextmanager
    def overridden(self) -> Iterator[None]:
        """Let the processors that were built anew be those that are worked on, for a while."""
        with self._lock:
            former, self._engine = self._engine, None
        self.entrust()
        try:
            yield
        finally:
            with self._lock:
                self._engine = former

    def close(self) -> None:
        """Close the store, if it was opened here."""
        with self._lock:
            opened, self._store, self._engine = self._store, self._given, None
        if opened is not None and opened is not self._given:
            opened.close()

    def _opened(self) -> Store:
        if self._store is None:
            settings = self._app.section("store")
            if settings is None:
                where = self._app.path or "the application"
                raise NotDurableError(f"{where} has no store; write `store: sqlite:///var/app.db`, and `durable: true`")
            self._store = extra("store").open_store(settings.url)
        return self._store
