"""Where runs stand that wait, or with which workers died, as the places say that were recorded last."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from iocflow.advance import advance, start
from iocflow.plan import Plan, Position
from iocflow.store.reports import RunStatus, Waiting
from iocflow.store.sql.places import START, live
from iocflow.store.sql.tables import Tables
from iocflow.store.sql.upkeep import POISON

_PLACES = """select s.thread, s.n, s.run, s.plan, s.pos from step s where s.run in [runs] and s.pos is not null
 and s.plan <> 0
 and s.n >= coalesce((select max(o.n) from step o where o.run = s.run and o.thread = '' and o.pos is not null), 0)
 order by s.n"""
"""What is on record of a run since its outer thread moved on last; a start that was written anew has no plan."""


def standing(tables: Tables, found: Sequence[RunStatus]) -> list[RunStatus]:
    """Return runs, those that wait with what they wait for, and these and the poisonous ones with their activity.

    A worker writes down where a run goes on before it does so: when workers died, they died there. Before the first
    record of a run it was at the start of the plan that its processor had last.
    """
    wanted = [run.id for run in found if run.state == "waiting" or (run.state, run.reason) == ("suspended", POISON)]
    if not wanted:
        return list(found)
    rows: dict[int, list[tuple[Any, ...]]] = {}
    for row in tables.rows(_PLACES, runs=wanted):
        rows.setdefault(row[2], []).append(tuple(row))
    new = {run.processor for run in found if run.id in wanted and run.id not in rows}
    first = {processor: _newest_plan(tables, processor) for processor in sorted(new)}
    used = sorted({row[3] for of_run in rows.values() for row in of_run} | {plan for plan in first.values() if plan})
    texts = tables.rows("select id, plan from plan where id in [plans]", plans=used)
    plans = {id: json.loads(text) for id, text in texts}
    for run in found:
        if run.id in wanted and run.id not in rows and first[run.processor] is not None:
            rows[run.id] = [("", 0, run.id, first[run.processor], START)]
    return [_told(run, live(rows[run.id]), plans) if run.id in rows else run for run in found]


def _newest_plan(tables: Tables, processor: str) -> int | None:
    """Return the plan of a processor that was stored last, which is done before its first run is begun with it."""
    row = tables.row("select max(id) from plan where processor = :processor", processor=processor)
    return None if row is None or row[0] is None else int(row[0])


def _told(run: RunStatus, places: Sequence[Sequence[Any]], plans: Mapping[int, Plan]) -> RunStatus:
    known = [(plans[plan], thread, pos) for thread, _, _, plan, pos in places if plan in plans]
    waits = [one for place in known if (one := _stands(*place))]
    activity = ", ".join(dict.fromkeys(one.activity for one in waits)) or run.activity
    return dataclasses.replace(run, activity=activity, waits=tuple(waits) if run.state == "waiting" else ())


def _stands(plan: Plan, thread: str, text: str) -> Waiting | None:
    """Return where a thread of control goes on; None when only those do that it forked."""
    stored = json.loads(text)
    plain = isinstance(stored, int)
    position: Position = _plain(plan, stored) if plain else stored["position"]
    until: float | None = None if plain else stored.get("until")
    command, _ = advance(plan, position, None)
    signal = command["name"] if command["do"] == "wait" else ""
    if command["do"] == "sleep":
        command, _ = advance(plan, position, {})
    elif command["do"] in ("fork", "end"):
        return None
    return Waiting(signal, until, command.get("path", ""), thread)


def _plain(plan: Plan, at: int) -> Position:
    """Return the place that is written as a number: a step of the main processor, or the start."""
    position = start(plan)
    if at:
        position["stack"][0]["at"] = at
    return position
