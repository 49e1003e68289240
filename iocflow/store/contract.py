"""What a store of durable runs offers: the seam between the worker and client above and the tables below.

Times are seconds since the epoch on the store's own clock; no decision uses a worker's. Bodies, contexts, group states
and signals are JSON that the store never looks into.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from iocflow.store.launchers import Launchers
from iocflow.store.outbox import Outbox
from iocflow.store.reports import Entry, RunStatus, State, Violation
from iocflow.store.submission import AGEING, Accepted, Submission

__all__ = [
    "AGEING",
    "Accepted",
    "Ask",
    "Batch",
    "Claimed",
    "Ending",
    "Entry",
    "Receipt",
    "Record",
    "Rest",
    "RunStatus",
    "Saved",
    "Signal",
    "State",
    "StepTransaction",
    "Store",
    "Submission",
    "Swept",
    "Violation",
]

Ask = Literal["cancel", "timeout", "again", "done"]
"""What is asked of a run: to end, to do its last step again, or to take that step, which is in doubt, as done."""


class Record(NamedTuple):
    """One row of a run's steps, numbered `n` from 1 without gaps; only the holder of the run's group writes them.

    Attributes:
        kind: `step` is a row of the trail, `attempt` one that is tried again, `mark` only keeps the position,
            `begun` says that an activity begins whose outcome may not be guessed, `memo` that it changed its memo and
            is under way still, `doubt` that one began before and is in doubt still, `publish` is an outgoing event
            (`result`) that is still to be sent; see `Outbox`.
        thread: The thread of control: empty, or the numbers of branches and items from the outermost, as in `0.2`.
        name: The activity's path.
        outcome: As in the trail; of an attempt, what was decided.
        error: The error's record.
        plan: The id of the plan that the position belongs to.
        pos: Where the thread goes on from; None says that this row is no place to go on from. `0` is the start.
        ctx: The context from here on; None when it did not change.
        retry: Whether an operator's retry may go on from here: not in a `finally` that a failure led to.
    """

    run: int
    n: int
    kind: Literal["step", "attempt", "mark", "begun", "memo", "doubt", "publish"]
    thread: str
    name: str
    began: float
    ended: float
    outcome: str
    attempts: int
    error: str | None
    result: str | None
    plan: int
    pos: str | None
    ctx: bytes | None
    retry: bool = True


@dataclass(frozen=True, slots=True)
class Ending:
    """A run's end, or its suspension, with which it holds its group until an operator acts; that releases the group."""

    run: int
    group: int
    state: Literal["completed", "failed", "cancelled", "suspended"]
    outcome: str
    reason: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Rest:
    """A run that is let go until a time, a signal, or both; with `keep` its group waits for it, and is released.

    Attributes:
        waits: A signal wakes it.
        seen: The last of its signals that the worker knows; when a later one is there already, it does not sleep.
    """

    run: int
    group: int
    until: float | None
    waits: bool = False
    keep: bool = False
    seen: int = 0


@dataclass(slots=True)
class Batch:
    """What a worker wants done in one transaction.

    Attributes:
        records, endings, rests: Rows of steps, in order; runs that ended; runs that are let go for a time.
        taken: Ids of signals that were consumed.
        states: The new state of groups that it holds, by key.
        released: Groups of which the worker has nothing in hand any more.
        claim: How many groups to claim.
        alone: The worker has nothing else in hand, and may be given a suspect.
    """

    records: list[Record] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    rests: list[Rest] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    states: dict[str, bytes] = field(default_factory=dict)
    released: list[int] = field(default_factory=list)
    claim: int = 0
    alone: bool = False

    def activities(self) -> dict[int, str]:
        """Return the runs that something is written about, and for each the steps whose rows are in it, as a text."""
        names: dict[int, dict[str, None]] = {}
        for part in (self.records, self.endings, self.rests):
            names |= {one.run: {} for one in part}
        for one in self.records:
            if one.kind != "mark":
                names[one.run][one.name] = None
        return {run: ", ".join(of_run) for run, of_run in names.items()}


class Saved(NamedTuple):
    """The last row with a position of one thread of control, with its context."""

    thread: str
    n: int
    kind: str
    plan: int
    pos: str
    ctx: bytes | None


class Signal(NamedTuple):
    """A signal that was not consumed yet."""

    id: int
    name: str
    data: bytes


@dataclass(slots=True)
class Claimed:
    """A run that a worker holds now.

    Attributes:
        n: The number of its last row; 0 when it was not begun.
        threads: Where its threads of control stand; of branches only those forked since the outer thread's last row.
        deliveries: How many workers died with it in hand.
        suspect: It may have killed a worker: it is the only one in hand.
        ask: What is asked of it before anything else.
        signals: In order of arrival.
    """

    id: int
    group: int
    key: str | None
    processor: str
    body: bytes
    submitter: str
    number: str
    submitted: float
    deadline: float | None
    start_by: float | None
    deliveries: int
    suspect: bool
    ask: Ask | None
    n: int
    threads: list[Saved]
    signals: list[Signal]
    state: bytes | None


class Receipt(NamedTuple):
    """What a commit did.

    Attributes:
        dropped: Runs that are out of the worker's hands: what was written about them was left out.
        more: Whether groups are left that this worker could claim.
        wake: When the next sleeping run is due.
    """

    now: float
    dropped: frozenset[int]
    claimed: list[Claimed]
    more: bool
    wake: float | None


