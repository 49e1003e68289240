"""The statements of a commit in PostgreSQL, and the calls that a batch makes of them.

They take locks in the order worker, run, group. The lock on the worker's row lets other commits of that worker pass,
and keeps out who takes runs from it.
"""

from __future__ import annotations

from iocflow.store.postgres.claim import CLAIM, CLAIM_PLAIN, LOAD, LOOK
from iocflow.store.postgres.connections import TUNED
from iocflow.store.postgres.pipeline import Statement
from iocflow.store.postgres.sql import NOW, named
from iocflow.store.sql.groups import EMPTIED, SETTLED, UNSETTLED
from iocflow.store.sql.schema import WOKE

_TYPES = {
    **dict.fromkeys(("run", "n", "tries", "plan", "again"), "bigint"),
    **dict.fromkeys(("began", "ended"), "double precision"),
    **dict.fromkeys(("kind", "thread", "name", "outcome", "error", "result", "place"), "text"),
    "context": "bytea",
    **dict.fromkeys(("worker", "claim", "alone", "batch", "suspect"), "bigint"),
    **dict.fromkeys(("shift", "lease", "floor"), "double precision"),
    "channel": "text",
    **dict.fromkeys(("groups", "touched", "runs", "ns", "attempts", "plans", "retries", "taken", "seens"), "bigint[]"),
    **dict.fromkeys(("in_groups", "waits", "keeps", "keepers", "gates", "locked", "suspended"), "bigint[]"),
    **dict.fromkeys(("begans", "endeds", "untils"), "double precision[]"),
    **dict.fromkeys(("kinds", "threads", "names", "outcomes", "errors", "results", "places", "reasons"), "text[]"),
    **dict.fromkeys(("keys", "closed", "steps"), "text[]"),
    **dict.fromkeys(("contexts", "states"), "bytea[]"),
}

SAVEPOINT = "iocflow_step"
"""Where a step's transaction goes back to; when it is gone, the activity ended the transaction."""

_LOCKED = "select lease, revoked from worker where id = :worker for key share"

FENCE = f"select max(w.lease), {NOW}, 1 / count(*) from ({_LOCKED}) w"
"""Fails by a division when there is no such worker."""

TUNE = "select set_config(name, value, true) from (values {}) t(name, value)".format(
    ", ".join(str(tuple(setting.removeprefix("set ").split(" = "))) for setting in TUNED.split("; "))
)
"""The settings of our own connections, for the end of a transaction on one that was a user's up to now."""

ALIVE = "select 1 / count(*) from worker where id = :worker"
"""The same for the begin of a step, without a lock, which would keep operators out for as long as the step takes."""

EXTEND = f"update worker set lease = {NOW} + :lease where id = :worker"

_FENCED_OUT = f"""told as (insert into event(run, n, at, kind, name, worker)
  select o.run, coalesce((select max(s.n) from step s where s.run = o.run), 0), {NOW}, 'fenced_out', t.steps, :worker
  from out o join unnest(:touched, :steps) t(run, steps) on t.run = o.run)"""

# fmt: off
ONE = (
    "run", "n", "kind", "thread", "name", "began", "ended", "outcome", "tries", "error", "result", "plan", "place",
    "context", "again",
)
MANY = (
    "runs", "ns", "kinds", "threads", "names", "begans", "endeds", "outcomes", "attempts", "errors", "results", "plans",
    "places", "contexts", "retries",
)
# fmt: on
"""The parameters of a row and of many rows of steps, in the order of the fields of `Record`."""

_ROWS = """insert into step select t.run, t.n, t.kind, t.thread, t.name, t.t0, t.t1, t.outcome, t.attempts, t.error,
  t.result, t.plan, t.pos, t.ctx, t.retry from {rows}
  t(run, n, kind, thread, name, t0, t1, outcome, attempts, error, result, plan, pos, ctx, retry)"""

_ONE = _ROWS.format(rows=f"(values ({', '.join(':' + name for name in ONE)}))")
"""To take arrays apart costs a lone row more than it costs to write it."""

_MANY = _ROWS.format(rows=f"unnest({', '.join(':' + name for name in MANY)})")

