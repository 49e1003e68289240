"""What operators and senders of signals do to a run: shared by both dialects, each journalled with who and why."""

from __future__ import annotations

from collections.abc import Mapping

from iocflow.store.sql.groups import DEADLINE, ask, close, journal, ready, settle
from iocflow.store.sql.places import CONTEXT, START, floor, live
from iocflow.store.sql.schema import ASLEEP, CLOSED, SUSPENDED
from iocflow.store.sql.tables import Held, Tables

RETRIED = """update run set state = 0, closed = null, outcome = '', reason = '', error = null, ended = null,
 deliveries = 0, grp = :grp, woke = (select g.turn from grp g where g.id = :grp and g.owner is not null), ask = :ask,
 asked = :n, deadline = :deadline, expiry = :expiry,
 rested = case when state = 2 then :n else rested end where id = :run"""
"""A run that failed is not in progress any more: another one of its group may be."""


def fenced_out(tables: Tables, worker: int, runs: Mapping[int, str]) -> None:
    """Journal that what a worker did about runs was dropped: by run, the steps that it was."""
    for run, name in sorted(runs.items()):
        journal(tables, run, "fenced_out", name=name, worker=worker)


def signal(tables: Tables, run: int, name: str, data: bytes) -> bool:
    """Keep a signal, and wake the run if it waits for one; False when it is closed, or there is none."""
    held = tables.hold(run, revoke=False)
    if held is None:
        return False
    fate = "run_ended" if held.state == CLOSED else None
    tables.write(
        "insert into signal(run, name, data, at, fate) values (:run, :name, :data, :now, :fate)",
        run=run,
        name=name,
        data=data,
        now=tables.now,
        fate=fate,
    )
    journal(tables, run, "signal", name=name, outcome=fate or "")
    if held.state == ASLEEP and held.waits:
        ready(tables, [run])
        settle(tables, [held.group])
    return fate is None


def cancel(tables: Tables, run: int, who: str, why: str) -> bool:
    """Close a run that was not begun, or is suspended; ask any other open one to end. False when it is closed."""
    held = tables.hold(run, revoke=True)
    if held is None or held.state == CLOSED:
        return False
    if held.state != SUSPENDED and held.ask in ("cancel", "timeout"):
        return True
    journal(tables, run, "cancel", who=who, why=why, worker=held.owner)
    if held.state == SUSPENDED or not held.may_have_begun:
        close(tables, held, "cancelled", "cancelled", why)
    else:
        ask(tables, held, "cancel", why)
    return True


def drop(tables: Tables, run: int, who: str, why: str) -> bool:
    """Close a suspended run as failed; False when it is not suspended."""
    held = tables.hold(run, revoke=True)
    if held is None or held.state != SUSPENDED:
        return False
    journal(tables, run, "dropped", who=who, why=why)
    close(tables, held, "failed", "error", why)
    return True


def retry(tables: Tables, run: int, who: str, why: str, done: bool) -> bool:
    """Let a failed or suspended run go on from the last places that allow it; False when it is neither, or purged.

    `done` is for a run that was suspended because a step is in doubt, and False for any other.
    """
    held = tables.hold(run, revoke=True)
    if held is None or held.purged or not (held.state == SUSPENDED or held.closed == "failed"):
        return False
    row = tables.row("select outcome from run where id = :run", run=run)
    outcome = row and row[0]
    if done and outcome != "in_doubt":
        return False
    if held.state == CLOSED:
        _journal_end(tables, run)
    journal(tables, run, "retry", outcome="done" if done else "again", who=who, why=why)
    n = _repeat_places(tables, held, failed=held.state == CLOSED or outcome == "error")
    group = held.group if held.state == SUSPENDED else _group_of(tables, held)
    late = held.deadline is not None and held.deadline <= tables.now
    told = held.state == SUSPENDED and held.ask == "timeout" and held.asked == held.n
    flagged = held.state == SUSPENDED and (late or told)
    if flagged and not told:
        journal(tables, run, "timeout", why=DEADLINE)
    deadline = None if late and not flagged else held.deadline
    tables.write(
        RETRIED,
        run=run,
        grp=group,
        ask="timeout" if flagged else "done" if done else "again",
        n=n,
        deadline=deadline,
        expiry=None if flagged else deadline,
    )
    settle(tables, [group])
    return True


def _journal_end(tables: Tables, run: int) -> None:
    """Keep the end that is about to be undone; of the last one the run's own row tells."""
    tables.write(
        "insert into event(run, n, at, kind, outcome, error, why) select r.id,"
        " coalesce((select max(s.n) from step s where s.run = r.id), 0), r.ended, 'ended', r.outcome, r.error, r.reason"
        " from run r where r.id = :run",
        run=run,
    )


def _repeat_places(tables: Tables, held: Held, *, failed: bool) -> int:
    """Repeat the last places, of a run that failed those that allow a retry; return the number of the last row.

    A step in doubt stays known as such.
    """
    places = live(
        (str(thread), int(n), int(plan), str(pos), str(name), str(kind), int(retry))
        for thread, n, plan, pos, name, kind, retry in tables.rows(
            "select thread, n, plan, pos, name,"
            " case when kind in ('begun', 'memo', 'doubt') then 'doubt' else 'mark' end, retry from step"
            " where run = :run and pos is not null and retry >= :least order by n",
            run=held.id,
            least=int(failed),
        )
    )
    number = held.n
    for thread, n, plan, pos, name, kind, retry in places or [("", 0, 0, START, "", "mark", 1)]:
        context = tables.row(CONTEXT, run=held.id, thread=thread, n=n, floor=floor(places, thread))
        number += 1
        tables.write(
            "insert into step(run, n, kind, thread, name, t0, t1, outcome, attempts, plan, pos, ctx, retry)"
            " values (:run, :n, :kind, :thread, :name, :now, :now, '', 0, :plan, :pos, :ctx, :retry)",
            run=held.id,
            n=number,
            kind=kind,
            thread=thread,
            name=name,
            now=tables.now,
            plan=plan,
            pos=pos,
            ctx=context and context[0],
            retry=retry,
        )
    return number


def _group_of(tables: Tables, held: Held) -> int:
    """Return the group for a closed run that is opened again, made anew when it is gone."""
    while held.key is not None:
        row = tables.row("select id from grp where key = :key {lock}", key=held.key)
        if row is not None:
            return int(row[0])
        if _make_group(tables, held):
            return held.id
    _make_group(tables, held)
    return held.id


def _make_group(tables: Tables, held: Held) -> int:
    return tables.write(
        "insert into grp(id, key, due) values (:id, :key, :due) on conflict do nothing",
        id=held.id,
        key=held.key,
        due=held.due,
    )


def purge(tables: Tables, before: float, limit: int) -> int:
    """Drop bodies, contexts and signals of closed runs, the oldest first, and the states of groups that were left."""
    rows = tables.rows(
        "select id from run where state = 2 and purged is null and ended < :before order by ended limit :limit {skip}",
        before=before,
        limit=limit,
    )
    runs = [run for (run,) in rows]
    if runs:
        tables.write("update run set body = null, purged = :now where id in [runs]", now=tables.now, runs=runs)
        tables.write("update step set ctx = null where run in [runs] and ctx is not null", runs=runs)
        tables.write("update step set result = null where run in [runs] and kind = 'published'", runs=runs)
        tables.write("update signal set data = null where run in [runs]", runs=runs)
    tables.write(
        "delete from group_state where touched < :before"
        " and not exists (select 1 from grp g where g.key = group_state.key)",
        before=before,
    )
    return len(runs)
