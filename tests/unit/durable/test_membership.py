"""How a worker waits for a store that is full."""

from __future__ import annotations

from typing import Any

from iocflow.durable.clock import StoreClock
from iocflow.durable.worker.membership import BACKOFF, Membership
from iocflow.store.errors import StoreFullError


class Ended:
    """An event that notes how long it is waited for."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    def wait(self, seconds: float) -> bool:
        """Note it."""
        self.waited.append(seconds)
        return False


def test_the_pauses_grow_while_the_store_is_full() -> None:
    """Each try in vain is followed by a longer pause, up to a bound; after a commit they begin anew."""
    nothing: Any = None
    member = Membership(nothing, 30.0, StoreClock(0.0))
    ended: Any = Ended()
    member.ended = ended
    for _ in range(4):
        member.full(StoreFullError("no room"))
    assert member.trouble == "no room"
    member.committed(much=False)
    assert member.trouble == ""
    member.full(StoreFullError("no room"))
    assert ended.waited == [*BACKOFF[2:], BACKOFF[-1], BACKOFF[2]]
