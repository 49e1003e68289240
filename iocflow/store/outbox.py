"""The outgoing events of durable runs: written with the step that made them, sent by one relay at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

__all__ = ["Outbox", "Outgoing"]


class Outgoing(NamedTuple):
    """An event that is still to be sent: row `n` of a run.

    Attributes:
        text: What the step wrote, as JSON.
        error: The record of why it was refused when it was tried last, as JSON; empty when it was not.
    """

    run: int
    n: int
    activity: str
    text: str
    error: str


class Outbox(Protocol):
    """The rows of kind `publish`. Every method may be called from any thread.

    One relay at a time sends, so that the events of a run go out in their order; which one that is may change whenever
    its process ends, and then some events are sent twice.

    Raises:
        StoreError: From every method: the store is lost, full or read-only.
    """

    def hold(self) -> bool:
        """Become the relay of this store, or see that this object still is; False when another process is."""

    def release(self) -> None:
        """Let another be the relay."""

    def pending(self, after: int, limit: int) -> list[Outgoing]:
        """Return what is to be sent of runs with an id above `after`, in order, the oldest of each run only."""

    def sent(self, events: Sequence[tuple[int, int]]) -> None:
        """Note that events, each a run and the number of its row, were sent."""

    def refused(self, run: int, n: int, error: str) -> None:
        """Note why an event was refused, as an error's record in JSON; it stays to be sent."""
