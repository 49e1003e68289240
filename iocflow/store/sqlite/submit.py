"""Adding runs to a SQLite store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from iocflow.store.contract import AGEING, Accepted, Submission
from iocflow.store.sql.groups import settle
from iocflow.store.sql.schema import ASLEEP, EMPTY, OPEN, READY
from iocflow.store.sqlite.insert import insert
from iocflow.store.sqlite.tables import SqliteTables

KNOWN = """select json_group_array(json_array(r.submitter, r.number, r.id, r.digest)) from json_each(?) j
 join run r on r.submitter = json_extract(j.value, '$[0]') and r.number = json_extract(j.value, '$[1]')"""

GROUPS = (
    """select json_group_array(json_array(g.key, g.id, g.gate)) from json_each(?) j join grp g on g.key = j.value"""
)

RUN = "run(id, grp, key, processor, due, priority, state, wake, rested, body, digest, submitter, number, submitted, \
not_before, deadline, start_by, expiry)"

GRP = "grp(id, key, due, gate)"


def submit(tables: SqliteTables, submissions: Sequence[Submission]) -> list[Accepted]:
    """Add runs within the open transaction."""
    now = tables.now
    known = _known(tables, submissions)
    (last,) = tables.sql("select coalesce(max(id), 0) from run").fetchone()
    accepted, new = [], []
    for one in submissions:
        identity = (one.submitter, one.number)
        there = known.get(identity)
        if there is not None:
            accepted.append(Accepted(there[0], "known" if there[1] == one.digest else "conflict"))
            continue
        last += 1
        known[identity] = (last, one.digest)
        accepted.append(Accepted(last, "new"))
        new.append((last, one))
    if new:
        _add(tables, new, now)
    return accepted


def _known(tables: SqliteTables, submissions: Sequence[Submission]) -> dict[tuple[str, str], tuple[int, str]]:
    """Return the ids and digests of those that are there already."""
    pairs = json.dumps([(one.submitter, one.number) for one in submissions])
    (found,) = tables.sql(KNOWN, (pairs,)).fetchone()
    return {(submitter, number): (id, digest) for submitter, number, id, digest in json.loads(found)}


def _add(tables: SqliteTables, new: Sequence[tuple[int, Submission]], now: float) -> None:
    """Insert the rows of new runs, and of groups that are not there."""
    keys = json.dumps(sorted({one.group for _, one in new if one.group is not None}))
    (found,) = tables.sql(GROUPS, (keys,)).fetchone()
    known = {key: (id, gate) for key, id, gate in json.loads(found)}
    groups: dict[int, list[Any]] = {}
    runs, opened = [], set()
    for id, one in new:
        early = one.not_before is not None and one.not_before > now
        due = max(now, one.not_before or now) - one.priority * AGEING
        group, gate = known.get(one.group, (id, None)) if one.group is not None else (id, None)
        if group == id:
            groups[id] = [id, one.group, due, EMPTY if early else OPEN]
            if one.group is not None:
                known[one.group] = (id, None)
        elif not early:
            if gate == EMPTY:
                opened.add(group)
            elif gate is None and groups[group][3] == EMPTY:
                groups[group][2:] = [due, OPEN]
        limits = [limit for limit in (one.deadline, one.start_by) if limit is not None]
        # fmt: off
        runs.append((
            id, group, one.group, one.processor, due, one.priority, ASLEEP if early else READY,
            one.not_before if early else None, 0 if early else None, one.body, one.digest, one.submitter, one.number,
            now, one.not_before, one.deadline, one.start_by, min(limits, default=None),
        ))
        # fmt: on
    insert(tables, GRP, list(groups.values()))
    insert(tables, RUN, runs)
    settle(tables, sorted(opened))
