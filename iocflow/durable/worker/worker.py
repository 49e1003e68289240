"""The worker: claims runs, moves them on, and commits what many of them did in one transaction.

A run in hand is a continuation, not a thread. A thread takes a strand that is ready, lets it do one step, and puts what
it wants recorded with what is pending. A thread that finds nothing ready writes all that is pending in one transaction,
together with new claims, and so makes those strands ready again. A lone run is committed by its own thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence

from iocflow.durable.clock import StoreClock
from iocflow.durable.errors import ContextError
from iocflow.durable.job import Job
from iocflow.durable.settings import WorkerSettings
from iocflow.durable.worker.hand import Hand, Ready
from iocflow.durable.worker.held import Held
from iocflow.durable.worker.membership import Membership
from iocflow.durable.worker.move import Move
from iocflow.durable.worker.pending import Pending, batch_of
from iocflow.durable.worker.strand import Strand
from iocflow.durable.worker.upkeep import Upkeep
from iocflow.durable.worker.window import Window
from iocflow.store.contract import Batch, Claimed, Receipt, StepTransaction, Store
from iocflow.store.errors import FencedError, StoreError, StoreFullError, TransactionError

_LOGGER = logging.getLogger("iocflow.durable")
_PATIENCE, _AGAIN, _LISTENING = 1.0, 0.005, 0.25


class Worker:
    """Works on the runs of a store, in threads of its own, until it is stopped."""

    def __init__(self, store: Store, jobs: Mapping[str, Job], settings: WorkerSettings | None = None) -> None:
        """Take the store and the processors by id."""
        self.store, self.jobs, self.settings = store, jobs, settings or WorkerSettings()
        self._hand = Hand()
        self._pending = Pending()
        self._lead = threading.Lock()
        self._changed = threading.Condition()
        self._waiting = 0
        self._window = Window(self.settings.threads, self.settings.window)
        self._look, self._stopping, self._sweeping = True, False, False
        self._hungry = threading.Event()
        self._last_taken = 0.0
        self._wake_at: float | None = None
        self._threads: list[threading.Thread] = []
        self._clock = StoreClock(time.time())
        self._member = Membership(store, self.settings.lease, self._clock)

    # Life.

    def start(self) -> None:
        """Register and begin.

        Raises:
            StoreError: The store does not answer.
        """
        self._member.register()
        names = [(f"iocflow-worker-{i}", self._work) for i in range(self.settings.threads)]
        names.append(("iocflow-watch", self._watch))
        self._threads = [threading.Thread(target=do, name=name, daemon=True) for name, do in names]
        for thread in self._threads:
            thread.start()

    def stop(self, grace: float | None = None) -> bool:
        """Take nothing more, wait up to `grace` seconds for the activities under way, and give back the rest.

        Returns whether all threads ended; runs of those that did not are taken over when the lease has run out.
        """
        self._stopping = True
        with self._changed:
            self._changed.notify_all()
        self._hungry.set()
        self._member.ended.set()
        self.store.rouse()
        end = None if grace is None else time.monotonic() + grace
        for thread in self._threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))
        ended = not any(thread.is_alive() for thread in self._threads)
        try:
            self._give_back()
            if ended:
                self._drop_all()
                self.store.retire(self._member.id)
        except StoreError as error:
            _LOGGER.warning(
                "the store is lost (%s): others take the runs in hand over when the lease has run out", error
            )
        return ended

    def idle(self) -> bool:
        """Return whether nothing is in hand, and the last look found nothing to claim."""
        return not (self._look or self._sweeping or self._lead.locked() or self._hand or self._pending)

    @property
    def trouble(self) -> str:
        """What keeps it from working: the store does not answer, or is full; empty when all is well."""
        return self._member.trouble

    def _restart(self, id: int, *, fenced: bool) -> None:
        """Give up all that is in hand, whose records may be lost, and begin anew as another worker than `id`.

        Called with the lead.
        """
        if id != self._member.id:
            return  # another thread heard of it, too
        self._drop_all(late=fenced)
        self._look = self._member.renew(fenced=fenced) or self._look

    def _drop_all(self, *, late: bool = True) -> None:
        self._hand.drop_all()
        self._pending.drop_all(late=late)

    # Working.

    def _work(self) -> None:
        while not self._stopping:
            one = self._hand.next()
            if one is None:
                self._lead_or_wait()
            else:
                self._last_taken = time.monotonic()
                self._do(one)

    def _do(self, one: Ready) -> None:
        """Let a strand, or a run that was just claimed, go on."""
        held = one.held
        if held.revoked:
            return
        try:
            if isinstance(one, Strand) and one.transactional:
                self._do_in_transaction(one)
                return
            move = one.move()
            if move.overdue:
                self._time_out(move)
                return
        except ContextError as error:
            move = self._given_up(held, str(error), "unreadable")
        except StoreError as error:  # a plan that was to be read; what activities do with a store is their own
            _LOGGER.warning("the store is lost (%s): run %s is taken up again", error, held.claimed.id)
            with self._lead:
                self._restart(held.worker, fenced=False)
            return
        except BaseException as error:
            _LOGGER.exception("run %s of %s was interrupted", held.claimed.id, held.claimed.processor)
            move = self._given_up(held, f"interrupted by {type(error).__name__}: {error}", "interrupted")
        if move.to_record:
            self._pending.append(move)
        else:
            self._ready(move.ready)

    def _time_out(self, move: Move) -> None:
        """Let the store time out a run whose deadline has passed; what it did since then waits until it has."""
        self._pending.append(move)
        self.store.sweep(deliveries=self.settings.deliveries, by=move.held.worker)
        self._look = True

    @staticmethod
    def _given_up(held: Held, reason: str, outcome: str) -> Move:
        _LOGGER.error("run %s of %s is suspended: %s", held.claimed.id, held.claimed.processor, reason)
        return held.given_up(reason, outcome)

    def _do_in_transaction(self, strand: Strand) -> None:
        """Let a strand do its step in a transaction of its own, with its record."""
        held = strand.held
        try:
            with held.writing, self.store.begin(held.worker, lease=self.settings.lease) as transaction:
                if held.revoked:
                    return
                move = held.go(strand, transaction)
                receipt = None if move.overdue else self._committed(transaction, move)
            if receipt is None:
                self._time_out(move)
                return
        except FencedError:
            with self._lead:
                self._restart(held.worker, fenced=True)
        except TransactionError as error:  # what the activity committed by itself is done: not again, unasked
            self._pending.append(self._given_up(held, str(error), "interrupted"))
        except StoreError as error:
            _LOGGER.warning("the transaction of %s is lost: %s", strand.command.get("path"), error)
            with self._lead:
                self._restart(held.worker, fenced=False)
        else:
            with self._lead:
                if held.worker == self._member.id:  # not what an earlier one claimed: it gave that back
                    self._settle([move], receipt)
        finally:
            with self._lead:
                self._pending.resume(held)

    def _committed(self, transaction: StepTransaction, move: Move) -> Receipt:
        batch = batch_of([move], self._hand, self._room())
        try:
            return transaction.commit(batch)
        except StoreError:
            move.records = move.held.numbers.taken_back(move.records)
            raise

    def _ready(self, strands: Sequence[Ready]) -> None:
        self._hand.ready.extend(strands)
        self._wake(len(strands) - 1)  # this thread takes one itself

    def _wake(self, most: int = 1) -> None:
        if self._waiting and most > 0:
            with self._changed:
                self._changed.notify(most)

    # Committing.

    def _lead_or_wait(self) -> None:
        if self._to_commit() and self._lead.acquire(blocking=False):
            try:
                self._commit()
            finally:
                self._lead.release()
            if self._to_commit():
                self._wake()
            return
        with self._changed:
            self._waiting += 1
            if not (self._stopping or self._hand.ready or (self._to_commit() and not self._lead.locked())):
                self._changed.wait()
            self._waiting -= 1

    def _to_commit(self) -> bool:
        return bool(self._pending) or (self._look and self._room() > 0)

    def _room(self) -> int:
        """Return how many groups more may be in hand."""
        return 0 if self._stopping or self._hand.suspects else max(0, self._window.size - len(self._hand))

    def _commit(self) -> None:
        """Write all that is pending, and claim; called with the lead."""
        moves = self._pending.take(self.settings.window)
        began, idle = time.monotonic(), self._member.seen
        self._look = False
        try:
            if self._pending.late:
                self._tell_late()
            batch = batch_of(moves, self._hand, self._room())
            receipt = self.store.commit(self._member.id, batch, lease=self.settings.lease)
        except FencedError as error:
            _LOGGER.warning("%s: what %s runs did since their last record is dropped", error, len(moves))
            self._pending.put_back(moves)
            self._restart(self._member.id, fenced=True)
        except StoreFullError as error:
            self._pending.put_back(moves)
            self._member.full(error)
        except StoreError as error:
            _LOGGER.warning("the store is lost (%s): what %s runs did is done again", error, len(moves))
            self._pending.put_back(moves)
            self._restart(self._member.id, fenced=False)
        else:
            self._member.committed(much=bool(moves))
            now = self._member.seen
            self._window.adapt((now - began) / max(now - idle, 1e-9), len(moves))
            self._settle(moves, receipt)
        finally:
            self._pending.written()

    def _tell_late(self) -> None:
        """Journal whose records were dropped."""
        late, self._pending.late = self._pending.late, {}
        self.store.fenced_out(self._member.id, late)

    def _settle(self, moves: Sequence[Move], receipt: Receipt) -> None:
        """Take up what the commit made possible; called with the lead."""
        self._clock.set(receipt.now)
        self._wake_at = receipt.wake
        self._look = self._look or receipt.more
        self._drop(receipt.dropped)
        ready: list[Ready] = []
        for move in moves:
            if move.lets_go:
                ready += self._hand.let_go(move)
            elif not move.held.revoked:
                ready += move.ready
            move.tell_done()
        for claimed in receipt.claimed:
            ready += self._claimed(claimed)
        if not self._look and self._room():
            self._hungry.set()
        self._ready(ready)

    def _claimed(self, claimed: Claimed) -> list[Held]:
        """Take a run into the hand; return it if it is the first of its group."""
        job = self.jobs.get(claimed.processor)
        held = Held(claimed, self._member.id, job, self.store, self._clock, self._save)
        return [held] if self._hand.take(held) else []

    def _save(self, move: Move) -> None:
        """Make a move durable before returning.

        Raises:
            FencedError: The run was taken from this worker.
        """
        move.done = threading.Event()
        self._pending.append(move)
        while not move.done.is_set():
            with self._lead:
                if not move.done.is_set():
                    self._commit()
            move.done.wait(_AGAIN)
        if move.held.revoked:
            raise FencedError(f"run {move.held.claimed.id} was taken from this worker")

    # Watching.

    def _watch(self) -> None:
        """Look for new work, for what is due, and for the dead; show life when no commit did."""
        upkeep = Upkeep(self.store, self.settings)
        while not self._stopping:
            id = self._member.id
            try:
                patience = self._patience()
                if self._hungry.wait(patience) and not self._stopping:
                    self._hungry.clear()
                    self.store.listen(patience)
                self._sweeping = True  # until what it finds is looked for: this is not idle
                self._drop_taken(id, self._member.beat())
                upkeep.do(id)
                self._rouse()
                if self._hand.ready and time.monotonic() - self._last_taken > _PATIENCE:
                    self._give_back()
            except FencedError:
                with self._lead:
                    self._restart(id, fenced=True)
            except StoreError as error:
                self._member.unanswered(error)
            else:
                self._member.answered("watch")
            self._look, self._sweeping = True, False
            self._wake()

    def _patience(self) -> float:
        """Return the seconds until something is to be done anyway."""
        runs = self._hand.runs()
        times = [self._wake_at, *(held.next_due() for held in runs)]
        due = [at - self._clock.now() for at in times if at is not None]
        listening = [_LISTENING] if any(held.listens for held in runs) else []
        return max(0.0, min([self.settings.tick, self.settings.lease / 6, *listening, *due]))

    def _give_back(self) -> None:
        """Give other workers what is ready here while all threads are busy for long."""
        with self._lead:
            if self._pending:
                self._commit()
            idle = self._hand.idle()
            if idle:
                released = Batch(released=[held.claimed.group for held in idle])
                self.store.commit(self._member.id, released, lease=self.settings.lease)
                self._hand.drop(held.claimed.id for held in idle)

    def _drop_taken(self, id: int, runs: frozenset[int]) -> None:
        """Put down runs that were taken from the worker `id`."""
        if runs:
            with self._lead:
                if id == self._member.id:
                    self._drop(runs)

    def _drop(self, runs: frozenset[int]) -> None:
        """Put down runs that were taken from this worker; called with the lead."""
        self._hand.drop(runs)
        self._pending.resume()

    def _rouse(self) -> None:
        """Let strands go on that sleep or wait beside others of their run, when it is time or a signal came."""
        runs = self._hand.runs()
        listening = [held.claimed.id for held in runs if held.listens]
        came = self.store.signals(listening) if listening else {}
        for held in runs:
            move = held.roused(came.get(held.claimed.id, ()))
            if move is not None and move.to_record:
                self._pending.append(move)
            elif move is not None:
                self._hand.ready.extend(move.ready)
                self._wake(len(move.ready))
