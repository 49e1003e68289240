"""The transaction that everything goes through: what a worker did is written, and it is given more to do.

Each statement lets other threads run, and waits for its turn after that: so there is one for a whole batch, however
many rows it is, and it returns one row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

from iocflow.store.contract import Batch, Claimed, Ending, Receipt, Rest
from iocflow.store.errors import FencedError
from iocflow.store.sql import upkeep
from iocflow.store.sql.groups import CLEAR_SUSPECT, journal, settle, unheard
from iocflow.store.sql.operations import fenced_out
from iocflow.store.sql.schema import KEPT, QUARANTINED, WOKE
from iocflow.store.sqlite.claim import claim
from iocflow.store.sqlite.insert import insert
from iocflow.store.sqlite.tables import SqliteTables

NEXT = """(select min(wake) from run where wake is not null), (select suspect from grp where owner is null and gate = 0
 and id not in (select grp from revoked where worker = ?1) order by due, id limit 1)"""
"""When the next sleeping run is due, and whether the next free group is a suspect; nulls where there is none."""

FENCE = f"""select lease, exists (select 1 from revoked where worker = ?1),
 exists (select 1 from signal where fate is null), (select min(expiry) from run where expiry is not null), {NEXT}
 from worker where id = ?1"""

STEP = "step(run, n, kind, thread, name, t0, t1, outcome, attempts, error, result, plan, pos, ctx, retry)"
"""Its columns stand in the order of the fields of `Record`."""

PLAIN = "step(run, n, name, t0, t1, plan, pos, ctx)"
"""What differs between most rows; the rest is as the schema has it by default. Each value counts for 8 % of a row."""

USUAL = ("step", "", "ok", 1, None, None, True)
"""The rest of most rows."""

_DIFFERENT = itemgetter(0, 1, 4, 5, 6, 11, 12, 13)
_USUAL = itemgetter(2, 3, 7, 8, 9, 10, 14)

COMPLETED = """update run set state = 2, closed = 'completed', outcome = 'ok', ended = ?, wake = null, waits = 0,
 expiry = null where id in (select value from json_each(?))"""

ENDED = """update run set state = case e.state when 'suspended' then 3 else 2 end,
 closed = case e.state when 'suspended' then null else e.state end, outcome = e.outcome,
 reason = coalesce(nullif(e.reason, ''), run.reason),
 error = e.error, ended = case e.state when 'suspended' then null else ?1 end, wake = null, waits = 0,
 expiry = case e.state when 'suspended' then expiry end
 from (select json_extract(value, '$[0]') as run, json_extract(value, '$[1]') as state,
  json_extract(value, '$[2]') as outcome, json_extract(value, '$[3]') as reason, json_extract(value, '$[4]') as error
  from json_each(?2)) e where run.id = e.run"""

RESTED = """update run set wake = r.until, waits = r.waits, state = case when r.waits = 1 and exists (
  select 1 from signal s where s.run = run.id and s.fate is null and s.id > r.seen) then 0 else 1 end,
 rested = case when r.keep = 1 then rested
  else coalesce((select max(n) from step s where s.run = run.id), 0) end
 from (select json_extract(value, '$[0]') as run, json_extract(value, '$[1]') as until,
  json_extract(value, '$[2]') as waits, json_extract(value, '$[3]') as keep, json_extract(value, '$[4]') as seen
  from json_each(?)) r where run.id = r.run"""

AWAKE = f"""update run set wake = null, waits = 0, woke = {WOKE}
 where state = 0 and id in (select value from json_each(?))"""

STOPPED = """update grp set gate = g.gate, keeper = g.run
 from (select json_extract(value, '$[0]') as id, json_extract(value, '$[1]') as run, json_extract(value, '$[2]') as gate
  from json_each(?)) g where grp.id = g.id"""

TAKEN = "update signal set fate = 'taken' where id in (select value from json_each(?))"

STATES = """insert into group_state(key, state, touched)
 select json_extract(value, '$[0]'), cast(json_extract(value, '$[1]') as blob), ?1 from json_each(?2)
 where exists (select 1 from grp g where g.key = json_extract(value, '$[0]') and g.owner = ?3)
 on conflict(key) do update set state = excluded.state, touched = excluded.touched"""

EXTEND = "update worker set lease = ? where id = ?"


class Fence(NamedTuple):
    """What a worker's own row says, and whether there is work of the rarer kinds."""

    lease: float
    revoked: int
    signals: int
    expiry: float | None
    wake: float | None
    suspect: int | None


def fence(tables: SqliteTables, worker: int, lease: float) -> Fence:
    """Make sure that the worker lives, and extend its lease when a third of it has passed.

    Raises:
        FencedError: It was swept.
    """
    row = tables.sql(FENCE, (worker,)).fetchone()
    if row is None:
        raise FencedError(f"worker {worker} was taken for dead, and others took over")
    found = Fence(*row)
    if found.lease - tables.now < lease * 2 / 3:
        tables.sql(EXTEND, (tables.now + lease, worker))
    return found


