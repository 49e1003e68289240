"""One open transaction of PostgreSQL, for the operations that both dialects share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from iocflow.store.postgres.connections import Connection
from iocflow.store.postgres.sql import NOW, for_driver
from iocflow.store.sql.tables import HELD, Held

_BEGIN = f"select {NOW}, set_config('lock_timeout', '2s', true)"
"""Submissions keep each other company on a group; who waits for all of them to be over lets others by now and then."""

_OWNER = "select g.owner from run r join grp g on g.id = r.grp and r.state <> 2 where r.id = :run"

_GROUP = "select id from grp where id = (select r.grp from run r where r.id = :run and r.state <> 2) for update"


class PostgresTables:
    """One open transaction; what is read to be changed is locked row by row."""

    def __init__(self, connection: Connection, schema: str, shift: float) -> None:
        """Take a connection on which a transaction is open."""
        self._connection = connection
        self._schema = schema
        row = self.row(_BEGIN, shift=shift)
        assert row is not None
        self.now: float = row[0]

    def row(self, sql: str, **values: Any) -> Sequence[Any] | None:
        """Return the first row of a query."""
        return self._connection.execute(for_driver(sql, self._schema), values).fetchone()

    def rows(self, sql: str, **values: Any) -> list[Sequence[Any]]:
        """Return all rows of a query."""
        return [*self._connection.execute(for_driver(sql, self._schema), values)]

    def write(self, sql: str, **values: Any) -> int:
        """Execute a change; return how many rows it changed."""
        return self._connection.execute(for_driver(sql, self._schema), values).rowcount

    def hold(self, run: int, *, revoke: bool) -> Held | None:
        """Read a run with its group, and lock both, after the worker that has to be asked; see `Tables`."""
        while True:
            with self._connection.transaction() as attempt:
                row = self.row(_OWNER, run=run) if revoke else None
                owner = row and row[0]
                if owner is not None:
                    self.row("select id from worker where id = :worker for update", worker=owner)
                self.row("select id from run where id = :run for no key update", run=run)
                self.row(_GROUP, run=run)
                found = self.row(HELD, run=run)
                held = None if found is None else Held(*found)
                if not revoke or held is None or held.owner in (None, owner):
                    return held
                raise psycopg.Rollback(attempt)  # and with it the locks, for they are to be taken in another order

    def lock_groups(self, groups: list[int]) -> None:
        """Lock groups in order of their numbers, against submissions, too."""
        self.rows("select id from grp where id in [groups] order by id for update", groups=groups)

    def dead(self) -> list[int]:
        """Return the workers whose lease ran out, locked; those that another sweep or their own commit has are left."""
        found = self.rows("select id from worker where lease < :now order by id for update skip locked", now=self.now)
        return [worker for (worker,) in found]
