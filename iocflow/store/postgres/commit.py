"""The transaction that everything goes through: what a worker did is written, and it is given more to do.

It is one round trip. There are more when runs were taken from the worker, so that not all of the batch may be written,
and when there are runs to wake or to time out before anything is claimed.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from psycopg import errors

from iocflow.store.contract import Batch, Receipt
from iocflow.store.errors import FencedError, StoreError
from iocflow.store.postgres.calls import Way, strays, touched, written
from iocflow.store.postgres.claim import FIRST, LATE, MORE, TOOK, WAKE, Floor, claimed
from iocflow.store.postgres.commit_texts import Texts
from iocflow.store.postgres.connections import Connection, Connections
from iocflow.store.postgres.pipeline import Call, Pipelines, Row, call
from iocflow.store.postgres.step import roll_back

T = TypeVar("T")


@dataclass(slots=True)
class Hand:
    """What this process remembers of a worker, to spare statements; nothing goes wrong when it knows nothing.

    Attributes:
        ends: When the worker's lease ends, on the store's clock.
        seen: The store's time at its last commit.
        at: What the monotonic clock said then.
        shift: What the store's clock was shifted by.
        alone: Groups in hand that have no key, so that nobody submits to them.
    """

    ends: float = 0.0
    seen: float = 0.0
    at: float = 0.0
    shift: float = 0.0
    alone: set[int] = field(default_factory=set)

    def tired(self, lease: float, shift: float) -> bool:
        """Return whether a third of the lease has passed, as far as this process can tell."""
        now = self.seen + (time.monotonic() - self.at) + (shift - self.shift)
        return self.ends - now < lease * 2 / 3


class Committer:
    """Commits batches to the tables of one schema."""

    def __init__(
        self, connections: Connections, pipelines: Pipelines, schema: str, channel: str, upkeep: Callable[[], object]
    ) -> None:
        """Prepare the statements.

        Args:
            connections: Where commits go through.
            pipelines: How.
            schema: The tables', quoted.
            channel: Where those listen who wait for work.
            upkeep: Wakes and times out what is due, and brings loose runs to their groups.
        """
        self._connections = connections
        self._pipelines = pipelines
        self._texts = Texts(schema)
        self._channel = channel
        self._upkeep = upkeep
        self._hands: dict[int, Hand] = {}
        self._floor = Floor()

    def forget(self, worker: int) -> None:
        """Forget a worker that is no more."""
        self._hands.pop(worker, None)

    def commit(self, worker: int, batch: Batch, *, lease: float, shift: float) -> Receipt:
        """Do all of the batch.

        Raises:
            FencedError: There is no such worker any more.
        """
        base = self._base(worker, batch, lease, shift)
        freed = bool(batch.released or batch.endings or batch.rests)
        claims = self._claims(base, batch, forced=False) if batch.claim or freed else []
        try:
            calls = self._written(Way.QUICK, batch, base)
            rows = self._connections.transact(lambda one: self._pipelines.run(one, [*calls, *claims]))
            dropped: list[Row] = []
        except StoreError as error:
            if not isinstance(error.__cause__, errors.DivisionByZero):
                raise
            calls, claims = self._written(Way.CAREFUL, batch, base), self._claims(base, batch, forced=False)
            rows = self._fenced(worker, lambda one: self._pipelines.run(one, [*calls, *claims]))
            dropped = rows[1]
        self._heard(base, rows, calls, batch)
        if not claims:
            _, now, more, wake, *_ = rows[0][0]
            return Receipt(now, frozenset(), [], more, wake)
        return self._receipt(base, batch, rows[0][0][1], dropped, rows[len(calls) :])

    def commit_step(self, connection: Connection, worker: int, batch: Batch, *, lease: float, shift: float) -> Receipt:
        """Do all of the batch in the open transaction of one step, and commit it; see `StepTransaction.commit`.

        Raises:
            FencedError: There is no such worker any more.
        """
        base = self._base(worker, batch, lease, shift)
        calls, claims = self._written(Way.OWN, batch, base), self._claims(base, batch, forced=False)
        before = [call(self._texts.release, {}), call(self._texts.tune, {})]
        try:
            rows = self._pipelines.run(connection, [*before, *calls, *claims, call(self._texts.end, {})])[2:-1]
        except errors.DivisionByZero:
            roll_back(connection)
            return self._refused(base, batch)
        self._heard(base, rows, calls, batch)
        return self._receipt(base, batch, rows[0][0][1], rows[1], rows[len(calls) :])

    def begin_step(self, connection: Connection, worker: int) -> None:
        """Begin the transaction of a step.

        Raises:
            FencedError: There is no such worker any more.
        """
        texts = self._texts
        calls = [call(texts.begin, {}), call(texts.alive, {"worker": worker}), call(texts.savepoint, {})]
        try:
            try:
                self._pipelines.run(connection, calls)
            except errors.InvalidSqlStatementName:
                roll_back(connection)
                self._pipelines.run(connection, calls)
        except errors.DivisionByZero as error:
            self.forget(worker)
            raise fenced(worker) from error

    def undo_step(self, connection: Connection) -> None:
        """Go back to the begin of a step's transaction."""
        self._pipelines.run(connection, [call(self._texts.undo, {})])

    def _refused(self, base: dict[str, Any], batch: Batch) -> Receipt:
        """Say, and journal, why a step was not committed: its run was taken away, or the worker is fenced."""
        values = base | touched(batch)
        calls = [call(self._texts.fence, values), call(self._texts.told, values)]
        ((_, now, _),), taken = self._fenced(base["worker"], lambda one: self._pipelines.run(one, calls))
        return Receipt(now, frozenset(run for (run,) in taken), [], False, None)

    def _fenced(self, worker: int, work: Callable[[Connection], T]) -> T:
        """Return what `work` does in a transaction whose fence fails by a division."""
        try:
            return self._connections.transact(work)
        except StoreError as error:
            if not isinstance(error.__cause__, errors.DivisionByZero):
                raise
            self.forget(worker)
            raise fenced(worker) from error

    def _receipt(
        self, base: dict[str, Any], batch: Batch, now: float, dropped: list[Row], answers: list[list[Row]]
    ) -> Receipt:
        """Read the answers; claim again when there was something to do before."""
        hand = self._hands[base["worker"]]
        look = answers[0][0]
        if look[LATE]:
            self._upkeep()
            base = base | {"floor": -math.inf}
            calls = [call(self._texts.fence, base), *self._claims(base, batch, forced=True)]
            answers = self._fenced(base["worker"], lambda one: self._pipelines.run(one, calls))[1:]
            look = answers[0][0]
        elif batch.claim:
            self._floor.learn(base["floor"], len(look[0]), look[FIRST], look[TOOK], now)
        runs = [claimed(row) for row in answers[1]] if batch.claim else []
        self._pipelines.grown(max((run.id for run in runs), default=0))
        hand.alone.update(run.group for run in runs if run.key is None)
        if empty := sorted({*look[0]} - {run.group for run in runs}):
            calls = strays(self._texts, empty, base)
            self._fenced(base["worker"], lambda one: self._pipelines.run(one, calls))
        return Receipt(now, frozenset(run for run, *_ in dropped), runs, look[MORE], look[WAKE])

    def _base(self, worker: int, batch: Batch, lease: float, shift: float) -> dict[str, Any]:
        """Return the parameters that most statements have."""
        floor = self._floor.start() if batch.claim else self._floor.due
        return {"worker": worker, "lease": lease, "shift": shift, "floor": floor}

    def _heard(self, base: dict[str, Any], rows: list[list[Row]], calls: list[Call], batch: Batch) -> None:
        """Remember what a commit answered."""
        hand = self._hands[base["worker"]]
        ends, now, *_ = rows[0][0]
        extended = any(one.statement is self._texts.extend for one in calls)
        hand.ends, hand.seen, hand.at = now + base["lease"] if extended else ends, now, time.monotonic()
        hand.shift = base["shift"]
        hand.alone.difference_update(batch.released)

    def _written(self, way: Way, batch: Batch, base: dict[str, Any]) -> list[Call]:
        """Return the calls that write a batch."""
        hand = self._hands.setdefault(base["worker"], Hand())
        tired = hand.tired(base["lease"], base["shift"])
        return written(self._texts, way, batch, base, tired=tired, alone=hand.alone)

    def _claims(self, base: dict[str, Any], batch: Batch, *, forced: bool) -> list[Call]:
        """Return the calls that claim, or only look."""
        values = base | {"channel": self._channel}
        if not batch.claim:
            return [call(self._texts.look, values)]
        values |= {"claim": batch.claim, "alone": int(batch.alone), "batch": random.getrandbits(62)}
        claim = self._texts.claim if forced else self._texts.claim_plain
        return [call(claim, values), call(self._texts.load, values)]


def fenced(worker: int) -> FencedError:
    """Return the error that tells a worker that it is no more."""
    return FencedError(f"worker {worker} was taken for dead, and others took over")
