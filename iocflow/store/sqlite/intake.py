"""Submissions of threads that come while another one is being written: added together, in one transaction."""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Callable, Sequence

from iocflow.store.contract import Accepted, Submission
from iocflow.store.errors import StoreError

MOST = 500
"""How many runs go into one transaction, unless one submission alone has more."""

Add = Callable[[Sequence[Submission]], Sequence[Accepted]]


class _Entry:
    """One submission, and what became of it."""

    __slots__ = ("accepted", "error", "runs")

    def __init__(self, runs: Sequence[Submission]) -> None:
        self.runs = runs
        self.accepted: list[Accepted] | None = None
        self.error: StoreError | None = None


class Intake:
    """Lets threads that submit at the same time share a commit: whoever gets the turn writes for all who wait."""

    def __init__(self) -> None:
        """Begin with nobody waiting."""
        self._waiting: deque[_Entry] = deque()
        self._turn = threading.Lock()

    def submit(self, runs: Sequence[Submission], add: Add) -> list[Accepted]:
        """Return what `add`, a transaction, answers of these runs; it may be called with more, by another thread.

        Raises:
            StoreError: The transaction failed, and with it all who shared it.
        """
        entry = _Entry(runs)
        self._waiting.append(entry)
        with self._turn:
            try:
                while entry.accepted is None and entry.error is None:
                    self._write(add)
            except BaseException:
                self._waiting.remove(entry)
                raise
        if entry.accepted is None:
            raise copy.copy(entry.error) from entry.error  # type: ignore[misc]  # each thread its own
        return entry.accepted

    def _write(self, add: Add) -> None:
        """Write those who wait longest."""
        entries = [self._waiting.popleft()]
        number = len(entries[0].runs)
        while self._waiting and (number := number + len(self._waiting[0].runs)) <= MOST:
            entries.append(self._waiting.popleft())
        try:
            accepted = add([run for entry in entries for run in entry.runs])
        except StoreError as error:
            for entry in entries:
                entry.error = error
        except BaseException:
            self._waiting.extendleft(reversed(entries))  # the others write for themselves
            raise
        else:
            at = 0
            for entry in entries:
                entry.accepted = list(accepted[at : at + len(entry.runs)])
                at += len(entry.runs)
