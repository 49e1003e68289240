"""The inline engine: drives `advance` here and now, with the run in memory."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context

from iocflow.advance import advance
from iocflow.context import fields_of
from iocflow.errors import RunSignal
from iocflow.perform import Performer
from iocflow.plan import Command, End, Position, Reply
from iocflow.run import Step


class InlineLoop(Performer):
    """Drives one thread of control; a branch or parallel item gets a loop of its own."""

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

    def _do(self, command: Command, deadline: float | None) -> Reply:
        if command["do"] == "wait":  # asked of the run around this one, by an activity that kept that one's `step`
            raise RunSignal(command["name"], command["timeout"])
        if command["do"] == "sleep":
            left = command["delay"] if deadline is None else deadline - time.monotonic()
            time.sleep(max(0.0, min(command["delay"], left)))
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
        forking = threading.Lock()
        self.kept = {}

        def branch(i: int) -> End:
            try:
                with forking:
                    context = self.fork(command, i)
                before = fields_of(context)
                loop = InlineLoop(self.plan, self.parts, self.runner, context, self.info.following(), self.key)
                # The live errors are shared, so that the branch's records stay good here.
                loop.errors, loop.around, rows[i] = self.errors, self.limits, loop.rows
                with loop.at_work():
                    end = loop.drive(children[i])
                if end["outcome"] != "FAILED":
                    self.keep(command, i, before, loop.context, stopped=end["outcome"] == "STOPPED")
                return end
            except Exception as error:  # noqa: BLE001 - a context that cannot be forked or compared fails its branch
                return End(outcome="FAILED", error=self.errors.record(error), raises=True, last=None)

        parallel = self.parts.composites[command["p"]].parallel or len(children)
        pool = ThreadPoolExecutor(parallel, thread_name_prefix="iocflow-branch")
        try:
            futures = [pool.submit(copy_context().run, branch, i) for i in range(len(children))]
            wait(futures, return_when=FIRST_EXCEPTION)  # an interruption: branches raise nothing else
        finally:
            pool.shutdown(cancel_futures=True)
        interrupted = [raised for future in futures if not future.cancelled() and (raised := future.exception())]
        if interrupted:
            raise interrupted[0]
        self.rows += itertools.chain.from_iterable(rows)
        return {"ends": [future.result() for future in futures]}
