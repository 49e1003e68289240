"""A move: what one strand did and wants on record before it goes on."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from iocflow.store.contract import Ending, Record, Rest

if TYPE_CHECKING:
    from iocflow.durable.worker.held import Held
    from iocflow.durable.worker.quick import Quick
    from iocflow.durable.worker.strand import Strand


@dataclass(slots=True)
class Move:
    """What is to be recorded together; when it is on record, `ready` may go on.

    Attributes:
        records: Rows of steps; they get their numbers when they are written.
        taken: Ids of signals that were consumed.
        state: The group's new state.
        done: Set when it is on record, for who waits for that.
        overdue: The run's deadline has passed: it is never written, but told of as dropped when the store has timed out
            the run, which takes it from the worker.
    """

    held: Held
    records: list[Record] = field(default_factory=list)
    ready: list[Strand | Quick] = field(default_factory=list)
    ending: Ending | None = None
    rest: Rest | None = None
    taken: list[int] = field(default_factory=list)
    state: bytes | None = None
    done: threading.Event | None = None
    overdue: bool = False

    @property
    def to_record(self) -> bool:
        """Whether there is anything to write, or to tell of, before the strands may go on."""
        return bool(self.records or self.taken or self.lets_go)

    @property
    def lets_go(self) -> bool:
        """Whether the run ended, or rests."""
        return self.ending is not None or self.rest is not None

    @property
    def holds_group(self) -> bool:
        """Whether the group may not go on with its next run."""
        suspended = self.ending is not None and self.ending.state == "suspended"
        return suspended or (self.rest is not None and self.rest.keep)

    def tell_done(self) -> None:
        """Wake who waits for it."""
        if self.done is not None:
            self.done.set()
