"""How SQLite finds runs that are asked for: by an index, and not by going through all."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from iocflow.store.contract import State
from iocflow.store.sql.reading import Filters, runs
from iocflow.store.sqlite.store import SqliteStore

OPEN = [state for state in get_args(State) if state not in ("completed", "failed", "cancelled")]


class Noted:
    """Notes a query in the place of reading rows."""

    now = 0.0

    def rows(self, sql: str, **values: Any) -> list[Any]:
        """Note it."""
        self.sql, self.values = sql, values
        return []


@pytest.mark.parametrize("state", OPEN)
def test_the_open_runs_of_a_group_are_found_by_it(tmp_path: Path, state: State) -> None:
    """Whatever backlog there is beside a group, its open runs are read by the group's key and number."""
    noted: Any = Noted()
    runs(noted, Filters([state], None, None, "g"), 0, 100, newest=False)
    store = SqliteStore(tmp_path / "store.db")
    with store._connections.read() as tables:
        told = [str(row[3]) for row in tables.rows(f"explain query plan {noted.sql}", **noted.values)]
    store.close()
    found = [line for line in told if line.startswith(("SEARCH r USING", "SCAN r")) and "run_" in line]
    assert found
    assert all("(grp=?" in line for line in found), told
    assert any("grp_key (key=?)" in line for line in told)
    assert not any(line.startswith("SCAN r") for line in told)
