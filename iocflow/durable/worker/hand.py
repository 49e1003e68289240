"""What a worker has in hand: runs by id, by group in order, and what is ready to go on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from iocflow.durable.worker.held import Held
from iocflow.durable.worker.move import Move
from iocflow.durable.worker.quick import Quick
from iocflow.durable.worker.strand import Strand

Ready = Strand | Quick | Held
"""What may go on: a strand, or a run that was just claimed."""


class Hand:
    """The runs of one worker; changed by the thread that leads, but for `ready`, which any thread takes from.

    Attributes:
        ready: Strands, and runs that were just claimed, that may go on.
        suspects: How many runs in hand may have killed a worker.
    """

    def __init__(self) -> None:
        """Begin empty."""
        self.ready: deque[Ready] = deque()
        self.suspects = 0
        self._groups: dict[int, deque[Held]] = {}
        self._group_of: dict[int, int] = {}

    def __len__(self) -> int:
        """Return the number of groups in hand."""
        return len(self._groups)

    def next(self) -> Ready | None:
        """Take what is ready longest."""
        try:
            return self.ready.popleft()
        except IndexError:
            return None

    def runs(self) -> list[Held]:
        """Return the run of each group that is under way."""
        return [group[0] for group in list(self._groups.values()) if group]

    def take(self, held: Held) -> bool:
        """Take a run in; return whether it is the first of its group, and may begin."""
        group = self._groups.setdefault(held.claimed.group, deque())
        if group:
            held.group = group[0].group  # the state goes from one run to the next
        group.append(held)
        self._group_of[held.claimed.id] = held.claimed.group
        self.suspects += held.claimed.suspect
        return len(group) == 1

    def idle(self) -> list[Held]:
        """Take the runs out of `ready` that nothing is under way of, as when all threads are busy for long."""
        idle = [one.held for one in list(self.ready) if one.held.alone and not one.begun]
        kept = [one for one in self.ready if one.held not in idle]
        self.ready.clear()
        self.ready.extend(kept)
        return idle

    def goes_on(self, move: Move) -> bool:
        """Return whether the move's group goes on with its next run here when this one is let go."""
        return not move.holds_group and len(self._groups.get(move.held.claimed.group, ())) > 1

    def let_go(self, move: Move) -> list[Held]:
        """Put down a run that ended or rests; return the next one of its group, if that is in hand and may begin."""
        goes_on = self.goes_on(move)
        group = self._groups.get(move.held.claimed.group)
        if group is None:
            return []
        if goes_on:
            self._forget(group.popleft())
            return [group[0]]
        self._drop_group(move.held.claimed.group)
        return []

    def drop(self, runs: Iterable[int]) -> None:
        """Put down runs that were taken from this worker."""
        for run in runs:
            group = self._groups.get(self._group_of.get(run, 0), deque())
            for held in [one for one in group if one.claimed.id == run]:
                group.remove(held)
                held.revoked = True
                self._forget(held)
                if not group:
                    del self._groups[held.claimed.group]

    def drop_all(self) -> None:
        """Put down everything."""
        for group in list(self._groups):
            self._drop_group(group)
        self.ready.clear()

    def _drop_group(self, id: int) -> None:
        for held in self._groups.pop(id):
            held.revoked = True
            self._forget(held)

    def _forget(self, held: Held) -> None:
        del self._group_of[held.claimed.id]
        self.suspects -= held.claimed.suspect
