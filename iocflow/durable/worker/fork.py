"""A fork under way: a strand that waits for its branches or parallel items."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from iocflow.plan import End
from iocflow.store.contract import Saved

if TYPE_CHECKING:
    from iocflow.durable.worker.strand import Strand


class Fork:
    """Which children of a strand are to begin, and how those that ended did.

    A child's context is made when it begins, and given up when it ends: what the join needs of it is kept.

    Attributes:
        saved: Where the threads of a run that was taken up were.
        beginning: Whether children are being begun now.
    """

    def __init__(self, parent: Strand, saved: Mapping[str, Saved]) -> None:
        """Begin the fork that `parent` stands at."""
        self.parent, self.saved, self.beginning = parent, saved, False
        children = parent.command["children"]
        prefix = f"{parent.thread}." if parent.thread else ""
        self.threads = [f"{prefix}{i}" for i in range(len(children))]
        parent.time_limit(parent.command, parent.position)
        self.limits = list(parent.limits)
        self._ends: list[End | None] = [None] * len(children)
        self._to_begin = deque(range(len(children)))
        self._room = parent.parts.composites[parent.command["p"]].parallel or len(children)
        self._open = len(children)

    def keep_to(self, recorded: Mapping[str, bool]) -> None:
        """Begin only children that may be under way, when all is to be unwound.

        Args:
            recorded: The threads that have a record, and whether they ended.
        """
        free = self._room - sum(not recorded.get(thread, True) for thread in self.threads)
        unknown = [i for i, thread in enumerate(self.threads) if thread not in recorded][: max(0, free)]
        self._to_begin = deque(i for i, thread in enumerate(self.threads) if thread in recorded or i in unknown)
        self._open = len(self._to_begin)

    @property
    def over(self) -> bool:
        """Whether all children ended."""
        return self._open == 0

    def next(self) -> int | None:
        """Return the next child to begin, None when there is none or enough are under way."""
        if not self._to_begin or self._room == 0:
            return None
        self._room -= 1
        return self._to_begin.popleft()

    def ended(self, i: int, child: Strand, end: End) -> None:
        """Take the end of a child, and keep what the join needs of it."""
        if end["outcome"] != "FAILED":
            try:
                stopped = end["outcome"] == "STOPPED"
                self.parent.keep(self.parent.command, i, child.before, child.context, stopped=stopped)
            except Exception as error:  # noqa: BLE001 - a context that cannot be compared fails its branch
                self.failed(i, error)
                return
        self._end(i, end)

    def failed(self, i: int, error: Exception) -> None:
        """Take it that a child failed outside of its activities."""
        self._end(i, End(outcome="FAILED", error=self.parent.errors.record(error), raises=True, last=None))

    def _end(self, i: int, end: End) -> None:
        self._room, self._open = self._room + 1, self._open - 1
        self._ends[i] = end

    def ends(self) -> list[End]:
        """Return how all children ended, in order."""
        return [end for end in self._ends if end is not None]
