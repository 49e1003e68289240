"""The invariants of the tables, each a query that finds what violates it: shared by both dialects."""

from __future__ import annotations

from collections.abc import Iterator

from iocflow.store.contract import Violation
from iocflow.store.tables import Tables

CHECKS: dict[str, str] = {}


def examine(tables: Tables) -> Iterator[Violation]:
    """Yield what does not hold."""
    for name, sql in CHECKS.items():
        for row in tables.rows(sql):
            yield Violation(name, str(row))
