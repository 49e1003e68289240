"""Few words for what a submitter and a worker do with a store."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from iocflow.store.contract import Batch, Claimed, Ending, Receipt, Record, Rest, Store, Submission

LEASE = 30.0

LONG = 1e6
"""The lease of a worker that no test lets die."""

NUMBERS = itertools.count(1)


def submission(number: str | None = None, **options: Any) -> Submission:
    """Return a submission with a number of its own."""
    given: dict[str, Any] = {"processor": "order", "body": b'{"a":1}', "digest": "d", "submitter": "ACME", **options}
    return Submission(number=number or f"n{next(NUMBERS)}", **given)


def record(run: int, n: int, **options: Any) -> Record:
    """Return a row of a run's trail, with a position and a context."""
    given: dict[str, Any] = {
        "kind": "step",
        "thread": "",
        "name": f"step{n}",
        "began": 10.0 + n,
        "ended": 10.5 + n,
        "outcome": "ok",
        "attempts": 1,
        "error": None,
        "result": None,
        "plan": 0,
        "pos": f'{{"at":{n}}}',
        "ctx": b'{"n":%d}' % n,
        **options,
    }
    return Record(run, n, **given)


class Work:
    """A worker at a store: what it holds, and what it does with it."""

    def __init__(self, store: Store, lease: float = LEASE) -> None:
        """Register."""
        self.store = store
        self.lease = lease
        self.id = store.register(lease, "host", 1)

    def submit(self, number: str | None = None, **options: Any) -> int:
        """Submit one run; return its id."""
        return self.store.submit([submission(number, **options)])[0].id

    def commit(self, **parts: Any) -> Receipt:
        """Commit a batch of these parts."""
        return self.store.commit(self.id, Batch(**parts), lease=self.lease)

    def claim(self, count: int = 1, *, alone: bool = True) -> list[Claimed]:
        """Claim groups; return their runs."""
        return self.commit(claim=count, alone=alone).claimed

    def ids(self, count: int = 100) -> list[int]:
        """Claim groups; return the ids of their runs."""
        return [run.id for run in self.claim(count)]

    def step(self, run: Claimed, count: int = 1, **options: Any) -> Receipt:
        """Record the next steps of a run."""
        first = run.n + 1
        run.n += count
        return self.commit(records=[record(run.id, n, **options) for n in range(first, run.n + 1)])

    def end(self, *runs: Claimed, state: Any = "completed", outcome: str = "ok", **options: Any) -> Receipt:
        """End runs, and release their groups."""
        endings = [Ending(run.id, run.group, state, outcome, **options) for run in runs]
        return self.commit(endings=endings, released=sorted({run.group for run in runs}))

    def rest(self, run: Claimed, until: float | None = None, **options: Any) -> Receipt:
        """Let a run go for a time, and release its group."""
        return self.commit(rests=[Rest(run.id, run.group, until, **options)], released=[run.group])

    def release(self, *runs: Claimed) -> Receipt:
        """Release the groups of runs."""
        return self.commit(released=sorted({run.group for run in runs}))

    def state(self, run: int) -> str:
        """Return the state of a run."""
        status = self.store.status(run)
        assert status is not None
        return status.state

    def states(self, runs: Sequence[int]) -> list[str]:
        """Return the states of runs."""
        return [self.state(run) for run in runs]

    def kinds(self, run: int) -> list[str]:
        """Return the kinds of the entries of a run's journal."""
        history = self.store.history(run)
        assert [entry.number for entry in history] == list(range(1, len(history) + 1))
        return [entry.kind for entry in history]
