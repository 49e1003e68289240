"""Submitting to PostgreSQL: one round trip, whether or not in a transaction of the caller's.

A batch locks what it shares with others in one order, first groups by their keys, then identities, and never waits for
a worker that waits for it. A caller's transaction may stay open for long: there a run with a key is put down loose,
without touching its group, and is brought to it when a worker sees the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import errors
from psycopg.rows import tuple_row

from iocflow.store.contract import AGEING, Accepted, Submission
from iocflow.store.errors import StoreLostError
from iocflow.store.postgres.connections import Connection
from iocflow.store.postgres.pipeline import Call, Pipelines, Row, Statement, call
from iocflow.store.postgres.sql import NOW, for_driver, named

_COLUMNS = {
    "key": "text",
    "processor": "text",
    "body": "bytea",
    "digest": "text",
    "submitter": "text",
    "number": "text",
    "priority": "bigint",
    "not_before": "double precision",
    "deadline": "double precision",
    "start_by": "double precision",
}
"""What is given of a run, and its type; `many_key` and so on are the parameters for many runs."""

_MANY = {f"many_{name}": f"{type}[]" for name, type in _COLUMNS.items()}
_TYPES = {"shift": "double precision", "channel": "text", **_COLUMNS, **_MANY}

_MANY_ROWS = f"unnest({', '.join(f':{name}::{type}' for name, type in _MANY.items())}) with ordinality"
_ONE_ROW = f"(values ({', '.join(f':{name}::{type}' for name, type in _COLUMNS.items())}, 1))"
"""To take arrays apart costs a lone run as much as to write it."""

_ATTEMPTS = 20

_GIVEN = f"""clock as materialized (select {{clock}}),
 u as materialized (select nextval('{{{{schema}}}}.run_id_seq') as id, t.*, clock.now,
  coalesce(t.not_before > clock.now, false) as asleep,
  greatest(clock.now, t.not_before) - t.priority * {AGEING} as due,
  (select o.id from run o where o.submitter = t.submitter and o.number = t.number) as known
  from {{rows}} t({", ".join(_COLUMNS)}, place), clock)"""

_NEW = """n as (insert into run(id, grp, key, processor, due, priority, state, wake, body, digest, submitter, number,
  submitted, not_before, deadline, start_by, expiry, rested, woke)
  select u.id, {group}, u.key, u.processor, u.due, u.priority, case when u.asleep or {shut} then 1 else 0 end,
   {wake}, u.body, u.digest, u.submitter, u.number, u.now, u.not_before, u.deadline, u.start_by,
   least(u.deadline, u.start_by), case when u.asleep then 0 end, {turn}
  from u {groups} and u.known is null order by u.submitter, u.number
  on conflict (submitter, number) do nothing returning id, key, state, due),
 alone as (insert into grp(id, due, gate) select id, due, state from n where key is null)"""
"""A group without a key has the number of its run; its gate is open (0) or empty (1), as the run is ready or asleep.
What is there already is not inserted: that would wait for a worker which is just ending it, and may wait for us."""

_FOUND = """select u.place, n.id, u.known, (select o.digest from run o where o.id = u.known)"""

_CLOCK = NOW.replace("clock_timestamp", "transaction_timestamp") + " as now, set_config('lock_timeout', '500ms', true)"
"""One time for all statements of a transaction, which is short: who waits for somebody's identity holds locks on groups
meanwhile, so it gives up soon, and tries again."""

_MAKE_GROUPS = f"""with {_GIVEN.format(clock=_CLOCK, rows="{rows}")} insert into grp(id, key, due, gate)
 select nextval('{{schema}}.run_id_seq'), f.key, f.due, f.gate from (
  select u.key, (array_agg(u.due order by u.asleep, u.place))[1] as due, min(u.asleep::int) as gate from u
   where u.key is not null and u.known is null and (select g.id from grp g where g.key = u.key) is null
  group by u.key order by u.key) f
 on conflict (key) where key is not null do nothing"""

_OWN = _NEW.format(
    group="coalesce(g.id, u.id)",
    shut="coalesce(g.shut, false)",
    wake="case when u.asleep then u.not_before when g.shut then u.now end",
    turn="g.turn",
    groups="left join g on g.key = u.key where (u.key is null or g.id is not null)",
)
"""A run that comes to a group which only sleeps is asleep, too, until now: who wakes it opens the gate."""

_SUBMIT = f"""with g as materialized (select id, key, owner is null and gate = 1 as shut,
   case when owner is not null then turn end as turn from grp where key = {{keys}}
  order by id for key share),
 {_GIVEN.format(clock=f"{_CLOCK}, (select count(*) from g) as locked", rows="{rows}")},
 {_OWN}
 {_FOUND}, 1 / (count(coalesce(n.id, u.known)) over () = count(*) over ())::int from u left join n on n.id = u.id"""
"""The division fails when one was neither made nor found: its group went away meanwhile, or somebody else made it.

