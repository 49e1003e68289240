"""What an application offers about its durable runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from iocflow.container.stored import Stored
from iocflow.wiring.extras import extra

if TYPE_CHECKING:  # they are loaded when they are needed
    from iocflow.durable.client import Client, Report, Ticket
    from iocflow.durable.relay import Relay
    from iocflow.durable.terms import Terms
    from iocflow.durable.worker.worker import Worker
    from iocflow.launch.launcher import Companion
    from iocflow.run import Run
    from iocflow.store.contract import Entry, RunStatus, State
    from iocflow.store.launchers import Launchers, Standing

__all__ = ["DurableApp"]


class DurableApp:
    """The part of an application that submits durable runs and tells of them: most of it is its client's.

    The store is opened when it is first needed. Without one, each of these raises a `NotDurableError`.
    """

    _stored: Stored

    @property
    def client(self) -> Client:
        """What submits runs and tells of them.

        Raises:
            NotDurableError: The application has no store.
            StoreError: The store cannot be opened.
        """
        return self._stored.engine.client

    @property
    def book(self) -> Launchers | None:
        """What the store keeps of scheduled launchers, for a daemon; None without a store.

        Raises:
            StoreError: The store cannot be opened.
        """
        return self._stored.book

    def standings(self) -> dict[str, Standing]:
        """Return how scheduled launchers stand in the store, by name; none where there is no store yet.

        Raises:
            StoreError: The store cannot be opened.
        """
        return self._stored.standings()

    def submit(self, processor: str, seed: Any = None, *, transaction: Any = None, **terms: Unpack[Terms]) -> Ticket:
        """Record a run of a durable processor, and return before any of its steps starts.

        Args:
            processor: The processor's id.
            seed: The data that starts the run; it is fitted to its type now.
            transaction: The caller's own connection to the store's database: the run exists when that commits.
            terms: `submitter`, `number`, `group`, `priority`, `deadline`, `not_before`, `start_by`, as `Terms` says.

        Raises:
            ConflictError: The submitter used this number for something else.
            SubmitError: What was given cannot be.
        """
        return self.client.submit(processor, seed, transaction=transaction, **terms)

    def submit_many(
        self,
        processor: str,
        seeds: Iterable[Any],
        *,
        number: Callable[[Any], str] | None = None,
        submitter: str | None = None,
        group: Callable[[Any], str | None] | None = None,
        priority: int = 0,
        progress: Callable[[int], None] | None = None,
    ) -> Report:
        """Record a run for each seed, as `Client.submit_many` says; with `number`, it can be done again."""
        return self.client.submit_many(
            processor, seeds, number=number, submitter=submitter, group=group, priority=priority, progress=progress
        )

    def status(self, *which: str | int) -> RunStatus:
        """Return the status of a run, by its id, or by submitter and number.

        Raises:
            UnknownRunError: There is no such run.
        """
        return self.client.status(*which)

    def wait(self, *which: str | int, timeout: float | None = None) -> RunStatus:
        """Return the status of a run once it is closed or suspended; some worker has to be there to do it.

        Raises:
            TimeoutError: That took longer than `timeout` seconds.
        """
        return self.client.wait(*which, timeout=timeout)

    def history(self, *which: str | int) -> list[Entry]:
        """Return a run's journal."""
        return self.client.history(*which)

    def runs(
        self,
        *,
        states: Iterable[State] = (),
        processor: str | None = None,
        submitter: str | None = None,
        group: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[RunStatus]:
        """Return runs in order of submission, those with an id above `after`."""
        return self.client.runs(
            states=states, processor=processor, submitter=submitter, group=group, after=after, limit=limit
        )

    def run_counts(self) -> Mapping[str, int]:
        """Return how many runs the store has in each state."""
        return self.client.store.counts()

    def signal(self, run: int, name: str, data: Any = None) -> bool:
        """Send a signal to a run; early ones wait in order. False when the run is closed."""
        return self.client.signal(run, name, data)

    def cancel(self, *which: str | int, who: str = "", why: str = "") -> bool:
        """Ask for the end of a run: at once if it was not begun, else after its `finally`; False if it is closed."""
        return self.client.cancel(*which, who=who, why=why)

    def retry(self, *which: str | int, who: str = "", why: str = "", done: bool = False) -> bool:
        """Let a failed or suspended run go on from the step that failed; `done` takes a step in doubt as done."""
        return self.client.retry(*which, who=who, why=why, done=done)

    def run_here(self, processor: str, seed: Any = None) -> Run[Any]:
        """Submit a run of a durable processor, work in this process until it is done, and return what became of it.

        A failure is in the run that is returned, and never raised.
        """
        return self._stored.run_here(processor, seed)

    @property
    def durable_ids(self) -> tuple[str, ...]:
        """The ids of the durable processors."""
        return self._stored.ids

    def companions(self, threads: int | None = None) -> tuple[Companion, ...]:
        """Return what a daemon has at work beside the launchers: a worker and a relay, if they have anything to do.

        The worker has so many threads, in place of what the section `worker` says.
        """
        if not self._stored.ids:
            return ()
        made: Companion = extra("durable.worker.companion").WorkerCompanion(self.worker(threads))
        relay = self.relay()
        return (made,) if relay is None else (made, relay)

    def worker(self, threads: int | None = None) -> Worker:
        """Return a worker on the store, not started yet; `threads` in place of what the section `worker` says."""
        return self._stored.worker(threads)

    def relay(self) -> Relay | None:
        """Return what sends the events that durable runs publish, not started yet; None when none publishes any."""
        return self._stored.relay()

    def run_until_idle(self, workers: int = 8) -> None:
        """Work in this process, in that many threads, until no run is ready: for tests, scripts and benchmarks.

        What waits for a signal, or for a time that has not come, is left as it is. Runs of another worker that died are
        taken over, which takes as long as its lease. Events that the runs published are sent, those that can be.
        """
        extra("durable.worker.idling").run_until_idle(self.worker(workers), inherit=True)
        if (relay := self.relay()) is not None:
            relay.flush()
