"""The house that a test of durable runs lives in: each test runs once over each kind of store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.store.stores import KITS
from tests.integration.durable.house import House


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.service("postgres"))])
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    """Return an empty store with a client; in the end its workers are stopped and the doctor finds nothing."""
    house = House(KITS[request.param](request))
    try:
        yield house
    finally:
        house.close()
