"""How PostgreSQL finds the rows that a commit is about: by the index made for it, however few rows there were at first.

A prepared statement keeps the plan of its first use, when the tables may be all but empty; each way to find a row looks
as cheap as any other then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
import pytest

from iocflow.store.contract import Batch, Ending
from iocflow.store.postgres.commit_texts import Texts
from iocflow.store.postgres.connections import TUNED, Address
from iocflow.store.postgres.pipeline import Statement
from iocflow.store.postgres.store import PostgresStore
from tests.contract.store.work import submission

pytestmark = pytest.mark.service("postgres")

IN_ORDER = {"grp_free", "grp_suspect", "run_wake", "run_expiry", "signal_pending", "run_loose", "idle_pkey"}
"""Indexes that are read from one end, and no further than needed; and that of the few who wait."""

UPDATES = {"ended", "rested"}
"""Statements that join runs to a list, from either side as the planner likes; they are planned anew as runs grow."""

STATEMENTS = [
    name
    for name, value in vars(Texts("s")).items()
    if isinstance(value, Statement) and re.match(rb"(select|with|insert|update|delete)\b", value.text)
]


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield each node of a plan."""
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def leading(connection: psycopg.Connection, schema: str) -> dict[str, str]:
    """Return the first column of each index."""
    rows = connection.execute(
        "select i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid, 1, true) from pg_index i"
        " join pg_class c on c.oid = i.indrelid where c.relnamespace = %s::regnamespace",
        [schema],
    )
    return {name.rpartition(".")[2]: column for name, column in rows}


@pytest.fixture(params=["empty", "few rows"])
def address(request: pytest.FixtureRequest, store: PostgresStore, postgres_url: str) -> Address:
    """Return where a store is that holds nothing, or a few runs that the planner knows of."""
    address = Address.parse(postgres_url)
    if request.param == "few rows":
        store.submit([submission(group="k" if i < 3 else None) for i in range(20)])
        worker = store.register(30, "here", 1)
        store.commit(worker, Batch(claim=5), lease=30)
        store.retire(worker)
        with psycopg.connect(address.conninfo, autocommit=True) as connection:
            for table in ("run", "grp", "step", "signal", "worker"):
                connection.execute(f"analyze {address.schema}.{table}")
    return address


def prepared_plan(connection: psycopg.Connection, statement: Statement) -> Mapping[str, Any]:
    """Return the plan that a statement gets at its first use."""
    types = ", ".join(f"{oid}::oid::regtype" for oid in statement.oids)
    names = connection.execute(f"select array[{types}]::text[]").fetchone()
    assert names is not None
    declared = f"({', '.join(names[0])})" if names[0] else ""
    nothing = f"({', '.join(['null'] * len(names[0]))})" if names[0] else ""
    connection.execute(f"prepare tried{declared} as {statement.text.decode()}".encode())
    row = connection.execute(f"explain (format json) execute tried{nothing}".encode()).fetchone()
    assert row is not None
    found: Mapping[str, Any] = row[0][0]["Plan"]
    return found


def goes_through_all(node: Mapping[str, Any], leading: Mapping[str, str]) -> bool:
    """Return whether a node reads an index without knowing the first column of what it seeks."""
    index = node.get("Index Name")
    if index is None or index in IN_ORDER:
        return False
    return not re.search(rf"\b{leading[index]}\b", node.get("Index Cond", ""))


@pytest.mark.parametrize("statement", STATEMENTS)
def test_rows_are_found_by_their_index(address: Address, statement: str) -> None:
    """Whatever the planner knows at the first use, no statement of a commit goes through a whole index or table."""
    chosen: Statement = getattr(Texts(address.schema), statement)
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        connection.execute(TUNED.encode())
        connection.execute("set iocflow.sole = '{}'")
        first = leading(connection, address.schema)
        whole = [
            f"{node.get('Index Name', node['Node Type'])}: {node.get('Index Cond')}; {node.get('Filter')}"
            for node in nodes(prepared_plan(connection, chosen))
            if node["Node Type"] == "Seq Scan" or goes_through_all(node, first)
            if not (statement in UPDATES and node.get("Index Name") == "run_pkey")
        ]
    assert not whole, "\n".join(whole)


def read_per_run(store: PostgresStore, address: Address, count: int) -> float:
    """Do runs of one step each, and return how many index entries and rows were read for one of them."""
    store.submit([submission() for _ in range(count)])
    before = rows_read(address)
    worker = store.register(30, "here", 1)
    receipt = store.commit(worker, Batch(claim=50), lease=30)
    while receipt.claimed:
        endings = [Ending(one.id, one.group, "completed", "ok") for one in receipt.claimed]
        receipt = store.commit(worker, Batch(endings=endings, claim=50), lease=30)
    store.retire(worker)
    return (rows_read(address) - before) / count


def rows_read(address: Address) -> int:
    """Return how many index entries and rows were read in a schema, of connections that are closed or idle."""
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        connection.execute("select pg_sleep(1.1)")  # the others tell what they did once a second
        row = connection.execute(
            "select (select coalesce(sum(idx_tup_read), 0) from pg_stat_user_indexes where schemaname = %s)"
            " + (select coalesce(sum(seq_tup_read), 0) from pg_stat_user_tables where schemaname = %s)",
            [address.schema.strip('"')] * 2,
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_a_run_costs_the_same_when_there_are_a_hundred_times_more(store: PostgresStore, postgres_url: str) -> None:
    """A store that was empty when its statements were prepared reads no more for a run when thousands wait."""
    address = Address.parse(postgres_url)
    few = read_per_run(store, address, 40)
    many = read_per_run(store, address, 4000)
    assert many < 3 * few, (few, many)