Groups are locked before runs get their numbers, whatever the plan: numbers are in the order in which runs come to a
group."""

_LOOSE = _NEW.format(
    group="case when u.key is null then u.id else 0 end",
    shut="u.key is not null",
    wake="case when u.asleep and u.key is null then u.not_before end",
    turn="null",
    groups="where true",
)

_SUBMIT_LOOSE = f"""with {_GIVEN.format(clock=f"{NOW} as now", rows="{rows}")},
 {_LOOSE}
 {_FOUND}, pg_notify(:channel, '') from u left join n on n.id = u.id"""

NOTIFY = "select pg_notify(:channel, '') where exists (select 1 from idle)"
"""A notification makes commits wait for each other; it is sent only when somebody waits for one."""


class Submitter:
    """Adds runs to the tables of one schema."""

    def __init__(self, schema: str, channel: str, pipelines: Pipelines) -> None:
        """Prepare the texts for `schema`, a quoted name; who waits for work listens on `channel`."""
        self._channel = channel
        self._pipelines = pipelines

        def filled(text: str, one: bool) -> str:
            rows, keys = (_ONE_ROW, ":key") if one else (_MANY_ROWS, "any(:many_key)")
            return text.replace("{rows}", rows).replace("{keys}", keys)

        def statement(id: str, text: str, one: bool) -> Statement:
            return Statement(f"iocflow_{id}_{int(one)}", named(filled(text, one), schema), _TYPES)

        self._make_groups = {one: statement("make_groups", _MAKE_GROUPS, one) for one in (True, False)}
        self._submit = {one: statement("submit", _SUBMIT, one) for one in (True, False)}
        self._loose = {one: for_driver(filled(_SUBMIT_LOOSE, one), schema) for one in (True, False)}
        self._notify = Statement("iocflow_notify", named(NOTIFY, schema), _TYPES)

    def submit(self, connection: Connection, runs: Sequence[Submission], shift: float) -> list[Accepted]:
        """Add runs in one transaction."""
        distinct = _distinct(runs)
        values = _values(distinct, shift, self._channel)
        one, keyed = len(distinct) == 1, any(run.group is not None for run in distinct)
        statements = [self._make_groups[one], self._submit[one]] if keyed else [self._submit[one]]
        calls = [call(statement, values) for statement in (*statements, self._notify)]
        return _accepted(runs, distinct, self._made(connection, calls)[1 if keyed else 0])

    def _made(self, connection: Connection, calls: Sequence[Call]) -> list[list[Row]]:
        for _ in range(_ATTEMPTS):
            try:
                return self._pipelines.run(connection, calls)
            except errors.DivisionByZero:
                continue
        raise StoreLostError("others make and end the same groups faster than runs can be added to them")

    def submit_within(
        self, connection: psycopg.Connection[Any], runs: Sequence[Submission], shift: float
    ) -> list[Accepted]:
        """Add runs in the open transaction of a caller."""
        distinct = _distinct(runs)
        values = _values(distinct, shift, self._channel)
        for _ in range(_ATTEMPTS):
            with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
                rows = cursor.execute(self._loose[len(distinct) == 1], values, binary=True).fetchall()
            if all(new is not None or old is not None for _, new, old, *_ in rows):
                return _accepted(runs, distinct, rows)
        raise StoreLostError("the caller's transaction does not see a run that another one has just made")


def _distinct(runs: Sequence[Submission]) -> list[Submission]:
    """Return the first of each identity."""
    distinct: dict[tuple[str, str], Submission] = {}
    for run in runs:
        distinct.setdefault((run.submitter, run.number), run)
    return list(distinct.values())


def _values(runs: Sequence[Submission], shift: float, channel: str) -> dict[str, Any]:
    """Return the parameters of the texts."""
    # fmt: off
    rows = [
        (run.group, run.processor, run.body, run.digest, run.submitter, run.number, run.priority, run.not_before,
         run.deadline, run.start_by)
        for run in runs
    ]
    # fmt: on
    if len(rows) == 1:
        given: dict[str, Any] = dict(zip(_COLUMNS, rows[0], strict=True))
    else:
        given = {name: [*column] for name, column in zip(_MANY, zip(*rows, strict=True), strict=True)}
    return {"shift": shift, "channel": channel, **given}


def _accepted(runs: Sequence[Submission], distinct: Sequence[Submission], rows: Sequence[Row]) -> list[Accepted]:
    """Return the answers, in the order of the submissions."""
    new: dict[tuple[str, str], int] = {}
    there: dict[tuple[str, str], tuple[int, str]] = {}
    for place, made, found, digest, *_ in rows:
        run = distinct[place - 1]
        identity = (run.submitter, run.number)
        there[identity] = (found, digest) if made is None else (made, run.digest)
        if made is not None:
            new[identity] = made
    accepted = []
    for run in runs:
        id, digest = there[run.submitter, run.number]
        if new.pop((run.submitter, run.number), None) is not None:
            accepted.append(Accepted(id, "new"))
        else:
            accepted.append(Accepted(id, "known" if digest == run.digest else "conflict"))
    return accepted
