"""The tables of a store, once for both dialects.

A prepared plan is kept when there are a thousand times more rows than when it was made, and while there are few, it
looks cheap to go through all of an index. So a row is sought in ways that leave no choice: by a scalar subquery rather
than by `exists`; and a run that is known by its number has its state compared as `state + 0`, for which no index of the
runs in one state can be taken.

A dialect fills in four words: `{id}` is a primary key that numbers itself and never reuses a number, `{run}` that of
runs, of which no row is ever deleted, `{key}` one whose number is given, and `{data}` holds JSON as it came. Everything
else is understood by SQLite and PostgreSQL alike.
"""

from __future__ import annotations

READY, ASLEEP, CLOSED, SUSPENDED = 0, 1, 2, 3
"""The stored state of a run. Ready is queued or running; asleep is let go until a time, a signal, or both."""

OPEN, EMPTY, KEPT, QUARANTINED = 0, 1, 2, 3
"""The gate of a group: it has ready runs; it has only sleeping ones; its keeper, a started run, keeps it while it
sleeps; its keeper is suspended and holds it."""

SLICE = 16
"""How many ready runs of one group a claim takes along."""

IN_PROGRESS = """(select p.id from run p where p.grp = g.id and p.state = 0 and p.id <= g.upto
 and coalesce((select max(s.n) from step s where s.run = p.id), 0) > coalesce(p.rested, 0) limit 1)"""
"""The ready run of group `g` that was left in the middle: it has rows since it last let the group go. There is one at
most, among those that the last claim took (`upto`), so that a long backlog costs nothing."""

NEXT = f"""coalesce({IN_PROGRESS}, (select k.id from run k where k.id = g.keeper and k.state + 0 = 0),
 (select min(f.id) from run f where f.grp = g.id and f.state = 0))"""
"""The ready run of group `g` that goes first in its next claim: the one in progress, the keeper, or the first."""

HEAD = f"""coalesce({IN_PROGRESS}, (select k.id from run k where k.id = g.keeper and k.state + 0 = 0),
 (select min(f.id) from run f where f.grp = g.id and f.state = 0 and f.id <= g.upto
  and (f.woke is null or f.woke < g.turn)))"""
"""The run of group `g`, which is held, that goes now, or goes first of those that its worker has in hand."""

WOKE = "(select case when g.owner is not null then g.turn end from grp g where g.id = run.grp)"
"""What `run.woke` is set to whenever a run becomes ready: the worker that holds the group now has it not in hand."""

TABLES = (
    """create table meta(version bigint not null)""",
    """create table plan(
 id {id}, hash text not null unique, processor text not null, plan text not null)""",
    """create table worker(
 id {id}, lease double precision not null, host text not null, pid bigint not null, began double precision not null)""",
    # A row exists while the group has open runs. Its number is that of a run, or of the same sequence.
    """create table grp(
 id {key}, key text, due double precision not null, gate smallint not null default 0, keeper bigint,
 suspect smallint not null default 0, owner bigint, upto bigint not null default 0, turn bigint not null default 0)""",
    """create unique index grp_key on grp(key) where key is not null""",
    """create index grp_free on grp(due, id) where owner is null and gate = 0""",
    """create index grp_held on grp(owner) where owner is not null""",
    """create table group_state(key text primary key, state {data} not null, touched double precision not null)""",
    # `rested` is the last row's number when the run last let its group go, `woke` the group's turn (claims so far) when
    # the run became ready under a worker's hands, `asked` the last row's number when `ask` was asked: an ask counts
    # until there is a further row. `expiry` is when the store has to look at the run's time limits next.
    """create table run(
 id {run}, grp bigint not null, key text, processor text not null, due double precision not null,
 priority smallint not null default 0, state smallint not null default 0, wake double precision,
 waits smallint not null default 0, rested bigint, woke bigint, body {data}, digest text not null,
 submitter text not null, number text not null, submitted double precision not null, not_before double precision,
 deadline double precision, start_by double precision, expiry double precision, deliveries bigint not null default 0,
 ask text, asked bigint, reason text not null default '', closed text, outcome text not null default '', error text,
 ended double precision, purged double precision)""",
    """create unique index run_identity on run(submitter, number)""",
    """create index run_ready on run(grp, id) where state = 0""",
    """create index run_resting on run(grp, id) where state in (1, 3)""",
    """create index run_wake on run(wake) where wake is not null""",
    """create index run_expiry on run(expiry) where expiry is not null""",
    """create index run_closed on run(closed, id) where state = 2""",
    """create index run_kept on run(ended) where state = 2 and purged is null""",
    """create table step(
 run bigint not null, n bigint not null, kind text not null default 'step', thread text not null default '',
 name text not null, t0 double precision not null, t1 double precision not null, outcome text not null default 'ok',
 attempts bigint not null default 1, error text, result text, plan bigint not null, pos text, ctx {data},
 retry smallint not null default 1, primary key(run, n))""",
    # `n` is the number of the run's last row at that time, so that the journal's order needs no clock.
    """create table event(
 id {id}, run bigint not null, n bigint not null, at double precision not null, kind text not null,
 name text not null default '', outcome text not null default '', error text, who text not null default '',
 why text not null default '', worker bigint)""",
    """create index event_run on event(run, id)""",
    """create table signal(
 id {id}, run bigint not null, name text not null, data {data}, at double precision not null, fate text)""",
    """create index signal_pending on signal(run, id) where fate is null""",
    """create table revoked(
 worker bigint not null, run bigint not null, grp bigint not null, primary key(worker, run))""",
)

