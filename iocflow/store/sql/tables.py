"""One open transaction, as the operations that both dialects share see it.

Their texts are SQL that SQLite and PostgreSQL both understand, with four things for the dialect to fill in: `:name` is
a parameter; `in [name]` is membership in a parameter that is a list of numbers; `{lock}` at the end of a select locks
its rows, and `{skip}` locks them and leaves out those that others have locked, where the dialect locks rows at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from iocflow.store.sql.schema import HEAD, READY

HELD = f"""select r.id, r.grp, r.key, r.state, r.closed, r.due, r.deadline, r.start_by, r.ask, r.asked, r.waits,
 case when r.purged is null then 0 else 1 end, coalesce((select max(s.n) from step s where s.run = r.id), 0),
 g.owner, coalesce(g.upto, 0), case when r.woke is null or r.woke < g.turn then 1 else 0 end, {HEAD}
 from run r left join grp g on g.id = r.grp and r.state <> 2 where r.id = :run"""
"""A run and its group, in the order of the fields of `Held`."""


class Held(NamedTuple):
    """A run and its group, neither of which changes until the end of the transaction that read them.

    Attributes:
        purged: Whether its body is gone.
        n: The number of its last row; 0 when it was not begun.
        owner: The worker that holds the group; None for a closed run.
        upto: The last run that the group's last claim took.
        taken: Whether it was ready by then.
        head: The run of the group that its worker works on now, or first of those in hand.
    """

    id: int
    group: int
    key: str | None
    state: int
    closed: str | None
    due: float
    deadline: float | None
    start_by: float | None
    ask: str | None
    asked: int | None
    waits: int
    purged: int
    n: int
    owner: int | None
    upto: int
    taken: int
    head: int | None

    @property
    def in_hand(self) -> bool:
        """Whether a worker may have it in hand."""
        return self.owner is not None and self.state == READY and self.id <= self.upto and self.taken == 1

    @property
    def may_have_begun(self) -> bool:
        """Whether it was begun, or may be in its first step now."""
        return self.n > 0 or (self.in_hand and self.head == self.id)


class Tables(Protocol):
    """One open transaction.

    Where the dialect locks rows, it does so in this order: the worker, the run, the group.
    """

    @property
    def now(self) -> float:
        """The store's time at the transaction's begin."""

    def row(self, sql: str, **values: Any) -> Sequence[Any] | None:
        """Return the first row of a query."""

    def rows(self, sql: str, **values: Any) -> list[Sequence[Any]]:
        """Return all rows of a query."""

    def write(self, sql: str, **values: Any) -> int:
        """Execute a change; return how many rows it changed."""

    def hold(self, run: int, *, revoke: bool) -> Held | None:
        """Read a run with its group (`HELD`), and lock both; None when there is no such run.

        With `revoke` the worker that holds the group is locked, too, so that the run can be taken from it.
        """

    def lock_groups(self, groups: list[int]) -> None:
        """Lock groups, in order of their numbers, so that the next statement sees their runs as they are."""

    def dead(self) -> list[int]:
        """Return the workers whose lease ran out, locked; those that another sweep has in hand are left out."""
