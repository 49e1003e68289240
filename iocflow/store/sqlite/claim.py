"""Giving a worker groups, with their runs, as a SQLite store does it: two statements, however many they are."""

from __future__ import annotations

import json
from typing import Any

from iocflow.store.contract import Claimed, Saved, Signal
from iocflow.store.sql.places import live
from iocflow.store.sql.schema import SLICE
from iocflow.store.sqlite.tables import SqliteTables

OUTER = """coalesce((select o.n from step o where o.run = r.id and o.thread = '' and o.pos is not null
 order by o.n desc limit 1), 0)"""
"""The number of the outer thread's last row with a position: what it forked before does not go on."""

FORKED = """case when t.thread = '' then 0 else coalesce((select max(p.n) from step p where p.run = r.id
 and p.pos is not null and p.n < t.n and (p.thread = '' or t.thread like p.thread || '.%')), 0) end"""
"""The number of the row from which thread `t` was forked: contexts that a namesake left before are not its own."""

CONTEXT = f"""(select cast(c.ctx as text) from step c where c.run = r.id and c.thread = t.thread and c.n <= t.n
 and c.n > {FORKED} and (c.ctx is not null or c.pos = '0') order by c.n desc limit 1)"""

PLACES = f"""(select json_group_array(json_array(t.thread, t.n, t.kind, t.plan, t.pos, {CONTEXT}))
 from (select s.thread, max(s.n) as n, s.kind, s.plan, s.pos from step s
  where s.run = r.id and s.pos is not null and s.n >= {OUTER} group by s.thread) t)"""

SIGNALS = """case when :signals then (select json_group_array(json_array(s.id, s.name, cast(s.data as text)))
 from (select id, name, data from signal where run = r.id and fate is null order by id) s) end"""

LAST = "(select max(s.n) from step s where s.run = r.id)"

RUNS = f"""(select json_group_array(json_array(r.id, r.processor, cast(r.body as text), r.submitter, r.number,
 r.submitted, r.deadline, r.start_by, r.deliveries, r.ask, r.asked, {LAST},
 case when {LAST} is not null then {PLACES} end, {SIGNALS}))
 from (select k.id from run k where k.id = g.keeper and k.state = 0
  union all select f.id from (select id from run where grp = g.id and state = 0 and id is not g.keeper
  order by id limit {SLICE}) f) h join run r on r.id = h.id)"""

FREE = f"""select json_group_array(json_array(g.id, g.key, g.suspect,
  (select cast(s.state as text) from group_state s where s.key = g.key), {RUNS}))
 from (select id, key, suspect, keeper from grp where owner is null and gate = 0
  and id not in (select grp from revoked where worker = :worker) order by due, id limit :limit) g"""

OWN = "update grp set owner = ?, upto = ?, turn = turn + 1 where id in (select value from json_each(?))"


def claim(tables: SqliteTables, worker: int, limit: int, alone: bool, signals: int) -> list[Claimed]:
    """Give the worker up to `limit` free groups: the oldest first, and of each what is ready, in order.

    A suspect is given alone, with one run, to a worker that has nothing else in hand; nothing is given past it.
    """
    (text,) = tables.sql(FREE, {"worker": worker, "limit": limit, "signals": signals}).fetchone()
    groups = json.loads(text)
    if groups and groups[0][2]:
        groups = groups[:1] if alone else []
    claimed: list[Claimed] = []
    whole: list[int] = []
    for group, key, suspect, state, runs in groups:
        if suspect and claimed:
            break
        encoded = None if state is None else state.encode()
        taken = [_claimed(group, key, bool(suspect), encoded, run) for run in (runs[:1] if suspect else runs)]
        claimed.extend(taken)
        if suspect or len(runs) >= SLICE:
            tables.sql(OWN, (worker, max(run.id for run in taken), json.dumps([group])))
        else:
            whole.append(group)
    if whole:
        # What is submitted to one of these later has a higher number than all runs that there are.
        tables.sql(OWN, (worker, max(run.id for run in claimed), json.dumps(whole)))
    return claimed


def _claimed(group: int, key: str | None, suspect: bool, state: bytes | None, run: list[Any]) -> Claimed:
    (id, processor, body, submitter, number, submitted, deadline, start_by, deliveries, ask, asked, n, places, sent) = (
        run
    )
    signals = [Signal(id, name, data.encode()) for id, name, data in sent] if sent else []
    last = n or 0
    # fmt: off
    return Claimed(
        id, group, key, processor, body.encode(), submitter, number, submitted, deadline, start_by, deliveries, suspect,
        ask if asked == last else None, last, _threads(places) if places else [], signals, state,
    )
    # fmt: on


def _threads(places: list[list[Any]]) -> list[Saved]:
    if len(places) > 1:
        places = live(sorted(places, key=lambda place: place[1]))
    return [
        Saved(thread, n, kind, plan, pos, None if ctx is None else ctx.encode())
        for thread, n, kind, plan, pos, ctx in places
    ]
