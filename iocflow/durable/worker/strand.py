"""A strand: one thread of control of a run in hand, moved on from one durable record to the next."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from iocflow.advance import advance
from iocflow.context import fields_of
from iocflow.durable.errors import ContextError
from iocflow.durable.worker.limits import stored, taken_up
from iocflow.durable.worker.positions import Place, retriable, written
from iocflow.durable.worker.step_info import DurableStepInfo, GroupState
from iocflow.errors import ErrorRecord
from iocflow.perform import Performer
from iocflow.plan import Command, End, Plan, Reply
from iocflow.store.contract import Record, StepTransaction

if TYPE_CHECKING:
    from iocflow.durable.worker.fork import Fork
    from iocflow.durable.worker.held import Held
    from iocflow.durable.worker.move import Move

# What leaves nothing worth a record: it is done again from the same context.
_NOTHING_YET = ("seed", "items")


class Strand(Performer):
    """Performs commands up to the next step, and tells what is to be recorded before that may begin.

    Attributes:
        thread: The empty text for a run's main strand, else the numbers of branches and items, as in `0.2`.
        reply: The reply to the present command, when it came from elsewhere: an unwinding, the ends of branches.
        before: The fields of a branch's context when it was forked, for the join.
        begun: Whether it is on record that the present step, which must not be repeated, began.
        doubtful: Whether a worker died when such a step was under way.
        overdue: Whether it was the run's deadline that the present step did not meet.
    """

    def __init__(
        self, held: Held, thread: str, plan: Plan, plan_id: int, context: Any, place: Place, fork: Fork | None = None
    ) -> None:
        """Take a place to go on from; `fork` is the one that this strand is a child of."""
        self.held, self.thread, self.plan_id, self.fork_of = held, thread, plan_id, fork
        processor = held.job.processor
        info = DurableStepInfo(self, str(held.claimed.id), processor.name)
        super().__init__(plan, processor.parts, processor.runner, context, info, held.key)
        self.errors = held.errors
        self.deadline = held.deadline
        self.position = place.position
        self.command, _ = advance(plan, place.position, None)
        self.until = place.until
        self.reply: Reply | None = None
        self._touched = place.touched
        self.before = {name: value for name, value in fields_of(context).items() if name not in place.touched}
        self.begun = self.doubtful = self.overdue = False
        self._deadlines = taken_up(place.limits, held)
        self._connection: Any = None
        self._saved: bytes | None = None
        self._written: bytes | None = None
        self._rows: list[Record] = []
        self._failure: ErrorRecord | None = None
        own = self._under_way()
        if own is not None:
            self.prepare(own, None)
            self._own_info.restore(place.memo, place.got)

    @property
    def group(self) -> GroupState:
        """The run's group."""
        return self.held.group

    @property
    def revoked(self) -> bool:
        """Whether the run was taken from this worker."""
        return self.held.revoked

    @property
    def transactional(self) -> bool:
        """Whether the present command is a step that runs in a transaction of its own."""
        command = self.command
        return command.get("mode") == "execute" and command["step"]["mode"] == "transactional"

    @property
    def once(self) -> bool:
        """Whether the present command is a step that must not be repeated when its outcome is unknown."""
        command = self.command
        return command.get("mode") == "execute" and command["step"]["on_lost"] == "incident"

    @property
    def late(self) -> bool:
        """Whether the run's deadline keeps the present step from beginning."""
        self.time_limit(self.command, self.position)
        return self._over(self.command) == ""

    @property
    def end(self) -> End | None:
        """How the strand ended, None while it did not."""
        return self.position["end"]

    @property
    def _own_info(self) -> DurableStepInfo:
        assert isinstance(self.info, DurableStepInfo)
        return self.info

    def knows(self, stored: bytes | None) -> None:
        """Take `stored` as the context's last record."""
        self._saved = stored

    # Going on.

    def move(self) -> Move:
        """Do one step, and return what is to be recorded."""
        return self.held.go(self)

    def go(self, transaction: StepTransaction | None = None) -> list[Record]:
        """Perform from the present command up to the next step, sleep, wait, fork or end; return what to record.

        When it is `overdue`, that is what it did in vain.

        Raises:
            ContextError: The context cannot be stored.
        """
        self._connection = transaction and transaction.connection
        reply, self.reply = self.reply, None
        began, worth, vain = time.time(), False, False
        with self.at_work():
            while True:
                tried = self.command
                if reply is None:
                    reply = self._performed(tried, transaction)
                self.overdue = self.overdue or ("error" in reply and reply["error"].get("over") == "")
                vain = self.overdue and (vain or "unbegun" not in reply)
                self._publish(tried, reply)
                self.command, self.position = advance(self.plan, self.position, reply)
                stopped = self.context.stopped
                self.follow(tried, reply, self.command, self.position)
                if self.context.stopped is not stopped:
                    self._written = None
                self._note(tried, reply, began)
                worth, reply = worth or tried.get("mode") not in _NOTHING_YET, None
                if self.overdue or self._boundary(worth=worth):
                    break
        if self.overdue and not vain:
            return []
        if vain and not self._rows:
            self._add("attempt", tried["path"], (began + self.held.clock.shift, self.held.clock.now()))
        return self._records(began) if worth or self.command["do"] != "run" else []

    def prepare(self, command: Command, deadline: float | None) -> None:
        """Bring the info up to date, and lend it the transaction of this attempt."""
        super().prepare(command, deadline)
        self._own_info.begin(self._connection)

    def _performed(self, command: Command, transaction: StepTransaction | None) -> Reply:
        """Perform a command; a step's success counts only when the context that it left can be stored."""
        reply = self.perform(command, self.time_limit(command, self.position))
        self._written = None
        if command["mode"] != "execute":
            return reply
        if "error" not in reply and "wait" not in reply:
            try:
                self._written = self.held.job.codec.write(self.context)
            except ContextError as error:
                reply = {**self.failed(error), "stop": reply.get("stop", False)}
        if "error" in reply:
            self._own_info.forget_timeout()
        if transaction is not None and ("error" in reply or "wait" in reply):
            transaction.undo()
            self._own_info.undo()
            self._fall_back()
        return reply

    def _fall_back(self) -> None:
        """Go on with the context of the last record."""
        self._go_on_with(self.held.context(self._saved or self._initial()))
        self.before = {name: value for name, value in fields_of(self.context).items() if name not in self._touched}

    def _boundary(self, *, worth: bool) -> bool:
        """Return whether the strand may not go on before what it did, if that is worth it, is on record."""
        if self.command["do"] != "run":
            return True
        return self.command["mode"] == "execute" and (worth or self.transactional or self.once)

    # What is recorded.

    def _publish(self, tried: Command, reply: Reply) -> None:
        """Keep a row for each event that a step which succeeded wants sent."""
        if tried.get("mode") == "execute" and "error" not in reply and "wait" not in reply:
            now = self.held.clock.now()
            for event in self._own_info.outgoing:
                self._add("publish", tried["path"], (now, now), result=event)

    def _note(self, tried: Command, reply: Reply, began: float) -> None:
        """Keep the rows that the last move added, or the attempt that is made again."""
        if tried.get("mode") == "execute":
            self._failure = reply.get("error")
        shift = self.held.clock.shift
        for ended, step in zip(self.position["ended"], self.rows, strict=True):
            error = json.dumps(ended["error"]) if ended["error"] else None
            times = step.started.timestamp() + shift, step.ended.timestamp() + shift
            self._add("step", ended["path"], times, ended["outcome"], ended["attempts"], error, ended["result"])
        again = self.command["do"] == "sleep" or self.command.get("attempt", 1) > 1
        if tried.get("mode") == "handle" and again and not self.rows and self._failure is not None:
            times = began + shift, time.time() + shift
            error = json.dumps(self._failure)
            self._add("attempt", tried["path"], times, reply.get("decision", ""), tried["attempt"], error, None)
        self.rows.clear()

    def _add(
        self,
        kind: Any,
        name: str,
        times: tuple[float, float],
        outcome: str = "",
        attempts: int = 0,
        error: str | None = None,
        result: str | None = None,
    ) -> None:
        row = Record(
            self.held.claimed.id, 0, kind, self.thread, name, *times, outcome, attempts, error, result, self.plan_id,
            None, None,
        )  # fmt: skip
        self._rows.append(row)

    def _records(self, began: float) -> list[Record]:
        """Return the rows, the last of them with the place and the context."""
        now = self.held.clock.now()
        if not self._rows:
            self._add("mark", self.command.get("path", ""), (began + self.held.clock.shift, now))
        rows, self._rows = self._rows, []
        rows[-1] = self._placed(rows[-1])
        return rows

    def _placed(self, row: Record) -> Record:
        """Return a row with the present context, and with the place if there is anything to go on to."""
        context = self._written or self._storable()
        changed, self._saved, self._written = context != self._saved, context, None
        row = row._replace(ctx=context if changed else None)
        return row if self.thread == "" and self.end is not None else self.placed(row)

    def _storable(self) -> bytes:
        """Return the present context as it is stored; where a failed activity left one that cannot be, the last."""
        try:
            return self.held.job.codec.write(self.context)
        except ContextError as error:
            self._logger.warning("the context goes back to its last record: %s", error)
            self._fall_back()
            return self.held.job.codec.write(self.context)

    def placed(self, row: Record) -> Record:
        """Return a row with the present place."""
        return row._replace(pos=written(self.plan, self._place()), retry=retriable(self.position))

    def _place(self) -> Place:
        """Return where the strand is now."""
        info = self._own_info
        if self.command["do"] != "run":
            self.time_limit(self.command, self.position)  # a fork begins now; of what sleeps or waits none counts
        place = Place({**self.position, "ended": []}, until=self.until)
        place.limits = stored(self._deadlines, self.position["stack"], self.held.clock)
        own = self._under_way()
        if own is not None and self.step_key(own) == info.idempotency_key:
            place.memo, place.got = dict(info.memo), info.got
        if self.thread:
            fields = fields_of(self.context)
            fresh = [name for name, value in fields.items() if value is not self.before.get(name, self)]
            place.touched = self._touched = sorted(fresh)
        return place

    def _under_way(self) -> Command | None:
        """Return the `execute` that comes next, also after the present sleep or wait; None when something else does."""
        command = self.command
        if command["do"] in ("sleep", "wait"):
            command, _ = advance(self.plan, self.position, {})
        return command if command.get("mode") == "execute" else None

    def mark(self, kind: Any = "mark") -> list[Record]:
        """Return a record that only keeps the place; the context is the last one on record."""
        row = self.placed(self._now(kind))
        if self._saved is None:
            self._saved = self._initial()
            row = row._replace(ctx=self._saved)
        return [row]

    def _now(self, kind: Any) -> Record:
        now = self.held.clock.now()
        self._add(kind, self.command.get("path", ""), (now, now))
        return self._rows.pop()

    def _initial(self) -> bytes:
        """Return the context as this strand began with it, though its activity may be changing it now."""
        if self.fork_of is None:
            return self.held.seeded()
        return self.held.job.codec.write(self.fork_of.parent.branch(int(self.thread.rpartition(".")[2])))

    def opening(self) -> list[Record]:
        """Return a record of the place and the context as they are at the beginning."""
        return [self._placed(self._now("mark"))]

    def save_memo(self) -> None:
        """Make the memo durable now, unless that comes with the step's own transaction."""
        if not self._own_info.transactional:
            self.held.save(self)

    # Signals and ends.

    def receive(self, data: Any, *, late: bool = False) -> None:
        """End the present wait with a signal's data, or by its timeout."""
        self._own_info.got.append((self.command["name"], data, late))
        self.awake()

    def again(self) -> None:
        """Let the present step, which an operator wants done again, have all its attempts, and wait, anew.

        An attempt whose outcome is in doubt is made again as the attempt that it was.
        """
        self._own_info.forget_timeout()
        frame = {} if self.doubtful or self.end is not None else self.position["stack"][-1]
        if frame.get("state") == "execute":
            frame["n"] = self.command["attempt"] = 1
        elif frame.get("state") == "sleep":
            frame["n"] = 0
        if self.command["do"] == "wait":
            self.until = None

    def ends(self, seconds: float | None) -> float | None:
        """Return when a sleep or wait of so many seconds ends, or a time limit around it, on the store's clock."""
        self.time_limit(self.command, self.position)
        times = [self.held.clock.at(end) for end, path in self.limits if path]
        return min([*times, *([] if seconds is None else [self.held.clock.now() + seconds])], default=None)

    def awake(self) -> None:
        """End the present sleep or wait."""
        self.until = None
        self.command, self.position = advance(self.plan, self.position, {})

    # Branches.

    def branch(self, i: int) -> Any:
        """Return a context for the child `i` of the present fork."""
        self.bind(self.command)
        return self.fork(self.command, i)
