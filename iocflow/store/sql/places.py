"""Where the threads of control of a run stand: which of its rows a worker goes on from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

R = TypeVar("R", bound=Sequence[Any])

START = "0"
"""The position that is the start of the run: what came before it does not count."""

CONTEXT = """select c.ctx from step c where c.run = :run and c.thread = :thread and c.n <= :n and c.n > :floor
 and (c.ctx is not null or c.pos = '0') order by c.n desc limit 1"""
"""The context of a thread at its row `n`: of this row, or of the last one before it that changed the context, down to
the start or to the row of an outer thread, `floor`, that forked it."""


def within(thread: str, outer: str) -> bool:
    """Return whether `thread` was forked by `outer`, or by one that `outer` forked."""
    return thread != outer and (outer == "" or thread.startswith(outer + "."))


def live(rows: Iterable[R]) -> list[R]:
    """Return of rows `(thread, n, ...)` with a position, in order of n, the last one of each thread that still goes on.

    A thread that moves on has joined those that it forked before.
    """
    last: dict[str, R] = {}
    for row in rows:
        for thread in [thread for thread in last if within(thread, row[0])]:
            del last[thread]
        last.pop(row[0], None)
        last[row[0]] = row
    return list(last.values())


def floor(places: Sequence[Sequence[Any]], thread: str) -> int:
    """Return the row number after which the rows of `thread` count: the last one of a thread that it is within."""
    return max((place[1] for place in places if within(thread, place[0])), default=0)
