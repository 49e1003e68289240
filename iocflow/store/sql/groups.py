"""What becomes of a run and its group when it stops being in hand: shared by both dialects."""

from __future__ import annotations

from iocflow.store.sql.schema import EMPTY, IN_PROGRESS, NEXT, OPEN, QUARANTINED, SUSPENDED, WOKE
from iocflow.store.sql.tables import Held, Tables

DEADLINE = "the deadline has passed"
"""The reason of a timeout."""

EMPTIED = """delete from grp where id in [groups] and (owner is null or owner = :worker)
 and (select r.id from run r where r.grp = grp.id and r.state = 0 limit 1) is null
 and (select r.id from run r where r.grp = grp.id and r.state in (1, 3) limit 1) is null"""
"""Deletes the groups among `groups` that have no open run."""

KEEP_SUSPECT, CLEAR_SUSPECT, SET_SUSPECT = 0, 1, 2
"""What a settlement does to a group's suspicion; clearing it spares a group whose run was left in the middle."""

_SETTLED = f"""update grp set owner = null, keeper = f.keeper, gate = f.gate,
 due = coalesce((select r.due from run r where r.id = f.head), grp.due),
 suspect = case when f.gate = 3 then 0 when :suspect = 2 then 1
  when :suspect = 1 and (f.gate <> 0 or f.keeper is null) then 0 else grp.suspect end
 from (select h.id, h.head, case when h.stays <> 0 then h.stays when h.head is null then %d else 0 end as gate,
  case when h.stays <> 0 then h.keeper else h.progress end as keeper
  from (select g.id, g.keeper, {NEXT} as head, {IN_PROGRESS} as progress,
   case when g.gate = 2 and (select k.state from run k where k.id = g.keeper) = 1 then 2
    when g.gate = 3 and (select k.state from run k where k.id = g.keeper) = 3 then 3 else 0 end as stays
   from grp g where g.id in [groups] and (g.owner is null or g.owner = :worker)) h) f
 where grp.id = f.id"""

SETTLED = _SETTLED % EMPTY
"""Makes the rows of `groups` say what their runs are, and lets go of those that `worker` holds."""

UNSETTLED = _SETTLED % OPEN
"""The same while a submission to them may be under way: none is taken for empty."""

JOURNAL = """insert into event(run, n, at, kind, name, outcome, error, who, why, worker) values
 (:run, coalesce((select max(s.n) from step s where s.run = :run), 0), :now, :kind, :name, :outcome, :error, :who, :why,
 :worker)"""

_UNHEARD = """insert into event(run, n, at, kind, name)
 select s.run, coalesce((select max(t.n) from step t where t.run = s.run), 0), :now, 'unheard', s.name
 from signal s where s.fate is null and s.run in [runs] order by s.id"""


def settle(tables: Tables, groups: list[int], *, worker: int = 0, suspect: int = KEEP_SUSPECT) -> None:
    """Let go of groups that `worker` or nobody holds: each is deleted, or its row says again what its runs are."""
    if groups:
        tables.lock_groups(groups)
        if tables.write(EMPTIED, groups=groups, worker=worker) < len(groups):
            tables.write(SETTLED, groups=groups, worker=worker, suspect=suspect)


def journal(  # noqa: PLR0913 - the columns of an event
    tables: Tables,
    run: int,
    kind: str,
    *,
    name: str = "",
    outcome: str = "",
    error: str | None = None,
    who: str = "",
    why: str = "",
    worker: int | None = None,
) -> None:
    """Write an event of a run."""
    values = {"name": name, "outcome": outcome, "error": error, "who": who, "why": why, "worker": worker}
    tables.write(JOURNAL, run=run, now=tables.now, kind=kind, **values)


def unheard(tables: Tables, runs: list[int]) -> None:
    """Journal the signals that runs which end have not taken, and keep them as dead."""
    if tables.write(_UNHEARD, runs=runs, now=tables.now):
        tables.write("update signal set fate = 'run_ended' where fate is null and run in [runs]", runs=runs)


def ready(tables: Tables, runs: list[int]) -> None:
    """Make sleeping runs ready; their groups' settlement is the caller's."""
    tables.write(f"update run set state = 0, wake = null, waits = 0, woke = {WOKE} where id in [runs]", runs=runs)


def close(tables: Tables, held: Held, closed: str, outcome: str, reason: str) -> None:
    """Close an open run at once, and take it alone from a worker that may have it in hand."""
    tables.write(
        "update run set state = 2, closed = :closed, outcome = :outcome, reason = :reason, ended = :now, wake = null,"
        " waits = 0, expiry = null where id = :run",
        closed=closed,
        outcome=outcome,
        reason=reason,
        now=tables.now,
        run=held.id,
    )
    unheard(tables, [held.id])
    if held.in_hand:
        revoke(tables, held, only=held.id)
    else:
        settle(tables, [held.group])


def ask(tables: Tables, held: Held, what: str, reason: str) -> None:
    """Ask a run that was begun to end: it is taken from its worker, and ready to go on; a suspended one stays so."""
    tables.write(
        "update run set ask = :what, asked = :n, reason = case when state = 3 then reason else :reason end,"
        f" state = case when state = 3 then 3 else 0 end, woke = case when state = 1 then {WOKE} else woke end,"
        " wake = null, waits = 0, expiry = null where id = :run",
        what=what,
        n=held.n,
        reason=reason,
        run=held.id,
    )
    if held.in_hand:
        revoke(tables, held)
    elif held.state != SUSPENDED:
        settle(tables, [held.group])


def revoke(tables: Tables, held: Held, *, only: int | None = None) -> None:
    """Take from its worker the whole group with all runs that it may have in hand, or just one of these."""
    if only is not None:
        tables.write(
            "insert into revoked(worker, run, grp) values (:worker, :run, :grp) on conflict do nothing",
            worker=held.owner,
            run=only,
            grp=held.group,
        )
        return
    tables.write(
        "insert into revoked(worker, run, grp) select :worker, r.id, r.grp from run r"
        " where r.grp = :grp and r.state = 0 and r.id <= :upto"
        " and (r.woke is null or r.woke < (select g.turn from grp g where g.id = :grp)) on conflict do nothing",
        worker=held.owner,
        grp=held.group,
        upto=held.upto,
    )
    assert held.owner is not None
    settle(tables, [held.group], worker=held.owner)


def suspend(tables: Tables, run: int, group: int, reason: str, worker: int | None = None) -> None:
    """Suspend a run; its group's settlement is the caller's."""
    tables.write(
        f"update run set state = {SUSPENDED}, reason = :reason, wake = null, waits = 0 where id = :run",
        run=run,
        reason=reason,
    )
    tables.write(f"update grp set gate = {QUARANTINED}, keeper = :run where id = :grp", run=run, grp=group)
    journal(tables, run, "suspended", why=reason, worker=worker)
