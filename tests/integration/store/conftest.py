"""A store in PostgreSQL of each test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from iocflow.store.postgres.store import PostgresStore


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    """Return an open store; its invariants hold at the end."""
    store = PostgresStore(postgres_url, patience=10)
    yield store
    violations = list(store.doctor())
    store.close()
    assert violations == []
