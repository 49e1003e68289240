"""A run in hand: its strands, and what they want recorded together."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from iocflow.advance import start
from iocflow.durable.clock import StoreClock
from iocflow.durable.errors import ContextError
from iocflow.durable.job import Job
from iocflow.durable.worker.ending import DOUBTFUL, UNWIND, ended, finished, in_doubt, suspended, too_late
from iocflow.durable.worker.fork import Fork
from iocflow.durable.worker.move import Move
from iocflow.durable.worker.numbers import Numbers
from iocflow.durable.worker.parking import Parking, data_of
from iocflow.durable.worker.positions import START, Place, read, unwinding
from iocflow.durable.worker.quick import Quick
from iocflow.durable.worker.step_info import GroupState
from iocflow.durable.worker.strand import Strand
from iocflow.errors import LiveErrors
from iocflow.plan import End, Plan, Position
from iocflow.run import RunStarted
from iocflow.store.contract import Claimed, Record, Saved, Signal, StepTransaction, Store

_LOGGER = logging.getLogger("iocflow.durable")


class Held:
    """One run that this worker holds.

    Strands run in several threads, one at a time each; what concerns all of them is done under a lock.

    Attributes:
        worker: The id that the worker claimed it with.
        branched: Whether it has, or had, several strands.
        writing: Held by who writes rows of a run with several strands, from their numbers to the end of the commit.
        numbers: Those of its rows.
    """

    transactional = begun = branched = False

    def __init__(
        self,
        claimed: Claimed,
        worker: int,
        job: Job | None,
        store: Store,
        clock: StoreClock,
        save: Callable[[Move], None],
    ) -> None:
        """Take a claim; `save` makes a move durable before it returns."""
        self.worker, self.writing = worker, threading.Lock()
        self.claimed, self._job, self.store, self.clock, self._save = claimed, job, store, clock, save
        self.key = f"{claimed.submitter}/{claimed.number}"
        self.errors = LiveErrors()
        self.group = GroupState(claimed.key, claimed.state)
        self.revoked = self._timed_out = False
        self.numbers = Numbers(claimed.n)
        self._active = 0
        self._parking = Parking(claimed)
        self._unwind = UNWIND.get(claimed.ask or "", "")
        self._lock = threading.RLock()

    @property
    def job(self) -> Job:
        """What is known of the run's processor.

        Raises:
            ContextError: Nothing.
        """
        if self._job is None:
            raise ContextError(f"no durable processor {self.claimed.processor!r} is wired here")
        return self._job

    # Taking up.

    @property
    def alone(self) -> bool:
        """Whether not more than one strand has anything to do, and none sleeps or waits."""
        return self._active <= 1 and not self._parking

    @property
    def held(self) -> Held:
        """Itself, as what is ready."""
        return self

    def move(self) -> Move:
        """Return the move that begins or resumes the run: most often nothing but the strands that are ready.

        Raises:
            ContextError: The stored context cannot be read.
        """
        saved = {one.thread: one for one in self.claimed.threads}
        with self._lock:
            if late := too_late(self.claimed, self.clock.now()):
                return Move(self, ending=late)
            first = saved.get("")
            self._unwind = self._unwind or next(filter(None, (unwinding(one.pos) for one in self.claimed.threads)), "")
            move = Move(self)
            if quick := self._quick(first):
                self._go(quick, move)
                return move
            main = self._restored("", first) if first is not None and first.pos != START else self._first()
            if self.claimed.n == 0:
                main.tell(RunStarted, self.clock.now())
            self._resume(main, saved, move)
            if not move.ready and move.ending is None:
                self._rest_if_idle(move)
            return move

    def _quick(self, saved: Saved | None) -> Quick | None:
        """Return the run as one of a plain sequence, if it is at a plain next step of the wiring as it is."""
        if not self.job.plain or self.claimed.ask is not None:
            return None
        id, plan = self.job.own_plan(self.store)
        if saved is None or saved.pos == START:
            return Quick(self, id, plan, 0, self.job.processor.new_context(), None, self._seed())
        if saved.plan != id or saved.kind in DOUBTFUL or not saved.pos.isdecimal():
            return None
        return Quick(self, id, plan, int(saved.pos), self.context(saved.ctx), saved.ctx)

    def _restored(self, thread: str, saved: Saved, fork: Fork | None = None) -> Strand:
        """Return a strand as it was recorded."""
        plan = self.job.plan(saved.plan, self.store)
        if gone := self.job.gone(plan):
            raise ContextError(f"the run began with parts that are not wired any more: {', '.join(gone)}")
        strand = Strand(self, thread, plan, saved.plan, self.context(saved.ctx), read(plan, saved.pos), fork)
        strand.knows(saved.ctx)
        strand.doubtful = saved.kind in DOUBTFUL
        return strand

    def _first(self) -> Strand:
        """Return the run's main strand at its beginning."""
        id, plan = self.job.own_plan(self.store)
        if self._unwind and (given_up := self._unwound_first(id, plan)):
            return given_up
        strand = Strand(self, "", plan, id, self.job.processor.new_context(), Place(self.beginning(plan)))
        strand.seed = self._seed()
        return strand

    def _unwound_first(self, id: int, plan: Plan) -> Strand | None:
        """Return the main strand at its first step, which may be what is given up: then `finally` is to run."""
        try:
            return Strand(self, "", plan, id, self.context(self.seeded()), Place(start(plan)))
        except Exception:
            _LOGGER.exception("run %s of %s has no `finally`: its seed fails", self.claimed.id, self.claimed.processor)
            return None

    def _seed(self) -> Any:
        return self.job.codec.read_seed(self.claimed.body) if self.claimed.body else None

    def beginning(self, plan: Plan) -> Position:
        """Return the run's first position."""
        return start(plan, seeded=bool(self.claimed.body))

    def seeded(self) -> bytes:
        """Return the context as it was when the seed was set."""
        context = self.job.processor.new_context()
        if self.claimed.body:
            context.set_seed_data(self._seed())
        return self.job.codec.write(context)

    @property
    def deadline(self) -> float | None:
        """When the run should have ended, on the clock of `time.monotonic`."""
        at = self.claimed.deadline
        return None if at is None else self.clock.monotonic(at)

    @property
    def overdue(self) -> bool:
        """Whether it should have ended by now."""
        return self.claimed.deadline is not None and self.claimed.deadline <= self.clock.now()

    def context(self, stored: bytes | None) -> Any:
        """Return a new context, with what is stored if there is anything."""
        context = self.job.processor.new_context()
        if stored is not None:
            self.job.codec.read(stored, context)
        return context

    def _resume(self, strand: Strand, saved: Mapping[str, Saved], move: Move) -> None:
        """Find out what a strand that was just taken up does next."""
        command = strand.command
        if command["do"] == "fork":
            if strand.thread not in saved and not self._gives_up(strand):
                move.records += strand.opening()
            self._resume_fork(strand, saved, move)
            return
        if self._gives_up(strand) and strand.end is None:
            strand.reply = {"unwind": self._unwind}
            self._go(strand, move)
        elif strand.doubtful and self.claimed.ask is None:
            move.ending = in_doubt(strand, move.ending)
        elif strand.doubtful and self.claimed.ask == "done":
            strand.reply = {}
            self._go(strand, move)
        else:
            if self.claimed.ask == "again":
                strand.again()
            self._next(strand, move)

    def _resume_fork(self, strand: Strand, saved: Mapping[str, Saved], move: Move) -> None:
        try:
            strand.bind(strand.command)
        except Exception as error:  # noqa: BLE001 - the item of a for-each that cannot be set fails what it is for
            strand.reply = {"unwind": self._unwind} if self._gives_up(strand) else strand.failed(error)
            self._go(strand, move)
            return
        self.branched = True
        fork = Fork(strand, saved)
        if self._gives_up(strand):
            places = {thread: read(strand.plan, one.pos) for thread, one in saved.items()}
            fork.keep_to({thread: place.position["end"] is not None for thread, place in places.items()})
        self._begin(fork, move)

    def _begin(self, fork: Fork, move: Move) -> None:
        """Begin as many children as may be under way; go on with the parent when none is left."""
        if fork.beginning:
            return  # a child that ends at once is followed by the next one in the loop that began it
        fork.beginning = True
        while (i := fork.next()) is not None:
            child = self._child(fork, i)
            if child is not None:
                child.around, child.deadline = fork.limits, None
                self._resume(child, fork.saved, move)
        fork.beginning = False
        if fork.over:
            parent = fork.parent
            parent.reply = {"unwind": self._unwind} if self._gives_up(parent) else {"ends": fork.ends()}
            self._go(parent, move)

    def _gives_up(self, strand: Strand) -> bool:
        """Return whether a strand is to be unwound: neither it was yet, nor does it belong to a `finally` since."""
        one: Strand | None = strand
        while one is not None and not one.position["unwind"]:
            one = one.fork_of.parent if one.fork_of else None
        return one is None and bool(self._unwind)

    def _child(self, fork: Fork, i: int) -> Strand | None:
        """Return a child as it was recorded, or at its beginning; None when it failed at once."""
        thread, parent = fork.threads[i], fork.parent
        if thread in fork.saved:
            return self._restored(thread, fork.saved[thread], fork)
        try:
            context = parent.branch(i)
        except Exception as error:  # noqa: BLE001 - a context that cannot be forked fails its branch
            fork.failed(i, error)
            return None
        return Strand(self, thread, parent.plan, parent.plan_id, context, Place(parent.command["children"][i]), fork)

    # Going on.

    def go(self, strand: Strand, transaction: StepTransaction | None = None) -> Move:
        """Let a strand do its step, and return what it wants on record.

        Raises:
            ContextError: The context cannot be stored.
        """
        move = Move(self)
        settled = strand.begun or strand.reply is not None or (self.overdue and strand.late)
        if strand.once and not settled:
            strand.begun = True
            move.records, move.ready = strand.mark("begun"), [strand]
            return move
        strand.begun = False
        move.records = strand.go(transaction)
        with self._lock:
            self._active -= 1
            if strand.overdue:
                return self.timed_out(move.records)
            move.state = self.group.changed()
            self._next(strand, move)
            if not move.ready and move.ending is None:
                self._rest_if_idle(move)
        return move

    def timed_out(self, done: Sequence[Record] = ()) -> Move:
        """Return the move of a strand that the deadline stopped: what it has `done` since is not to be recorded."""
        self._timed_out = True
        self.group.undo()
        return Move(self, [*done], overdue=True)

    def moved_plainly(self, quick: Quick, record: Record, *, last: bool) -> Move:
        """Return the move of a plain step that succeeded."""
        move = Move(self, [record])
        if self.claimed.key is not None:
            move.state = self.group.changed()
        if last:
            move.ending = ended(self.claimed, "completed", "ok")
        else:
            move.ready.append(quick)
        return move

    def _go(self, strand: Strand | Quick, move: Move) -> None:
        self._active += 1
        move.ready.append(strand)

    def _next(self, strand: Strand, move: Move) -> None:
        """Do what the strand's present command says, but for running."""
        command = strand.command
        if command["do"] == "run":
            self._go(strand, move)
        elif command["do"] == "fork":
            self._resume_fork(strand, {}, move)
        elif command["do"] == "end":
            self._end(strand, command["end"], move)
        elif command["do"] == "sleep":
            if strand.until is None:
                strand.until = strand.ends(command["delay"])
                self._replace_place(strand, move)
            self._park(strand, move)
        else:
            self._wait(strand, move)

    def _replace_place(self, strand: Strand, move: Move) -> None:
        """Write the place again, now that it is known until when it lasts."""
        if move.records:
            move.records[-1] = strand.placed(move.records[-1])
        else:
            move.records = strand.mark()

    def _wait(self, strand: Strand, move: Move) -> None:
        """Give the strand the signal that it waits for, or let it wait."""
        command, now = strand.command, self.clock.now()
        if strand.until is None and (until := strand.ends(command["timeout"])) is not None:
            strand.until = until
            self._replace_place(strand, move)
        signal = self._parking.signal(command["name"])
        if signal is not None:
            move.taken.append(signal.id)
            strand.receive(data_of(signal))
        elif strand.until is not None and strand.until <= now:
            strand.receive(None, late=True)
        else:
            self._park(strand, move)
            return
        move.records += strand.mark()
        self._go(strand, move)

    def _park(self, strand: Strand, move: Move) -> None:
        if strand.command["do"] == "sleep" and strand.until is not None and strand.until <= self.clock.now():
            self._wake(strand, move)
        else:
            self._parking.park(strand)

    def _wake(self, strand: Strand, move: Move) -> None:
        strand.awake()
        if strand.command["do"] == "fork":
            move.records += strand.mark()  # the branches count from here
        self._next(strand, move)

    @property
    def listens(self) -> bool:
        """Whether a strand waits for a signal while others of the run are under way."""
        return self._active > 0 and self._parking.listens

    def roused(self, came: Sequence[Signal]) -> Move | None:
        """Return what strands do that sleep or wait while others are under way: time has passed, or signals came."""
        move = Move(self)
        with self._lock:
            if self._active:
                for strand in self._parking.woken(self.clock.now()):
                    self._wake(strand, move)
                for strand in self._parking.listeners(came):
                    self._wait(strand, move)
        return move if move.ready else None

    def next_due(self) -> float | None:
        """Return when the first strand is due that sleeps, or waits, while others are under way."""
        with self._lock:
            return self._parking.next_due() if self._active else None

    def _rest_if_idle(self, move: Move) -> None:
        """Let the run go when none of its strands has anything to do now."""
        if self._active == 0 and self._parking and not self._timed_out:
            move.rest = self._parking.rest()

    # Ends.

    def _end(self, strand: Strand, end: End, move: Move) -> None:
        if strand.fork_of is None:
            move.ending = finished(strand, end)
        else:
            strand.fork_of.ended(int(strand.thread.rpartition(".")[2]), strand, end)
            self._begin(strand.fork_of, move)

    def given_up(self, reason: str, outcome: str) -> Move:
        """Return the move that suspends the run, because it cannot go on here."""
        return Move(self, ending=suspended(self.claimed, reason, outcome))

    # For strands.

    def save(self, strand: Strand) -> None:
        """Make a strand's memo durable now."""
        self._save(Move(self, records=strand.mark("memo" if strand.once else "mark")))
