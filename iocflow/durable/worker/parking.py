"""The strands of a run that sleep or wait, and the signals that they may wait for."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from iocflow.store.contract import Claimed, Rest, Signal

if TYPE_CHECKING:
    from iocflow.durable.worker.strand import Strand


class Parking:
    """Where strands of one run stand that have nothing to do now; when all do, the run is let go."""

    def __init__(self, claimed: Claimed) -> None:
        """Begin with the signals that were there at the claim."""
        self._claimed = claimed
        self._strands: dict[str, Strand] = {}
        self._signals = deque(claimed.signals)
        self._seen = max((one.id for one in claimed.signals), default=0)

    def __len__(self) -> int:
        """Return how many strands sleep or wait."""
        return len(self._strands)

    def park(self, strand: Strand) -> None:
        """Let a strand sleep or wait."""
        self._strands[strand.thread] = strand

    def signal(self, name: str) -> Signal | None:
        """Take the first signal of that name, if there is one."""
        found = next((one for one in self._signals if one.name == name), None)
        if found is not None:
            self._signals.remove(found)
        return found

    def sleepers(self) -> list[Strand]:
        """Return the strands that sleep."""
        return [strand for strand in self._strands.values() if strand.command["do"] == "sleep"]

    def woken(self, now: float) -> list[Strand]:
        """Take the sleeping strands whose time has come."""
        woken = [strand for strand in self.sleepers() if (strand.until or 0.0) <= now]
        for strand in woken:
            del self._strands[strand.thread]
        return woken

    @property
    def listens(self) -> bool:
        """Whether a strand waits for a signal."""
        return any(strand.command["do"] == "wait" for strand in list(self._strands.values()))

    def listeners(self, came: Sequence[Signal]) -> list[Strand]:
        """Take signals in, and take out the strands that wait for one, to look what there is for them."""
        new = [one for one in came if one.id > self._seen]
        self._signals.extend(new)
        self._seen = max((one.id for one in new), default=self._seen)
        waiting = [strand for strand in self._strands.values() if strand.command["do"] == "wait"]
        for strand in waiting:
            del self._strands[strand.thread]
        return waiting

    def next_due(self) -> float | None:
        """Return when the first strand is due."""
        return min((strand.until for strand in self._strands.values() if strand.until is not None), default=None)

    def rest(self) -> Rest:
        """Return how the run is let go: its group waits for a strand that sleeps, not for one that waits."""
        strands = list(self._strands.values())
        sleeping = bool(self.sleepers())
        waiting = len(strands) > len(self.sleepers())
        until = min((one.until for one in strands if one.until is not None), default=None)
        run, group = self._claimed.id, self._claimed.group
        return Rest(run, group, until, waits=waiting, keep=sleeping, seen=self._seen)


def data_of(signal: Signal) -> Any:
    """Return what a signal brings."""
    return json.loads(signal.data)