_QUICK = f"""with w as materialized ({_LOCKED}),
 f as materialized (select max(w.lease) as lease, 1 / count(*) as fine from w where w.revoked = 0),{{locked}}
 put as ({{rows}} where (select f.fine from f) = 1)
 select f.lease, {NOW}, coalesce((select g.suspect = 0 from grp g where g.owner is null and g.gate = 0
   and g.due >= :floor order by g.due, g.id limit 1), false),
  (select min(r.wake) from run r where r.wake is not null){{also}} from f"""

_LOCK = """
 l as materialized (select r.id from run r where (select f.fine from f) = 1 and r.id = any(:locked) order by r.id
  for no key update),"""

QUICK = _QUICK.format(rows=_MANY, locked="", also="")
"""Fence, rows and a look at what is left, in one; fails by a division when there is no such worker, or when runs were
taken from it."""

QUICK_LOCKING = _QUICK.format(rows=_MANY, locked=_LOCK, also=", (select count(*) from l)")
"""The same, with a lock on runs, so that the next statement sees all signals to them."""

QUICK_ONE = _QUICK.format(rows=_ONE, locked="", also="")
QUICK_ONE_LOCKING = _QUICK.format(rows=_ONE, locked=_LOCK, also=", (select count(*) from l)")

LOCK_RUNS = "select id from run where id = any(:locked) order by id for no key update"

STEPS = f"""with out as (delete from revoked where worker = :worker returning run), {_FENCED_OUT},
 put as ({_MANY} where t.run <> all(array(select o.run from out o))) select run from out"""
"""Writes the rows of all runs but those that were taken from the worker, and says which those are."""

CALM = "update worker set revoked = 0 where id = :worker and revoked = 1"

OWN_STEPS = f"""with put as ({_MANY})
 select run, 1 / (run <> all(:touched))::int from revoked where worker = :worker"""
"""The rows of a step in a transaction of its own: fails when its run was taken from the worker."""

TOLD = f"with out as (select run from revoked where worker = :worker), {_FENCED_OUT} select run from out"

_MINE = "(select g.owner from grp g where g.id = {group}) = :worker"
"""Whether the worker holds a group: looked up by its number, and not among all that the worker holds or held."""

TAKEN = f"""update signal set fate = 'taken' where id = any(:taken) and fate is null and exists (
 select 1 from run r where r.id = signal.run and r.state + 0 = 0 and {_MINE.format(group="r.grp")})"""

ENDED = f"""with c as materialized (select {NOW} as now),
 e as (update run set state = case t.closed when 'suspended' then 3 else 2 end,
  closed = nullif(t.closed, 'suspended'), outcome = t.outcome,
  reason = coalesce(nullif(t.reason, ''), run.reason), error = t.error,
  ended = case when t.closed <> 'suspended' then c.now end, wake = null, waits = 0,
  expiry = case when t.closed = 'suspended' then run.expiry end
  from unnest(:runs, :in_groups, :closed, :outcomes, :reasons, :errors) t(run, grp, closed, outcome, reason, error), c
  where run.id = t.run and run.state + 0 = 0 and {_MINE.format(group="t.grp")}
  returning run.id, run.grp, run.key, run.state),
 u as (update signal set fate = 'run_ended' where run = any(:runs) and fate is null
  and run = any(array(select e.id from e where e.state = 2)) returning id, run, name),
 w as (insert into event(run, n, at, kind, name)
  select u.run, coalesce((select max(s.n) from step s where s.run = u.run), 0), c.now, 'unheard', u.name from u, c
  order by u.id)
 delete from grp where id = any(array(select e.grp from e where e.state = 2 and e.key is null))"""
"""The end of runs, of signals to them, and of their groups where these have no key, so that nobody submits to them."""

SUSPENDED = f"""insert into event(run, n, at, kind, outcome, error, why)
 select r.id, coalesce((select max(s.n) from step s where s.run = r.id), 0), {NOW}, 'suspended', r.outcome, r.error,
  r.reason from run r where r.id = any(:suspended) and r.state + 0 = 3 and {_MINE.format(group="r.grp")}"""

RESTED = f"""update run set state = case when z.woken then 0 else 1 end, wake = case when not z.woken then z.until end,
 waits = case when z.woken then 0 else z.waits end, woke = case when z.woken then {WOKE} else run.woke end,
 rested = case when z.keep = 1 then run.rested else z.last end
 from (select t.*, coalesce((select max(s.n) from step s where s.run = t.run), 0) as last,
   t.waits = 1 and exists (select 1 from signal s where s.run = t.run and s.fate is null and s.id > t.seen) as woken
  from unnest(:runs, :in_groups, :untils, :waits, :keeps, :seens) t(run, grp, until, waits, keep, seen)) z
 where run.id = z.run and run.state + 0 = 0 and {_MINE.format(group="z.grp")}"""