def commit(tables: SqliteTables, worker: int, batch: Batch, lease: float) -> Receipt:
    """Do all of the batch within the open transaction."""
    found = fence(tables, worker, lease)
    dropped: frozenset[int] = frozenset()
    if found.revoked:
        dropped = revoked(tables, worker)
        fenced_out(tables, worker, lost(batch, dropped))
        batch = without(tables, batch, dropped)
        tables.sql("delete from revoked where worker = ?", (worker,))
    write(tables, worker, batch, found.signals)
    return _more(tables, worker, batch, found, dropped)


def commit_step(tables: SqliteTables, worker: int, batch: Batch, lease: float) -> Receipt:
    """Do all of the batch of one step; when its run was taken away, nothing, and the caller rolls all of it back."""
    found = fence(tables, worker, lease)
    dropped = revoked(tables, worker) if found.revoked else frozenset()
    if lost(batch, dropped):
        return Receipt(tables.now, dropped, [], False, None)
    write(tables, worker, batch, found.signals)
    return _more(tables, worker, batch, found, dropped)


def _more(tables: SqliteTables, worker: int, batch: Batch, found: Fence, dropped: frozenset[int]) -> Receipt:
    """Claim, and look at what is left."""
    claimed: list[Claimed] = []
    if batch.claim:
        if found.wake is not None and found.wake <= tables.now:
            upkeep.wake(tables)
        if found.expiry is not None and found.expiry <= tables.now:
            upkeep.expire(tables)
        claimed = claim(tables, worker, batch.claim, batch.alone, found.signals)
    wake, suspect = found.wake, found.suspect
    if batch.claim or batch.released or batch.rests or dropped:
        wake, suspect = tables.sql(f"select {NEXT}", (worker,)).fetchone()
    more = suspect == 0 and not any(one.suspect for one in claimed[:1])
    return Receipt(tables.now, dropped, claimed, more, wake)


def revoked(tables: SqliteTables, worker: int) -> frozenset[int]:
    """Return the runs that were taken from the worker's hands."""
    return frozenset(run for (run,) in tables.rows("select run from revoked where worker = :worker", worker=worker))


def lost(batch: Batch, dropped: frozenset[int]) -> dict[int, str]:
    """Return the runs that something is written about and that were taken from the worker, with their steps."""
    return {run: steps for run, steps in batch.activities().items() if run in dropped}


def without(tables: SqliteTables, batch: Batch, dropped: frozenset[int]) -> Batch:
    """Return the batch without what is about these runs; signals that they took are there still."""
    sql = "select id from signal where id in [taken] and run in [dropped]"
    kept = {id for (id,) in tables.rows(sql, taken=batch.taken, dropped=sorted(dropped))}
    return replace(
        batch,
        records=[one for one in batch.records if one.run not in dropped],
        endings=[one for one in batch.endings if one.run not in dropped],
        rests=[one for one in batch.rests if one.run not in dropped],
        taken=[id for id in batch.taken if id not in kept],
    )


def write(tables: SqliteTables, worker: int, batch: Batch, signals: int) -> None:
    """Write what was done, and let go of what is released."""
    if batch.records:
        plain = [_DIFFERENT(one) for one in batch.records if _USUAL(one) == USUAL]
        insert(tables, PLAIN, plain)
        if len(plain) < len(batch.records):
            insert(tables, STEP, [one for one in batch.records if _USUAL(one) != USUAL])
    if batch.taken:
        tables.sql(TAKEN, (json.dumps(batch.taken),))
    if batch.endings:
        _end(tables, batch.endings, signals)
    if batch.rests:
        _rest(tables, batch.rests)
    if batch.states:
        rows = json.dumps([(key, state.decode()) for key, state in batch.states.items()])
        tables.sql(STATES, (tables.now, rows, worker))
    stopped = {one.group: (one.group, one.run, QUARANTINED) for one in batch.endings if one.state == "suspended"}
    stopped |= {one.group: (one.group, one.run, KEPT) for one in batch.rests if one.keep}
    if stopped:
        tables.sql(STOPPED, (json.dumps(list(stopped.values())),))
    released = sorted({*batch.released, *stopped}) if stopped else batch.released
    settle(tables, released, worker=worker, suspect=CLEAR_SUSPECT)


def _end(tables: SqliteTables, endings: Iterable[Ending], signals: int) -> None:
    plain: list[int] = []
    others: list[Any] = []
    for one in endings:
        if one.state == "completed" and one.outcome == "ok" and not one.reason and one.error is None:
            plain.append(one.run)
        else:
            others.append((one.run, one.state, one.outcome, one.reason, one.error))
        if one.state == "suspended":
            journal(tables, one.run, "suspended", outcome=one.outcome, error=one.error, why=one.reason)
    if plain:
        tables.sql(COMPLETED, (tables.now, json.dumps(plain)))
    if others:
        tables.sql(ENDED, (tables.now, json.dumps(others)))
    if signals:
        closed = [run for run, state, *_ in others if state != "suspended"]
        unheard(tables, plain + closed)


def _rest(tables: SqliteTables, rests: Iterable[Rest]) -> None:
    rows = [(one.run, one.until, int(one.waits), int(one.keep), one.seen) for one in rests]
    tables.sql(RESTED, (json.dumps(rows),))
    if any(one.waits for one in rests):
        tables.sql(AWAKE, (json.dumps([row[0] for row in rows]),))
