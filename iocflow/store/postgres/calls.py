"""The calls that write what a worker did."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from iocflow.store.contract import Batch, Ending, Record, Rest
from iocflow.store.postgres.commit_texts import MANY, ONE, Texts
from iocflow.store.postgres.pipeline import Call, Statement, call
from iocflow.store.postgres.values import storable
from iocflow.store.sql.groups import CLEAR_SUSPECT
from iocflow.store.sql.schema import KEPT, QUARANTINED

Add = Callable[..., None]


class Way(Enum):
    """How a batch is written: if nothing was taken from the worker, without what was, or if none of it was."""

    QUICK = 1
    CAREFUL = 2
    OWN = 3


def touched(batch: Batch) -> dict[str, Any]:
    """Return the parameters that say which runs something is written about, and of which steps."""
    runs = batch.activities()
    return {"touched": [*runs], "steps": [*runs.values()]}


def written(texts: Texts, way: Way, batch: Batch, base: dict[str, Any], *, tired: bool, alone: set[int]) -> list[Call]:
    """Return the calls that write a batch: first the fence and the rows, then what follows from them.

    Args:
        texts: The statements.
        way: How the rows are written. Of the first call's row, the first two columns are the lease and the time; but
            for `QUICK`, the second call's rows are the runs that were taken from the worker.
        batch: What is written.
        base: The parameters `worker`, `lease` and `shift`.
        tired: Whether the lease has to be extended.
        alone: Groups without a key, which nobody submits to.
    """
    calls: list[Call] = []

    def add(statement: Statement, **values: Any) -> None:
        calls.append(call(statement, base | values))

    locked = [one.run for one in batch.endings] + [one.run for one in batch.rests if one.waits]
    if way is Way.QUICK and len(batch.records) == 1:
        add(texts.quick_one_locking if locked else texts.quick_one, locked=locked, **_row(batch.records[0]))
    elif way is Way.QUICK:
        add(texts.quick_locking if locked else texts.quick, locked=locked, **_rows(batch.records))
    else:
        add(texts.fence)
        add(texts.own_steps if way is Way.OWN else texts.steps, **touched(batch), **_rows(batch.records))
        if locked:
            add(texts.lock_runs, locked=locked)
        if way is Way.CAREFUL:
            add(texts.calm)
    if tired:
        add(texts.extend)
    if batch.taken:
        add(texts.taken, taken=batch.taken)
    if batch.endings:
        _end(texts, batch.endings, add)
    if batch.rests:
        _rest(texts, batch.rests, add)
    if batch.states:
        add(texts.states, keys=[*batch.states], states=[*batch.states.values()])
    _free(texts, batch, alone, add)
    return calls


def _end(texts: Texts, endings: list[Ending], add: Add) -> None:
    add(
        texts.ended,
        runs=[one.run for one in endings],
        in_groups=[one.group for one in endings],
        closed=[one.state for one in endings],
        outcomes=[one.outcome for one in endings],
        reasons=[storable(one.reason) for one in endings],
        errors=[storable(one.error) for one in endings],
    )
    if suspended := [one.run for one in endings if one.state == "suspended"]:
        add(texts.suspended, suspended=suspended)


def _rest(texts: Texts, rests: list[Rest], add: Add) -> None:
    add(
        texts.rested,
        runs=[one.run for one in rests],
        in_groups=[one.group for one in rests],
        untils=[one.until for one in rests],
        waits=[int(one.waits) for one in rests],
        keeps=[int(one.keep) for one in rests],
        seens=[one.seen for one in rests],
    )


def _free(texts: Texts, batch: Batch, alone: set[int], add: Add) -> None:
    """Let go of groups, under a lock, so that no submission to them is overlooked."""
    stopped = {one.group: (one.run, QUARANTINED) for one in batch.endings if one.state == "suspended"}
    stopped |= {one.group: (one.run, KEPT) for one in batch.rests if one.keep}
    gone = alone.intersection(one.group for one in batch.endings if one.state != "suspended")
    if stopped:
        keepers, gates = zip(*stopped.values(), strict=True)
        add(texts.stopped, groups=[*stopped], keepers=keepers, gates=gates)
    if groups := sorted({*batch.released, *stopped} - gone):
        _let_go(texts, groups, alone, add)


def _let_go(texts: Texts, groups: list[int], alone: set[int], add: Add) -> None:
    shared = not alone.issuperset(groups)
    if shared:
        add(texts.order_groups, groups=groups)
    add(texts.lock_sole_groups if shared else texts.lock_groups, groups=groups)
    add(texts.emptied)
    add(texts.settled, suspect=CLEAR_SUSPECT)
    if shared:
        add(texts.let_go, groups=groups, suspect=CLEAR_SUSPECT)


def strays(texts: Texts, groups: list[int], base: dict[str, Any]) -> list[Call]:
    """Return the calls that let go of groups in which a claim has found nothing."""
    calls = [call(texts.fence, base)]

    def add(statement: Statement, **values: Any) -> None:
        calls.append(call(statement, base | values))

    _let_go(texts, groups, set(), add)
    return calls


def _row(record: Record) -> dict[str, Any]:
    """Return the columns of one row of steps."""
    columns: dict[str, Any] = dict(zip(ONE, record, strict=True))
    for name in ("error", "result"):
        columns[name] = storable(columns[name])
    return columns


def _rows(records: list[Record]) -> dict[str, Any]:
    """Return the columns of rows of steps."""
    if not records:
        return dict.fromkeys(MANY, ())
    columns: dict[str, Any] = dict(zip(MANY, zip(*records, strict=True), strict=True))
    for name in ("errors", "results"):
        columns[name] = [storable(text) for text in columns[name]]
    return columns
