"""Claiming from PostgreSQL: which groups a worker gets, and with what their runs go on."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from iocflow.store.contract import Claimed, Saved, Signal
from iocflow.store.postgres.pipeline import Row
from iocflow.store.postgres.sql import NOW
from iocflow.store.sql.places import live
from iocflow.store.sql.schema import SLICE

_PROBE = f"""probe as materialized (select (select min(r.wake) from run r where r.wake is not null) as wake,
  (select min(r.expiry) from run r where r.expiry is not null) as expiry, {NOW} as now)"""

_FREE = """g.owner is null and g.gate = 0 and g.due >= :floor
   and g.id <> all(array(select v.grp from revoked v where v.worker = :worker))"""
"""What is free, but for what waits longer than `floor`; see `Floor`."""

_BRIEF = "brief as materialized (select set_config('lock_timeout', '300ms', true) as is_set)"
"""Ends a claim that waits for a lock. It waits for none, but for one case that `skip locked` leaves out: a group that
it saw free, that another worker took meanwhile, and that this one now lets go of. Both may hold what the other one
needs; the commit is done again before the server looks for deadlocks, after a second.
"""

_NOTIFY = "case when rest.more and exists (select 1 from idle) then pg_notify(:channel, '') end"

_SLICE = f"""(select t.id, t.place from (
  (select k.id, 0 as place from run k where k.id = g.keeper and k.state + 0 = 0)
  union all
  (select f.id, 1 from run f where f.grp = g.id and f.state = 0 and f.id is distinct from g.keeper
   order by f.id limit {SLICE})) t order by t.place, t.id limit {SLICE})"""
"""The runs of group `g` that go along: the keeper first, then by number."""

_LAST = f"""greatest(g.keeper, (select max(l.id) from (
   select f.id from run f where f.grp = g.id and f.state = 0 order by f.id limit {SLICE}) l))"""

_TAKE = f"update grp g set owner = :worker, batch = :batch, turn = turn + 1, upto = coalesce({{last}}, {2**62})"

CLAIM_PLAIN = f"""with {_PROBE}, {_BRIEF},
 late as materialized (select coalesce(wake <= now, false) or coalesce(expiry <= now, false)
   or exists (select 1 from run r where r.grp = 0 and r.state = 1)
   or exists (select 1 from grp g where g.owner is null and g.gate = 0 and g.suspect = 1 order by g.due limit 1)
   as late from probe),
 taken as ({_TAKE.format(last=_LAST)} where g.id = any(array(
   select g.id from grp g where not (select late from late) and (select is_set from brief) is not null and {_FREE}
   order by g.due, g.id limit :claim for no key update skip locked)) returning g.id, g.due),
 rest as materialized (select exists (select 1 from grp g where {_FREE} and g.id <> all(array(select id from taken))
   order by g.due, g.id limit 1) as more)
 select array(select id from taken), rest.more, probe.wake, late.late, (select min(due) from taken),
  {NOW} - probe.now, {_NOTIFY} from probe, late, rest"""
"""Claims the groups that wait longest; nothing while there are suspects, or runs to wake, to time out or to bring to
their groups."""

MORE, WAKE, LATE, FIRST, TOOK = 1, 2, 3, 4, 5
"""The columns of an answer: after the groups that were taken, whether there are more, when the next run wakes, whether
nothing was claimed for that reason, the lowest `due` that was found, and how many seconds it took."""

_HEAD = """coalesce((select k.id from run k where k.id = g.keeper and k.state + 0 = 0),
   (select min(f.id) from run f where f.grp = g.id and f.state = 0))"""

CLAIM = f"""with {_PROBE}, {_BRIEF},
 head as materialized (select h.id, h.suspect, row_number() over () as place from (
  select g.id, g.suspect from grp g where (select is_set from brief) is not null and {_FREE}
  order by g.due, g.id limit :claim + 1 for no key update skip locked) h),
 bound as materialized (select coalesce(min(place) filter (where suspect = 1), :claim + 2) as place from head),
 taken as ({_TAKE.format(last=f"case when g.suspect = 1 then {_HEAD} else {_LAST} end")}
  where g.id = any(array(select head.id from head, bound
   where (head.place < bound.place and head.place <= :claim) or (head.place = 1 and bound.place = 1 and :alone = 1)))
  returning g.id),
 rest as materialized (select bound.place > :claim + 1 and (select count(*) from head) > :claim as more from bound)
 select array(select id from taken), rest.more, probe.wake, false, null, null, {_NOTIFY} from probe, rest"""
"""Claims without these conditions: a suspect only alone and with one run, and nothing past it."""

LOOK = f"""with {_PROBE}, rest as materialized (select coalesce((select g.suspect = 0 from grp g where {_FREE}
  order by g.due, g.id limit 1), false) as more)
 select array[]::bigint[], rest.more, probe.wake, false, null, null, {_NOTIFY} from probe, rest"""
"""The same answer without a claim."""

_CONTEXT = """(select c.ctx from step c where c.run = r.id and c.thread = q.thread and c.n <= q.n and c.n > case
   when q.thread = '' then 0 else coalesce((select max(f.n) from step f where f.run = r.id and f.pos is not null
    and f.n < q.n and (f.thread = '' or starts_with(q.thread, f.thread || '.'))), 0) end
  and (c.ctx is not null or c.pos = '0') order by c.n desc limit 1)"""
"""The context of place `q`: of its row, or the last one before it that changed it since its thread was forked."""

LOAD = f"""select r.id, r.grp, r.key, r.processor, r.body, r.submitter, r.number, r.submitted, r.deadline, r.start_by,
  r.deliveries, g.suspect = 1, case when r.asked = coalesce(l.n, 0) then r.ask end, coalesce(l.n, 0), s.state,
  p.threads, p.ns, p.kinds, p.plans, p.places, p.contexts, i.ids, i.names, i.datas
 from grp g
 cross join lateral {_SLICE} t
 join run r on r.id = t.id
 left join group_state s on s.key = g.key
 left join lateral (select max(x.n) as n from step x where x.run = r.id) l on true
 left join lateral (select array_agg(q.thread order by q.n) as threads, array_agg(q.n order by q.n) as ns,
   array_agg(q.kind order by q.n) as kinds, array_agg(q.plan order by q.n) as plans,
   array_agg(q.pos order by q.n) as places,
   array_agg(case when q.ctx is null then {_CONTEXT} else q.ctx end order by q.n) as contexts
  from (select distinct on (x.thread) x.* from step x where x.run = r.id and x.pos is not null and x.n >= coalesce((
    select o.n from step o where o.run = r.id and o.thread = '' and o.pos is not null order by o.n desc limit 1), 0)
   order by x.thread, x.n desc) q where l.n is not null) p on true
 left join lateral (select array_agg(a.id order by a.id) as ids, array_agg(a.name order by a.id) as names,
   array_agg(a.data order by a.id) as datas from signal a where a.run = r.id and a.fate is null
   and (select exists (select 1 from signal b where b.fate is null))) i on true
 where g.owner = :worker and g.batch = :batch and t.id <= g.upto and (g.suspect = 0 or t.id = g.upto)
 order by g.due, g.id, t.place, r.id"""
"""The runs that a claim took, in a statement of its own: it sees what was committed until the groups were locked."""


SLOW, SLOW_GROUP = 0.01, 0.0002
"""Seconds that a claim, and each group of it, takes at most when there is little to go through."""

OFTEN = 3
"""After how many slow claims in a row it is the index, and not the machine."""

REST, SHARE = 0.25, 20
"""Seconds until the next claim from the start at least; and how many times as long as the last such claim took."""


@dataclass(slots=True)
class Floor:
    """From where on the index of free groups is read, while much of it is dead.

    Groups come and go, and as long as some transaction stays open, a backup say, their index entries cannot be cleared
    away: each claim would go through all of them. When that takes long, claims begin where the last one found
    something, and now and then one begins at the start, for groups that wait longer than that: those that came back,
    or have a higher priority.

    Attributes:
        due: Where claims begin.
        until: When one begins at the start again, as the monotonic clock has it.
        slow: How many of those that began at the start were slow, in a row.
    """

    due: float = -math.inf
    until: float = 0.0
    slow: int = 0

    def start(self) -> float:
        """Return where a claim begins now."""
        return self.due if time.monotonic() < self.until else -math.inf

    def learn(self, start: float, groups: int, first: float | None, took: float, now: float) -> None:
        """Take note of a claim at the store's time `now` that began at `start`: how many groups, and the first one."""
        if start == -math.inf:
            self.slow = self.slow + 1 if took > SLOW + groups * SLOW_GROUP else 0
            self.until = time.monotonic() + max(REST, SHARE * took)
            self.due = now if first is None else first
            if self.slow < OFTEN:
                self.due, self.until = -math.inf, 0.0
        elif first is not None:
            self.due = first


def claimed(row: Row) -> Claimed:
    """Return the run of a row of `LOAD`."""
    *head, state, threads, ns, kinds, plans, places, contexts, ids, names, datas = row
    id, group, key, processor, body, submitter, number, submitted, deadline, start_by, deliveries, suspect, ask, n = (
        head
    )
    rows = zip(threads or (), ns or (), kinds or (), plans or (), places or (), contexts or (), strict=True)
    return Claimed(
        id=id,
        group=group,
        key=key,
        processor=processor,
        body=body,
        submitter=submitter,
        number=number,
        submitted=submitted,
        deadline=deadline,
        start_by=start_by,
        deliveries=deliveries,
        suspect=suspect,
        ask=ask,
        n=n,
        threads=[Saved(*place) for place in live(rows)] if threads else [],
        signals=[Signal(*signal) for signal in zip(ids or (), names or (), datas or (), strict=True)],
        state=state,
    )
