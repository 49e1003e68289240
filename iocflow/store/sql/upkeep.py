"""What the passing of time asks of a store: wake the sleeping, time out the late, take over from the dead."""

from __future__ import annotations

from iocflow.store.contract import Swept
from iocflow.store.sql.groups import DEADLINE, SET_SUSPECT, ask, close, journal, ready, settle, suspend
from iocflow.store.sql.schema import CLOSED, HEAD, SUSPENDED
from iocflow.store.sql.tables import Held, Tables

AT_ONCE = 500
"""How many runs a call wakes or times out at most, so that no transaction grows without bound."""

LOOK_AGAIN = 1.0
"""Seconds until a run in hand that was not begun and may have expired is looked at again; its worker looks, too."""

NOT_STARTED = "was not started in time"
POISON = "poison"


def wake(tables: Tables) -> int:
    """Wake runs whose time has come; return how many."""
    due = tables.rows(
        "select id, grp from run where wake <= :now order by wake limit :limit {skip}", now=tables.now, limit=AT_ONCE
    )
    if due:
        ready(tables, [run for run, _ in due])
        settle(tables, sorted({group for _, group in due}))
    return len(due)


def expire(tables: Tables) -> int:
    """Time out runs that are past their deadline or `start_by`; return how many."""
    return sum(time_out(tables, run) for run in late(tables))


def late(tables: Tables) -> list[int]:
    """Return the runs whose time limits have to be looked at."""
    sql = "select id from run where expiry <= :now order by expiry limit :limit"
    return [run for (run,) in tables.rows(sql, now=tables.now, limit=AT_ONCE)]


def time_out(tables: Tables, run: int) -> bool:
    """Time out one run, if it still has to be."""
    held = tables.hold(run, revoke=True)
    return held is not None and _expire(tables, held)


def _expire(tables: Tables, held: Held) -> bool:
    if held.state == CLOSED or held.ask in ("cancel", "timeout"):
        return False
    if held.deadline is not None and held.deadline <= tables.now:
        if held.state != SUSPENDED and not held.may_have_begun:
            close(tables, held, "failed", "timeout", DEADLINE)
        else:
            journal(tables, held.id, "timeout", why=DEADLINE, worker=held.owner)
            ask(tables, held, "timeout", DEADLINE)
        return True
    if held.start_by is None or held.start_by > tables.now:
        return False
    if held.n == 0 and held.state != SUSPENDED and not held.in_hand:
        close(tables, held, "failed", "expired", NOT_STARTED)
        return True
    again = tables.now + LOOK_AGAIN if held.n == 0 and held.state != SUSPENDED else held.deadline
    tables.write("update run set expiry = :again where id = :run", again=again, run=held.id)
    return False


def sweep(tables: Tables, deliveries: int, by: int) -> Swept:
    """Do all of it, once."""
    timeouts = expire(tables)
    wake(tables)
    dead = [worker for worker in tables.dead() if worker != by]
    lost, poisoned = 0, 0
    for worker in dead:
        blamed = take_over(tables, worker, deliveries)
        lost += len(blamed)
        poisoned += sum(blamed)
    return Swept(len(dead), lost, poisoned, timeouts)


def take_over(tables: Tables, worker: int, deliveries: int) -> list[bool]:
    """Free what a dead worker held; of each run that is blamed, return whether it was suspended as poison."""
    held = tables.rows(f"select g.id, {HEAD} from grp g where g.owner = :worker order by g.id", worker=worker)
    blamed = [_blame(tables, run, group, worker, deliveries) for group, run in held if run is not None]
    settle(tables, [group for group, _ in held], worker=worker, suspect=SET_SUSPECT)
    forget(tables, worker)
    return blamed


def _blame(tables: Tables, run: int, group: int, worker: int, deliveries: int) -> bool:
    tables.write("update run set deliveries = deliveries + 1 where id = :run", run=run)
    journal(tables, run, "lost", worker=worker)
    row = tables.row("select deliveries from run where id = :run", run=run)
    poison = row is not None and row[0] >= deliveries
    if poison:
        suspend(tables, run, group, POISON, worker)
    return poison


def retire(tables: Tables, worker: int) -> None:
    """End a worker, and give back what it holds; whom it had under suspicion stays so."""
    held = [group for (group,) in tables.rows("select id from grp where owner = :worker order by id", worker=worker)]
    settle(tables, held, worker=worker)
    forget(tables, worker)


def forget(tables: Tables, worker: int) -> None:
    """Delete a worker that holds nothing."""
    tables.write("delete from revoked where worker = :worker", worker=worker)
    tables.write("delete from worker where id = :worker", worker=worker)
