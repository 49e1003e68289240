"""The transaction that everything goes through: what a worker did is written, and it is given more to do.

It is one round trip. Only when there are runs to wake or to time out, there are more, before anything is claimed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from psycopg import errors

from iocflow.store.contract import Batch, Ending, Receipt, Record, Rest
from iocflow.store.errors import FencedError
from iocflow.store.groups import CLEAR_SUSPECT
from iocflow.store.postgres_claim import LATE, claimed
from iocflow.store.postgres_commit_texts import COLUMNS, Texts
from iocflow.store.postgres_connections import Connection
from iocflow.store.postgres_pipeline import Call, Pipelines, Row, Statement, call
from iocflow.store.postgres_values import storable
from iocflow.store.schema import KEPT, QUARANTINED

Upkeep = Callable[[], None]
Add = Callable[..., None]


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

    def heard(self, now: float, ends: float, shift: float) -> None:
        """Remember what a commit answered."""
        self.ends, self.seen, self.at, self.shift = ends, now, time.monotonic(), shift


class Committer:
    """Commits batches to the tables of one schema."""

    def __init__(self, schema: str, channel: str, pipelines: Pipelines) -> None:
        """Prepare the statements for `schema`, a quoted name; who waits for work listens on `channel`."""
        self._texts = Texts(schema)
        self._channel = channel
        self._pipelines = pipelines
        self._hands: dict[int, Hand] = {}

    def _fenced(self, worker: int) -> FencedError:
        self.forget(worker)
        return FencedError(f"worker {worker} was taken for dead, and others took over")

    def forget(self, worker: int) -> None:
        """Forget a worker that is no more."""
        self._hands.pop(worker, None)

    def commit(
        self, connection: Connection, worker: int, batch: Batch, *, lease: float, shift: float, upkeep: Upkeep
    ) -> Receipt:
        """Do all of the batch; `upkeep` wakes and times out what is due, in a transaction of its own.

        Raises:
            FencedError: There is no such worker any more.
        """
        calls = self._written(worker, batch, lease, shift, own=False)
        claims = self._claims(worker, batch, shift, forced=False)
        try:
            rows = self._pipelines.run(connection, [*calls, *claims])
        except errors.DivisionByZero as error:
            raise self._fenced(worker) from error
        return self._receipt(connection, worker, batch, rows, calls, lease=lease, shift=shift, upkeep=upkeep)

    def begin_step(self, connection: Connection, worker: int) -> None:
        """Begin the transaction of a step.

        Raises:
            FencedError: There is no such worker any more.
        """
        texts = self._texts
        calls = [call(texts.begin, {}), call(texts.alive, {"worker": worker}), call(texts.savepoint, {})]
        try:
            self._pipelines.run(connection, calls)
        except errors.DivisionByZero as error:
            raise self._fenced(worker) from error

    def undo_step(self, connection: Connection) -> None:
        """Go back to the begin of a step's transaction."""
        self._pipelines.run(connection, [call(self._texts.undo, {})])

    def commit_step(
        self, connection: Connection, worker: int, batch: Batch, *, lease: float, shift: float, upkeep: Upkeep
    ) -> Receipt:
        """Do all of the batch in the open transaction of one step, and commit it; see `StepTransaction.commit`.

        Raises:
            FencedError: There is no such worker any more.
            TransactionError: The activity ended the transaction.
        """
        calls = self._written(worker, batch, lease, shift, own=True)
        claims = self._claims(worker, batch, shift, forced=False)
        around = call(self._texts.release, {}), call(self._texts.end, {})
        try:
            rows = self._pipelines.run(connection, [around[0], *calls, *claims, around[1]])[1:-1]
        except errors.DivisionByZero as error:
            connection.rollback()
            return self._refused(connection, worker, batch, shift, error)
        return self._receipt(connection, worker, batch, rows, calls, lease=lease, shift=shift, upkeep=upkeep)

    def _refused(
        self, connection: Connection, worker: int, batch: Batch, shift: float, error: errors.DivisionByZero
    ) -> Receipt:
        """Say, and journal, why a step was not committed: its run was taken away, or the worker is fenced."""
        values = {"worker": worker, "shift": shift, "touched": runs_of(batch)}
        try:
            ((_, _, now),), taken = self._pipelines.run(
                connection, [call(self._texts.fence, values), call(self._texts.told, values)]
            )
        except errors.DivisionByZero:
            raise self._fenced(worker) from error
        return Receipt(now, frozenset(run for (run,) in taken), [], False, None)

    def _receipt(
        self,
        connection: Connection,
        worker: int,
        batch: Batch,
        rows: list[list[Row]],
        calls: list[Call],
        *,
        lease: float,
        shift: float,
        upkeep: Upkeep,
    ) -> Receipt:
        """Read the answers; claim again when there was something to do before."""
        hand = self._hands.setdefault(worker, Hand())
        ((_, ends, now),), dropped, *_ = rows
        extended = any(one.statement is self._texts.extend for one in calls)
        hand.heard(now, now + lease if extended else ends, shift)
        hand.alone.difference_update(batch.released)
        answers = rows[len(calls) :]
        if answers[0][0][LATE]:
            upkeep()
            answers = self._pipelines.run(connection, self._claims(worker, batch, shift, forced=True))
        taken, more, wake, *_ = answers[0][0]
        runs = [claimed(row) for row in answers[1]] if len(answers) > 1 else []
        hand.alone.update(run.group for run in runs if run.key is None)
        if strays := {*taken} - {run.group for run in runs}:
            # Their runs were taken from under the claim.
            self._pipelines.run(connection, self._written(worker, Batch(released=[*strays]), lease, shift, own=False))
        return Receipt(now, frozenset(run for run, *_ in dropped), runs, more, wake)

    def _written(self, worker: int, batch: Batch, lease: float, shift: float, *, own: bool) -> list[Call]:
        """Return the calls that write a batch: the fence first, then the rows; `own` is the commit of one step."""
        texts, base = self._texts, {"worker": worker, "shift": shift, "lease": lease, "suspect": CLEAR_SUSPECT}
        hand = self._hands.setdefault(worker, Hand())
        steps = texts.own_steps if own else texts.steps if batch.records else texts.no_steps
        calls = [call(texts.fence, base), call(steps, base | {"touched": runs_of(batch)} | _columns(batch.records))]

        def add(statement: Statement, **values: Any) -> None:
            calls.append(call(statement, base | values))

        if hand.tired(lease, shift):
            add(texts.extend)
        if batch.taken:
            add(texts.taken, taken=batch.taken)
        if batch.endings:
            self._end(batch.endings, add)
        if batch.rests:
            self._rest(batch.rests, add)
        if batch.states:
            add(texts.states, keys=[*batch.states], states=[*batch.states.values()])
        self._free(batch, hand, add)
        return calls

    def _end(self, endings: list[Ending], add: Add) -> None:
        add(
            self._texts.ended,
            runs=[one.run for one in endings],
            in_groups=[one.group for one in endings],
            closed=[one.state for one in endings],
            outcomes=[one.outcome for one in endings],
            reasons=[storable(one.reason) for one in endings],
            errors=[storable(one.error) for one in endings],
        )
        if closed := [one.run for one in endings if one.state != "suspended"]:
            add(self._texts.unheard, ended=closed)
        if suspended := [one.run for one in endings if one.state == "suspended"]:
            add(self._texts.suspended, suspended=suspended)

    def _rest(self, rests: list[Rest], add: Add) -> None:
        runs = [one.run for one in rests]
        if any(one.waits for one in rests):
            add(self._texts.lock_runs, runs=runs)
        add(
            self._texts.rested,
            runs=runs,
            in_groups=[one.group for one in rests],
            untils=[one.until for one in rests],
            waits=[int(one.waits) for one in rests],
            keeps=[int(one.keep) for one in rests],
            seens=[one.seen for one in rests],
        )

    def _free(self, batch: Batch, hand: Hand, add: Add) -> None:
        """Let go of groups: those that have a key are locked first, so that no submission to them is overlooked."""
        stopped = {one.group: (one.run, QUARANTINED) for one in batch.endings if one.state == "suspended"}
        stopped |= {one.group: (one.run, KEPT) for one in batch.rests if one.keep}
        groups = sorted({*batch.released, *stopped})
        if not groups:
            return
        if stopped:
            keepers, gates = zip(*stopped.values(), strict=True)
            add(self._texts.stopped, groups=[*stopped], keepers=keepers, gates=gates)
        over = {one.group for one in batch.endings if one.state != "suspended"}
        if shared := [group for group in groups if group not in hand.alone]:
            add(self._texts.lock_groups, groups=shared)
        add(self._texts.emptied, groups=groups)
        if shared or not over.issuperset(groups):
            add(self._texts.settled, groups=groups)

    def _claims(self, worker: int, batch: Batch, shift: float, *, forced: bool) -> list[Call]:
        """Return the calls that claim, or only look."""
        values: dict[str, Any] = {"worker": worker, "shift": shift, "channel": self._channel}
        if not batch.claim:
            return [call(self._texts.look, values)]
        values |= {"claim": batch.claim, "alone": int(batch.alone), "forced": int(forced)}
        values["batch"] = random.getrandbits(62)
        return [call(self._texts.claim, values), call(self._texts.load, values)]


def runs_of(batch: Batch) -> list[int]:
    """Return the runs that something is written about."""
    return sorted({one.run for part in (batch.records, batch.endings, batch.rests) for one in part})


def _columns(records: list[Record]) -> dict[str, Any]:
    """Return the columns of the rows of steps."""
    columns: dict[str, Any] = dict.fromkeys(COLUMNS, ())
    if records:
        columns |= zip(COLUMNS, zip(*records, strict=True), strict=True)
    for name in ("errors", "results"):
        columns[name] = [storable(text) for text in columns[name]]
    return columns
