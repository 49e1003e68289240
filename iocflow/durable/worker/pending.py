"""What strands did and is not on record yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from iocflow.durable.worker.hand import Hand
from iocflow.durable.worker.held import Held
from iocflow.durable.worker.move import Move
from iocflow.store.contract import Batch


class Pending:
    """The moves of one worker, in order; any thread appends, the one that leads does the rest.

    A run of several strands may have one of them in a transaction of its own, whose rows have numbers already: what the
    others did waits until that is over, or a number might be missing for ever.

    Attributes:
        late: Runs whose moves were dropped, because they were taken from this worker, with the steps that it was.
    """

    def __init__(self) -> None:
        """Begin empty."""
        self.late: dict[int, str] = {}
        self._moves: deque[Move] = deque()
        self._aside: list[Move] = []
        self._writing: list[Held] = []

    def __bool__(self) -> bool:
        """Return whether there is anything to write."""
        return bool(self._moves)

    def append(self, move: Move) -> None:
        """Add a move."""
        self._moves.append(move)

    def take(self, most: int) -> list[Move]:
        """Take the first moves, to write them; `written` is called afterwards, whatever became of it."""
        taken: list[Move] = []
        while self._moves and len(taken) < most:
            move = self._moves.popleft()
            if move.held.revoked:
                self._drop(move)
            elif move.overdue or (move.held.branched and not self._may_write(move.held)):
                self._aside.append(move)
            else:
                taken.append(move)
        return taken

    def _may_write(self, held: Held) -> bool:
        if held not in self._writing:
            if not held.writing.acquire(blocking=False):
                return False
            self._writing.append(held)
        return True

    def written(self) -> None:
        """Let transactions of strands begin again."""
        for held in self._writing:
            held.writing.release()
        self._writing.clear()

    def put_back(self, moves: Sequence[Move]) -> None:
        """Take moves again that could not be written, as the first ones."""
        for move in moves:
            if move.held.branched:
                move.records = move.held.numbers.taken_back(move.records)
        self._moves.extendleft(reversed(moves))

    def resume(self, held: Held | None = None) -> None:
        """Take what waited for a transaction of the run, which is over; without one, for runs to be taken away."""
        aside, self._aside = self._aside, []
        for move in aside:
            back = move.held is held if held else move.held.revoked
            (self._moves if back else self._aside).append(move)

    def drop_all(self, *, late: bool) -> None:
        """Give up everything; `late` says that it is known not to be on record."""
        for move in (*self._moves, *self._aside):
            self._drop(move)
        self._moves.clear()
        self._aside.clear()
        if not late:
            self.late.clear()

    def _drop(self, move: Move) -> None:
        if move.to_record:
            run = move.held.claimed.id
            steps = self.late.get(run, ""), Batch(records=move.records).activities().get(run, "")
            self.late[run] = ", ".join(filter(None, dict.fromkeys(steps)))
        move.tell_done()


def batch_of(moves: Sequence[Move], hand: Hand, room: int) -> Batch:
    """Return what is to be written of moves, and how much is to be claimed where there is room for so many groups."""
    batch = Batch()
    for move in moves:
        if move.records and move.records[0].n == 0:
            move.records = move.held.numbers.given(move.records)
        batch.records += move.records
        batch.taken += move.taken
        if move.state is not None and move.held.claimed.key is not None:
            batch.states[move.held.claimed.key] = move.state
        if move.ending is not None:
            batch.endings.append(move.ending)
        if move.rest is not None:
            batch.rests.append(move.rest)
        if move.lets_go and not hand.goes_on(move):
            batch.released.append(move.held.claimed.group)
    batch.claim = room + len(batch.released)
    batch.alone = len(hand) == len(batch.released)
    return batch
