"""Bringing runs to their groups that were submitted in a caller's transaction, which keeps away from groups."""

from __future__ import annotations

from iocflow.store.postgres.tables import PostgresTables
from iocflow.store.sql.groups import settle
from iocflow.store.sql.upkeep import AT_ONCE

_LOOSE = "select id, key from run where grp = 0 and state = 1 order by id limit :limit {skip}"

_MADE = """insert into grp(id, key, due, gate) select nextval('{schema}.run_id_seq'), f.key, f.due, 1 from (
 select key, min(due) as due from run where id in [runs] group by key order by key) f
 on conflict (key) where key is not null do nothing"""

_ATTACHED = """update run set grp = g.id, state = case when run.not_before > :now then 1 else 0 end,
 wake = case when run.not_before > :now then run.not_before end,
 woke = case when g.owner is not null then g.turn end, rested = case when run.not_before > :now then 0 end
 from grp g where run.id in [runs] and g.key = run.key and g.id in [groups]"""


def attach(tables: PostgresTables) -> None:
    """Give each loose run its group; one whose group goes away meanwhile waits for the next time."""
    loose = tables.rows(_LOOSE, limit=AT_ONCE)
    if not loose:
        return
    runs = [run for run, _ in loose]
    tables.write(_MADE, runs=runs)
    found = tables.rows("select id from grp where key = any(:keys) order by id for update", keys=[k for _, k in loose])
    groups = [group for (group,) in found]
    tables.write(_ATTACHED, runs=runs, groups=groups, now=tables.now)
    settle(tables, groups)
