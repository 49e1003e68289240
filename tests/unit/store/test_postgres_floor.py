"""From where a claim in PostgreSQL reads the index of free groups."""

from __future__ import annotations

import math

from iocflow.store.postgres.claim import OFTEN, REST, Floor


def learned(floor: Floor, *claims: tuple[int, float | None, float]) -> float:
    """Let a floor learn of claims, and return where the next one begins."""
    for groups, first, took in claims:
        floor.learn(floor.start(), groups, first, took, now=1000.0)
    return floor.start()


def test_quick_claims_begin_at_the_start() -> None:
    """While claims are quick, or slow only now and then, each goes through the whole index."""
    floor = Floor()
    assert learned(floor, (1, 5.0, 0.001), (0, None, 0.001)) == -math.inf
    assert learned(floor, *[(1, 5.0, 1.0)] * (OFTEN - 1), (1, 5.0, 0.001)) == -math.inf
    assert learned(floor, *[(500, 5.0, 0.05)] * OFTEN) == -math.inf


def test_slow_claims_begin_where_the_last_one_found_something() -> None:
    """After some slow claims in a row, the next begin at the group that the last one found, or at the time of one."""
    assert learned(Floor(), *[(1, 5.0, 0.1)] * OFTEN) == 5.0
    assert learned(Floor(), *[(1, 5.0, 0.1)] * OFTEN, (1, 7.0, 0.001), (0, None, 0.001)) == 7.0
    assert learned(Floor(), *[(0, None, 0.1)] * OFTEN) == 1000.0


def test_the_whole_is_looked_at_now_and_then() -> None:
    """After a rest a claim begins at the start again; when that is quick, all do."""
    floor = Floor()
    learned(floor, *[(1, 5.0, 0.011)] * OFTEN)
    floor.until -= REST
    assert floor.start() == -math.inf
    assert learned(floor, (1, 3.0, 0.001)) == -math.inf