STATE = f"""case when r.state = 2 then r.closed when r.state = 3 then 'suspended'
 when r.state = 1 and exists (select 1 from step s where s.run = r.id) then 'waiting'
 when r.state = 0 and g.owner is not null and r.id = {HEAD} then 'running' else 'queued' end"""
"""The state of run `r` of group `g` in words."""

VIEWS = {
    "v_run_status": f"""select r.id, r.submitter, r.number, r.processor, {STATE} as state,
 case when r.state = 2 then r.outcome else '' end as outcome, r.reason, r.error, r.key as "group", r.priority,
 r.deliveries, r.submitted, (select s.t0 from step s where s.run = r.id and s.n = 1) as started, r.ended, r.deadline,
 r.not_before,
 coalesce((select s.name from step s where s.run = r.id and s.kind <> 'mark' order by s.n desc limit 1), '')
  as activity,
 (select count(*) from step s where s.run = r.id and s.kind = 'step') as steps
 from run r left join grp g on g.id = r.grp and r.state <> 2""",
    "v_journal": """select j.run, row_number() over (partition by j.run order by j.n, j.part, j.at, j.id) as number,
 j.at, j.kind, j.thread, j.name, j.began, j.outcome, j.attempts, j.error, j.result, j.who, j.why from (
 select id as run, -1 as n, 0 as part, submitted as at, 0 as id, 'submitted' as kind, '' as thread, processor as name,
 null as began, '' as outcome, 0 as attempts, null as error, null as result, submitter as who, '' as why from run
 union all select run, n, 0, t1, 0, kind, thread, name, t0, outcome, attempts, error, result, '', '' from step
 union all select run, n, 1, at, id, kind, '', name, null, outcome, 0, error, null, who, why from event
 union all select r.id, coalesce((select max(s.n) from step s where s.run = r.id), 0), 1, r.ended, 9223372036854775806,
 'ended', '', '', null, r.outcome, 0, r.error, null, '', r.reason from run r where r.state = 2
 union all select r.id, coalesce((select max(s.n) from step s where s.run = r.id), 0), 1, r.purged, 9223372036854775807,
 'purged', '', '', null, '', 0, null, null, '', '' from run r where r.purged is not null) j""",
    "v_step_times": """select s.run, s.n, r.submitter, r.number, r.processor, s.thread, s.name, s.kind, s.outcome,
 s.attempts, s.t0 as began, s.t1 as ended, s.t1 - s.t0 as seconds
 from step s join run r on r.id = s.run where s.kind in ('step', 'attempt')""",
    "v_queue_depth": """select r.processor, sum(case when r.state = 0 and g.owner is null then 1 else 0 end) as ready,
 sum(case when r.state = 0 and g.owner is not null then 1 else 0 end) as held,
 sum(case when r.state = 1 then 1 else 0 end) as asleep, sum(case when r.state = 3 then 1 else 0 end) as suspended,
 min(case when r.state = 0 then r.submitted end) as oldest
 from (select grp, processor, state, submitted from run where state = 0
  union all select grp, processor, state, submitted from run where state in (1, 3)) r
 left join grp g on g.id = r.grp group by r.processor""",
    "v_incidents": """select r.id as run, r.submitter, r.number, r.processor, r.key as "group", r.reason, r.error,
 r.deliveries, (select max(e.at) from event e where e.run = r.id and e.kind = 'suspended') as since,
 (select count(*) from run w where w.grp = r.grp and w.state = 0)
  + (select count(*) from run w where w.grp = r.grp and w.state in (1, 3)) - 1 as held_up
 from run r where r.state in (1, 3) and r.state = 3""",
}
"""The views for people with SQL; `v_run_status` and `v_journal` are what the store itself reads, too."""

LAUNCHERS = (
    # `upto` is the last moment that is dealt with, `doing` the firing that was begun last and did not end, `tries` how
    # often; `busy` and `served` are ends of leases.
    """create table launcher(
 name text primary key, timing text not null, since double precision not null, served double precision not null,
 upto double precision, paused smallint not null default 0, asked bigint not null default 0,
 answered bigint not null default 0, daemon text, busy double precision, doing text not null default '',
 tries bigint not null default 0, began double precision, ended double precision, outcome text not null default '',
 run text not null default '', fired bigint not null default 0, missed bigint not null default 0,
 at double precision, who text not null default '', why text not null default '')""",
)

OUTBOX = ("""create index step_publish on step(run, n) where kind = 'publish'""",)

MIGRATIONS: tuple[tuple[str, ...], ...] = (TABLES, LAUNCHERS, OUTBOX)
"""What leads from each version to the next; the first makes a new store. Views are made anew after each."""

VERSION = len(MIGRATIONS)