class Swept(NamedTuple):
    """What a sweep found: workers that died, runs that were lost with them, of those suspended as poison, timeouts."""

    workers: int
    lost: int
    poisoned: int
    timeouts: int


class StepTransaction(Protocol):
    """One transaction of one step in mode `transactional`; user code works on `connection` within it."""

    connection: Any

    def undo(self) -> None:
        """Roll back what the activity did, before its handler is asked.

        Raises:
            StoreError: The activity ended the transaction itself.
        """

    def commit(self, batch: Batch) -> Receipt:
        """Write the batch as `Store.commit` does, the fence checked last, and commit."""

    def rollback(self) -> None:
        """Give all of it up."""


class Store(Protocol):
    """The tables; every method is one transaction, and may be called from any thread.

    Raises:
        StoreError: From every method: the store is lost, full, read-only or newer than this program.
    """

    url: str

    @property
    def launchers(self) -> Launchers:
        """What is kept of scheduled launchers."""

    @property
    def outbox(self) -> Outbox:
        """The outgoing events of its runs."""

    def close(self) -> None:
        """Close what is open."""

    def now(self) -> float:
        """Return the store's time."""

    # Submitting.

    def submit(self, runs: Sequence[Submission], *, transaction: Any = None) -> list[Accepted]:
        """Add runs, all or none; a known identity is no error. `transaction`: a caller's, which is not committed."""

    def signal(self, run: int, name: str, data: bytes) -> bool:
        """Send a signal to a run and wake it if it waits; False when the run is closed: then it is kept as dead."""

    # Working.

    def plan(self, hash: str, processor: str, plan: str) -> int:
        """Return the id of a plan, storing it when it is new."""

    def plan_of(self, id: int) -> tuple[str, str]:
        """Return the hash and the text of a stored plan."""

    def register(self, lease: float, host: str, pid: int) -> int:
        """Return the id of a new worker, never used before: its fencing token; its lease runs `lease` seconds."""

    def commit(self, worker: int, batch: Batch, *, lease: float) -> Receipt:
        """Do all of the batch, and extend the worker's lease when a third of it has passed.

        Raises:
            FencedError: The worker's lease had run out and it was swept; nothing was written.
        """

    def begin(self, worker: int, *, lease: float) -> AbstractContextManager[StepTransaction]:
        """Begin the transaction of one step; leaving it without a commit rolls back."""

    def beat(self, worker: int, *, lease: float) -> frozenset[int]:
        """Extend the lease; return the runs that were taken from this worker since."""

    def fenced_out(self, worker: int, runs: Mapping[int, str]) -> None:
        """Journal that a worker dropped what it did about runs, knowing that they had been taken from it.

        By run, the steps that it was; `commit` tells the same of what it leaves out.
        """

    def retire(self, worker: int) -> None:
        """End a worker that has nothing in hand; what it still holds is given back, not counted as a crash."""

    def sweep(self, *, deliveries: int, by: int = 0) -> Swept:
        """Take over from the dead, wake what is due, time out what is late; at `deliveries` deaths a run is poison.

        `by` is the worker that asks, and so lives, though it may not have been able to show it.
        """

    def listen(self, timeout: float) -> None:
        """Return when there may be something to claim, or after `timeout` seconds."""

    def rouse(self) -> None:
        """Let every `listen` of this object return."""

    # Reading.

    def find(self, submitter: str, number: str) -> int | None:
        """Return the id of the run with that identity."""

    def status(self, run: int) -> RunStatus | None:
        """Return a run's status."""

    def context(self, run: int) -> bytes | None:
        """Return the last recorded context of the outer thread."""

    def signals(self, runs: Sequence[int]) -> dict[int, list[Signal]]:
        """Return the signals to these runs that were not consumed yet, in order."""

    def runs(
        self,
        *,
        states: Sequence[State] = (),
        processor: str | None = None,
        submitter: str | None = None,
        group: str | None = None,
        after: int = 0,
        limit: int = 100,
        newest: bool = False,
    ) -> list[RunStatus]:
        """Return runs by id, the newest last: the first so many with an id above `after`, or the newest of them."""

    def history(self, run: int) -> list[Entry]:
        """Return a run's journal; its end is told behind the signals that were `unheard`."""

    def counts(self) -> dict[str, int]:
        """Return how many runs are in each state."""

    # Operating: each is journalled with who and why.

    def cancel(self, run: int, *, who: str, why: str) -> bool:
        """Ask for the end of an open run: at once when it was not begun, else after its `finally`; False if closed."""

    def retry(self, run: int, *, who: str, why: str, done: bool = False) -> bool:
        """Let a failed or suspended run go on from the step that failed; `done` says that a step in doubt took place.

        Rows repeat the last places with `retry`, `begun` and `memo` as `doubt`, others as `mark`, or one is the start;
        `ask` tells which it was, deliveries are 0, the group is open. False: neither failed nor suspended, or purged.
        """

    def drop(self, run: int, *, who: str, why: str) -> bool:
        """Give a suspended run up as failed, and let its group go on; False when it is not suspended."""

    def purge(self, before: float, *, limit: int = 1000) -> int:
        """Drop the contexts and bodies of runs that ended before; their trail stays. Return how many."""

    def doctor(self) -> Iterable[Violation]:
        """Check the invariants of the tables."""
