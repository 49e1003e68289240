"""The quick path of a plain sequence: as long as its steps only succeed, a run needs no engine to know what is next."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from iocflow.context import ProcessContext, StepInfo
from iocflow.durable.worker.positions import Place, plain
from iocflow.durable.worker.step_info import DurableStepInfo, GroupState
from iocflow.durable.worker.strand import Strand
from iocflow.errors import RunSignal
from iocflow.perform import settle
from iocflow.plan import Plan, Reply
from iocflow.run import current
from iocflow.store.contract import Record

if TYPE_CHECKING:
    from iocflow.durable.worker.held import Held
    from iocflow.durable.worker.move import Move


class Quick:
    """The one strand of such a run; whatever else than a plain success comes, it goes on as a `Strand` for good.

    Attributes:
        at: The index of the next step.
    """

    __slots__ = (
        "_calls", "_context", "_info", "_names", "_plan", "_plan_id", "_seed", "_stored", "_strand",
        "_write", "at", "held",
    )  # fmt: skip
    transactional = begun = False

    def __init__(
        self, held: Held, plan_id: int, plan: Plan, at: int, context: Any, stored: bytes | None, seed: Any = None
    ) -> None:
        """Take a step to go on from; `stored` is the context's last record, `seed` is still to be set."""
        self.held, self.at = held, at
        self._plan_id, self._plan, self._context, self._stored, self._seed = plan_id, plan, context, stored, seed
        self._calls, self._names, self._write = held.job.calls, held.job.processor.names, held.job.codec.write
        self._info: DurableStepInfo | None = None
        self._strand: Strand | None = None

    # What a step is lent.

    def lend(self) -> StepInfo:
        """Return the info of the step under way."""
        if self._info is None:
            held, name = self.held, self._names[self.at]
            info = self._info = DurableStepInfo(self, str(held.claimed.id), held.job.processor.name)
            info.activity, info.idempotency_key = name, f"{held.key}/{name}#{self.at + 1}"
            info.deadline = held.deadline
        return self._info

    @property
    def group(self) -> GroupState:
        """The run's group."""
        return self.held.group

    @property
    def revoked(self) -> bool:
        """Whether the run was taken from this worker."""
        return self.held.revoked

    def save_memo(self) -> None:
        """Make the memo durable now; from here on the run is a strand."""
        self._strand = self._strand or self._left(seeding=False)
        self._strand.save_memo()

    # Going on.

    def move(self) -> Move:
        """Do one step, and return what is to be recorded."""
        if self.held.overdue:
            return self.held.timed_out()
        context = self._context
        began = time.time()
        context._asked, context._lender, token = None, self, current.set(self)
        seeding = self._seed is not None
        result: ProcessContext | str | None = None
        failure: Exception | RunSignal | None = None
        data: bytes | None = None
        try:
            if seeding:
                context.set_seed_data(self._seed)
                seeding, self._seed = context._asked is not None, None
            if not seeding:
                returned = self._calls[self.at](context)
                if returned is not None:
                    result = self._settled(returned)
                data = self._write(context)
        except RunSignal as signal:
            failure = signal
        except Exception as error:  # noqa: BLE001 - handlers decide
            failure = error
        finally:
            context._lender = None
            current.reset(token)
        same = (result is None or result is context) and not (self._info and self._info.outgoing)
        if data is not None and same and context._asked is None and self._strand is None:
            return self._done(data, began, time.time())
        return self._leave(seeding, result, failure, began)

    def _settled(self, returned: object) -> ProcessContext | str | None:
        job = self.held.job
        timeout = None if self.held.claimed.deadline is None else self.lend().remaining()
        return settle(job.activity(self.at), returned, job.processor.runner, timeout)

    def _done(self, data: bytes, began: float, ended: float) -> Move:
        held, name, shift = self.held, self._names[self.at], self.held.clock.shift
        self.at += 1
        self._info = None
        changed = None if data == self._stored else data
        self._stored = data
        last = self.at == len(self._names)
        run, n, pos = held.claimed.id, held.numbers.next(), None if last else str(self.at)
        rest = "DONE", 1, None, None, self._plan_id, pos, changed
        record = Record(run, n, "step", "", name, began + shift, ended + shift, *rest)
        return held.moved_plainly(self, record, last=last)

    # Leaving the quick path.

    def _leave(
        self, seeding: bool, result: ProcessContext | str | None, failure: Exception | RunSignal | None, began: float
    ) -> Move:
        """Go on as a strand, with the reply to the step that was just done, or to the seeding."""
        strand = self._strand or self._left(seeding=seeding)
        if not seeding:
            strand.began[strand.command["path"]] = began
        strand.reply = self._reply(strand, result, failure)
        strand.overdue = "error" in strand.reply and self.lend().remaining() == 0
        return self.held.go(strand)

    @staticmethod
    def _reply(strand: Strand, result: ProcessContext | str | None, failure: Exception | RunSignal | None) -> Reply:
        if isinstance(failure, RunSignal):
            return {"wait": {"name": failure.name, "timeout": failure.timeout}, "stop": strand.stops()}
        return strand.returned(result) if failure is None else strand.failed(failure)

    def _left(self, *, seeding: bool) -> Strand:
        position = self.held.beginning(self._plan) if seeding else plain(self._plan, self.at)
        strand = Strand(self.held, "", self._plan, self._plan_id, self._context, Place(position))
        strand.knows(self._stored)
        if self._info is not None:
            self._info.lender = strand
            strand.info = self._info
        return strand
