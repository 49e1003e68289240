"""The inline engine: drives `advance` here and now, with the run in memory."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field

from iocflow.advance import advance
from iocflow.context import fields_of
from iocflow.errors import RunSignal
from iocflow.perform import Performer
from iocflow.plan import Command, End, Position, Reply
from iocflow.run import Step

_TICK_S = 0.05  # how soon a branch that begins to wait while all are to end is told so


class _Halted(BaseException):
    """A branch ends, because another part of its run is interrupted."""


@dataclass(slots=True)
class _Halt:
    """What the branches of a run share: whether they are to end at once, and the threads that they run in."""

    over: threading.Event = field(default_factory=threading.Event)
    threads: set[int] = field(default_factory=set)


class InlineLoop(Performer):
    """Drives one thread of control; a branch or parallel item gets a loop of its own."""

    halt: _Halt | None = None

    def drive(self, position: Position, reply: Reply | None = None) -> End:
        """Go on from `position`, with the reply to its command if that was run already, to the end."""
        command: Command = {}
        while True:
            tried = command
            command, position = advance(self.plan, position, reply)
            self.follow(tried, reply, command, position)
            if command["do"] == "end":
                return command["end"]
            reply = self._do(command, self.time_limit(command, position))
            if self.halt is not None and self.halt.over.is_set():
                raise _Halted

    def _do(self, command: Command, deadline: float | None) -> Reply:
        if command["do"] == "wait":  # asked of the run around this one, by an activity that kept that one's `step`
            raise RunSignal(command["name"], command["timeout"])
        if command["do"] == "sleep":
            left = command["delay"] if deadline is None else deadline - time.monotonic()
            pause = time.sleep if self.halt is None else self.halt.over.wait
            pause(max(0.0, min(command["delay"], left)))
            return {}
        if command["do"] != "fork":
            return self.perform(command, deadline)
        try:
            self.bind(command)
            return self._fork(command)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the split's
            return self.failed(error)

    def _fork(self, command: Command) -> Reply:
        children = command["children"]
        rows: list[Sequence[Step]] = [()] * len(children)
        forking, halt = threading.Lock(), self.halt or _Halt()
        self.kept = {}

        def branch(i: int) -> End:
            halt.threads.add(threading.get_ident())
            try:
                with forking:
                    context = self.fork(command, i)
                before = fields_of(context)
                loop = InlineLoop(self.plan, self.parts, self.runner, context, self.info.following(), self.key)
                # The live errors are shared, so that the branch's records stay good here.
                loop.errors, loop.around, loop.halt, rows[i] = self.errors, self.limits, halt, loop.rows
                with loop.at_work():
                    end = loop.drive(children[i])
                if end["outcome"] != "FAILED":
                    self.keep(command, i, before, loop.context, stopped=end["outcome"] == "STOPPED")
                return end
            except Exception as error:  # noqa: BLE001 - a context that cannot be forked or compared fails its branch
                return End(outcome="FAILED", error=self.errors.record(error), raises=True, last=None)
            finally:
                halt.threads.discard(threading.get_ident())

        parallel = self.parts.composites[command["p"]].parallel or len(children)
        pool = ThreadPoolExecutor(parallel, thread_name_prefix="iocflow-branch")
        futures: list[Future[End]] = []
        try:
            for i in range(len(children)):
                futures.append(pool.submit(copy_context().run, branch, i))
            wait(futures, return_when=FIRST_EXCEPTION)  # an interruption: branches raise nothing else
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(map(Future.done, futures)):  # this thread or a branch is interrupted
                halt.over.set()
                self.runner.cancel([*halt.threads])
                wait(futures, _TICK_S)
            pool.shutdown()
        interrupted = [raised for future in futures if not future.cancelled() and (raised := future.exception())]
        if interrupted:
            raise next((raised for raised in interrupted if not isinstance(raised, _Halted)), interrupted[0])
        self.rows += itertools.chain.from_iterable(rows)
        return {"ends": [future.result() for future in futures]}
