"""What a durable run lends its activities beyond the core: its group, its transaction, signals, a memo that is kept."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, NoReturn, Protocol

from iocflow.context import RunGroup, StepInfo
from iocflow.durable.errors import NotTransactionalError, SignalOrderError, SignalTimeoutError
from iocflow.durable.terms import kept, seconds_in
from iocflow.durable.worker.memo import Memo
from iocflow.errors import RunSignal


class GroupState(RunGroup):
    """The run's group: its key, and a small JSON-able state that is saved with the run's next record."""

    def __init__(self, key: str | None, stored: bytes | None) -> None:
        """Take what was claimed; a run without a key has a group of its own."""
        self.key = key
        self.state: Any = json.loads(stored) if stored else None
        self._saved = stored

    def __repr__(self) -> str:
        """Return what a log line shows of it."""
        return f"<group {self.key!r}, state {self.state!r}>"

    def changed(self) -> bytes | None:
        """Return the state as JSON if it was changed since it was saved, and take it as saved."""
        if self.key is None or (self.state is None and self._saved is None):
            return None
        data = json.dumps(self.state, separators=(",", ":")).encode()
        if data == self._saved:
            return None
        self._saved = data
        return data

    def undo(self) -> None:
        """Take the state as it was saved last, after a step was rolled back."""
        self.state = json.loads(self._saved) if self._saved else None


class Lender(Protocol):
    """What lends: a strand of a run in hand."""

    @property
    def group(self) -> GroupState:
        """The run's group."""

    @property
    def revoked(self) -> bool:
        """Whether the run was taken from this worker."""

    def save_memo(self) -> None:
        """Make the memo durable now."""


class DurableStepInfo(StepInfo):
    """`context.step` of a durable run.

    Attributes:
        lender: The strand whose step it is.
        got: The signals that this step consumed, in order: name, data, and whether the wait ended by its timeout.
        outgoing: The events that this attempt wants sent, in order; they are written with the step's own record.
    """

    def __init__(self, lender: Lender, run_id: str, processor: str) -> None:
        """Make the info of a strand's next step."""
        self.lender = lender
        self._memo = Memo({}, lender.save_memo)
        super().__init__(run_id, processor)
        self._connection: Any = None
        self._waits = 0
        self._before = "{}"
        self.got: list[tuple[str, Any, bool]] = []
        self.outgoing: list[str] = []

    def following(self) -> DurableStepInfo:
        """Return the info of the next step."""
        return DurableStepInfo(self.lender, self.run_id, self.processor)

    def restore(self, memo: dict[str, Any], got: list[tuple[str, Any, bool]]) -> None:
        """Take what earlier attempts, maybe of another worker, left for this step."""
        self._memo = Memo(memo, self.lender.save_memo)
        self.got = [(name, data, late) for name, data, late in got]

    def forget_timeout(self) -> None:
        """Let another attempt wait anew for what did not come in time."""
        if self.got and self.got[-1][2]:
            self.got.pop()

    def begin(self, connection: Any = None) -> None:
        """Begin an attempt; `connection` is the store's in a transactional step."""
        self._connection, self._waits, self.outgoing = connection, 0, []
        self._before = json.dumps(self._memo) if self._memo else "{}"

    def undo(self) -> None:
        """Take the memo and the group's state as they were before this attempt, which was rolled back."""
        self._memo = Memo(json.loads(self._before), self.lender.save_memo)
        self.group.undo()

    @property
    def memo(self) -> dict[str, Any]:
        """What this step's attempts tell each other: each change is durable before the statement is over."""
        return self._memo

    @memo.setter
    def memo(self, value: dict[str, Any]) -> None:
        self._memo.replace(value)

    @property
    def cancelled(self) -> bool:
        """Whether the activity should end: its time is over, or the run was taken from this worker."""
        return self.lender.revoked or super().cancelled

    @property
    def group(self) -> GroupState:
        """The run's group."""
        return self.lender.group

    @property
    def transactional(self) -> bool:
        """Whether this attempt runs in the step's own transaction."""
        return self._connection is not None

    @property
    def transaction(self) -> Any:
        """The store's DB-API connection, inside the step's own transaction.

        Raises:
            NotTransactionalError: The step's mode is not `transactional`.
        """
        if self._connection is None:
            raise NotTransactionalError(f"{self.activity} has no transaction: wire it with `mode: transactional`")
        return self._connection

    def publish(self, event: str) -> None:
        """Have an event sent, as JSON that the relay understands, when this step's success is on record, and only then.

        It is sent at least once, after those that the run sent before.
        """
        self.outgoing.append(event)

    def wait_for(self, name: str, *, timeout: str | float | timedelta | None = None) -> Any:
        """Return the data of the next signal of that name; without one yet, leave the activity until it comes.

        The run is stored meanwhile and holds nothing. When the signal comes, or `timeout` has passed (seconds, a
        `timedelta`, or `20s`), the activity is executed again from its beginning, and this returns, or raises, at once.

        Raises:
            SubmitError: That is no name of a signal, or no duration.
            SignalTimeoutError: None came in time.
            SignalOrderError: The activity waits for signals in another order than in its earlier execution.
        """
        if self.failure is not None:
            raise SignalOrderError(f"only the activity {self.activity} can wait for {name!r}, not its handler")
        name = kept("name of a signal", name, where=f"{self.activity} waits for a signal whose name")
        seconds = (
            None if timeout is None else seconds_in(f"{self.activity}: the timeout of the wait for {name!r}", timeout)
        )
        at, self._waits = self._waits, self._waits + 1
        if at >= len(self.got):
            self._leave(name, seconds)
        known, data, late = self.got[at]
        if known != name:
            raise SignalOrderError(
                f"{self.activity} waits for {name!r} where it waited for {known!r} before: the order may not change"
            )
        if late:
            raise SignalTimeoutError(f"{self.activity}: no signal {name!r} came in time")
        return data

    @staticmethod
    def _leave(name: str, timeout: float | None) -> NoReturn:
        raise RunSignal(name, timeout)