STATES = f"""insert into group_state(key, state, touched)
 select u.key, u.state, {NOW} from unnest(:keys, :states) u(key, state)
 where (select g.owner from grp g where g.key = u.key) = :worker order by u.key
 on conflict (key) do update set state = excluded.state, touched = excluded.touched"""

STOPPED = """update grp set keeper = f.keeper, gate = f.gate from unnest(:groups, :keepers, :gates) f(id, keeper, gate)
 where grp.id = any(:groups) and grp.id = f.id and coalesce(grp.owner, 0) = :worker"""

ORDER_GROUPS = (
    "select id from grp where id = any(:groups) and coalesce(owner, 0) = :worker order by id for no key update"
)
"""Waits for others that have locked groups, in the order in which all do; not for submissions."""

_LOCK_GROUPS = """select set_config('iocflow.sole', array(select g.id from grp g where g.id = any(:groups)
  and coalesce(g.owner, 0) = :worker order by g.id for update{skip})::text, true)"""

LOCK_GROUPS = _LOCK_GROUPS.format(skip="")
"""Locks groups, and notes them for the rest of the transaction."""

LOCK_SOLE_GROUPS = _LOCK_GROUPS.format(skip=" skip locked")
"""The same with those that nobody submits to just now."""

_SOLE = "= any(current_setting('iocflow.sole')::bigint[])"

EMPTIED_SOLE = EMPTIED.replace("in [groups]", _SOLE)
SETTLED_SOLE = SETTLED.replace("in [groups]", _SOLE)

LET_GO = UNSETTLED + " and grp.owner = :worker"
"""Lets go of the others. Who claims one that is empty after all lets go of it again."""


class Texts:
    """The statements of a commit, for the tables of one schema."""

    def __init__(self, schema: str) -> None:
        """Make them for `schema`, a quoted name."""
        self._schema = schema
        self.fence = self._statement("fence", FENCE)
        self.extend = self._statement("extend", EXTEND)
        self.quick = self._statement("quick", QUICK)
        self.quick_locking = self._statement("quick_locking", QUICK_LOCKING)
        self.quick_one = self._statement("quick_one", QUICK_ONE)
        self.quick_one_locking = self._statement("quick_one_locking", QUICK_ONE_LOCKING)
        self.steps = self._statement("steps", STEPS)
        self.calm = self._statement("calm", CALM)
        self.own_steps = self._statement("own_steps", OWN_STEPS)
        self.begin = self._statement("begin", "begin")
        self.alive = self._statement("alive", ALIVE)
        self.savepoint = self._statement("savepoint", f"savepoint {SAVEPOINT}")
        self.undo = self._statement("undo", f"rollback to savepoint {SAVEPOINT}")
        self.tune = self._statement("tune", TUNE)
        self.told = self._statement("told", TOLD)
        self.release = self._statement("release", f"release savepoint {SAVEPOINT}")
        self.end = self._statement("end", "commit")
        self.taken = self._statement("taken", TAKEN)
        self.ended = self._statement("ended", ENDED)
        self.suspended = self._statement("suspended", SUSPENDED)
        self.lock_runs = self._statement("lock_runs", LOCK_RUNS)
        self.rested = self._statement("rested", RESTED)
        self.states = self._statement("states", STATES)
        self.stopped = self._statement("stopped", STOPPED)
        self.order_groups = self._statement("order_groups", ORDER_GROUPS)
        self.lock_groups = self._statement("lock_groups", LOCK_GROUPS)
        self.lock_sole_groups = self._statement("lock_sole_groups", LOCK_SOLE_GROUPS)
        self.emptied = self._statement("emptied", EMPTIED_SOLE)
        self.settled = self._statement("settled", SETTLED_SOLE)
        self.let_go = self._statement("let_go", LET_GO)
        self.claim = self._statement("claim", CLAIM)
        self.claim_plain = self._statement("claim_plain", CLAIM_PLAIN)
        self.look = self._statement("look", LOOK)
        self.load = self._statement("load", LOAD)

    def _statement(self, id: str, text: str) -> Statement:
        return Statement(f"iocflow_{id}", named(text, self._schema), _TYPES)
