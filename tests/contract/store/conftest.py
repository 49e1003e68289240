"""The store that a test of the contract is about: each test runs once for each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from iocflow.store.contract import Store
from tests.contract.store.stores import KITS, Kit
from tests.contract.store.work import Work


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.service("postgres"))])
def kit(request: pytest.FixtureRequest) -> Iterator[Kit]:
    """Return one empty database; whatever a test did to it, its invariants hold at the end."""
    kit = KITS[request.param](request)
    try:
        yield kit
    finally:
        kit.close()


@pytest.fixture
def store(kit: Kit) -> Store:
    """Return an open store."""
    return kit.open()


@pytest.fixture
def work(store: Store) -> Work:
    """Return a worker's view of the store, in few words."""
    return Work(store)
