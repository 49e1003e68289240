"""What can be asked about runs: shared by both dialects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from iocflow.store.contract import Entry, RunStatus, Signal, State
from iocflow.store.errors import StoreError
from iocflow.store.sql import rows
from iocflow.store.sql.places import CONTEXT
from iocflow.store.sql.schema import HEAD
from iocflow.store.sql.standing import standing
from iocflow.store.sql.tables import Tables

READY = "r.state = 0"
ASLEEP = "r.state in (1, 3) and r.state = 1"
SUSPENDED = "r.state in (1, 3) and r.state = 3"
BEGUN = "exists (select 1 from step s where s.run = r.id)"
AT_END = "r.state = 2"
CLOSED = AT_END + " and r.closed = '{}'"
IN_GROUP = "r.grp = (select g.id from grp g where g.key = :key)"

STORED: dict[State, tuple[str, ...]] = {
    "queued": (READY, f"{ASLEEP} and not {BEGUN}"),
    "running": (READY,),
    "waiting": (f"{ASLEEP} and {BEGUN}",),
    "suspended": (SUSPENDED,),
    "completed": (CLOSED.format("completed"),),
    "failed": (CLOSED.format("failed"),),
    "cancelled": (CLOSED.format("cancelled"),),
}
"""Where the runs of a state are found, in the terms of an index."""

RUNNING = f"select count(*) from grp g where g.owner is not null and {HEAD} is not null"


def plan_of(tables: Tables, id: int) -> tuple[str, str]:
    """Return the hash and the text of a stored plan.

    Raises:
        StoreError: There is none of that id.
    """
    row = tables.row("select hash, plan from plan where id = :id", id=id)
    if row is None:
        raise StoreError(f"there is no plan {id}")
    return row[0], row[1]


def find(tables: Tables, submitter: str, number: str) -> int | None:
    """Return the id of the run with that identity."""
    row = tables.row(
        "select id from run where submitter = :submitter and number = :number", submitter=submitter, number=number
    )
    return None if row is None else int(row[0])


def status(tables: Tables, run: int) -> RunStatus | None:
    """Return a run's status."""
    row = tables.row(f"select {rows.STATUS} from v_run_status where id = :run", run=run)
    return None if row is None else standing(tables, [rows.status(row, tables.now)])[0]


def context(tables: Tables, run: int) -> bytes | None:
    """Return the last recorded context of the outer thread."""
    row = tables.row(CONTEXT, run=run, thread="", n=2**62, floor=0)
    return None if row is None else rows.data(row[0])


def signals(tables: Tables, runs: Sequence[int]) -> dict[int, list[Signal]]:
    """Return the signals to these runs that were not consumed yet, in order."""
    found: dict[int, list[Signal]] = {}
    sql = "select run, id, name, data from signal where fate is null and run in [runs] order by id"
    for run, id, name, data in tables.rows(sql, runs=list(runs)):
        found.setdefault(run, []).append(Signal(id, name, bytes(data)))
    return found


def history(tables: Tables, run: int) -> list[Entry]:
    """Return a run's journal."""
    return [
        rows.entry(row)
        for row in tables.rows(f"select {rows.ENTRY} from v_journal where run = :run order by number", run=run)
    ]


class Filters(NamedTuple):
    """What runs are asked for."""

    states: Sequence[State]
    processor: str | None
    submitter: str | None
    group: str | None


def runs(tables: Tables, filters: Filters, after: int, limit: int, *, newest: bool) -> list[RunStatus]:
    """Return runs by id, the newest last: the first so many, or the newest."""
    order = "desc" if newest else "asc"
    wanted = {"processor": filters.processor, "submitter": filters.submitter, "key": filters.group}
    values: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    own = " and ".join(["r.id > :after", *(f"r.{name} = :{name}" for name in values)])
    if filters.states:
        ids = " union ".join(f"select r.id from run r where {place} and {own}" for place in _places(filters))
        named = {f"state{i}": state for i, state in enumerate(filters.states)}
        where = f"id in ({ids}) and state in ({', '.join(':' + name for name in named)})"
        values |= named
    else:
        where = f"id in (select r.id from run r where {own} order by r.id {order} limit :limit)"
    sql = f"select {rows.STATUS} from v_run_status where {where} order by id {order} limit :limit"
    told = [rows.status(row, tables.now) for row in tables.rows(sql, after=after, limit=limit, **values)]
    found = standing(tables, told)
    return found[::-1] if newest else found


def _places(filters: Filters) -> list[str]:
    """Return where the runs are found; those of a group that are open by the group's number, which has an index."""
    places = dict.fromkeys(place for state in filters.states for place in STORED[state])
    if filters.group is None:
        return list(places)
    return [place if place.startswith(AT_END) else f"{place} and {IN_GROUP}" for place in places]


def counts(tables: Tables) -> dict[str, int]:
    """Return how many runs are in each state; of each group that is held, one run is running."""

    def count(sql: str) -> int:
        row = tables.row(sql)
        return 0 if row is None else int(row[0])

    found: dict[str, int] = {
        state: sum(count(f"select count(*) from run r where {place}") for place in places)
        for state, places in STORED.items()
    }
    found["running"] = count(RUNNING)
    found["queued"] -= found["running"]
    return found
