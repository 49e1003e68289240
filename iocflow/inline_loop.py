"""The inline engine: drives `advance` here and now, with the run in memory."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from iocflow.activity import Activity
from iocflow.advance import advance
from iocflow.async_runner import AsyncRunner
from iocflow.context import Asked, ProcessContext, StepInfo, fields_of, succeed
from iocflow.error_handling import Decision, HandlesErrors
from iocflow.errors import ErrorRecord, LiveErrors, UnknownActivityError
from iocflow.hooks import Interceptor, RunObserver
from iocflow.plan import Command, End, Plan, Position, Reply, steps_of
from iocflow.run import (
    Current,
    RunEvent,
    Step,
    StepFailed,
    StepFinished,
    StepOutcome,
    StepStarted,
    current,
    current_of_thread,
)


class Composite(Protocol):
    """What a split or for-each does with contexts when the engine asks; the other kinds are never asked."""

    parallel: int

    def count(self, context: Any) -> int:
        """Return the number of items."""

    def bind(self, context: Any, item: int) -> None:
        """Put an item into its field."""

    def collect(self, context: Any, item: int, *, lost: bool) -> None:
        """Keep what an item made, or that it failed."""

    def fork_for(self, context: Any, part: int) -> Any:
        """Return the context of a branch or item."""

    def kept(self, context: Any, before: Mapping[str, Any], fork: Any, *, stopped: bool) -> Any:
        """Return what the join needs of a fork that did not fail, whose fields were `before`."""

    def join(self, context: Any, kept: Sequence[Any], failed: Sequence[int]) -> Any:
        """Bring the forks together on `context`."""


@dataclass(slots=True)
class Parts:
    """The objects that a plan's ids stand for, and the hooks of the run."""

    activities: dict[str, Activity[Any]] = field(default_factory=dict)
    handlers: dict[str, HandlesErrors] = field(default_factory=dict)
    composites: dict[str, Composite] = field(default_factory=dict)
    observers: tuple[RunObserver, ...] = ()
    interceptors: tuple[Interceptor, ...] = ()


class InlineLoop:
    """Drives one thread of control; a branch or parallel item gets a loop of its own."""

    def __init__(self, plan: Plan, parts: Parts, runner: AsyncRunner, context: Any, info: StepInfo, key: str) -> None:
        """Take what a run needs; `info` names the run, `key` begins every idempotency key."""
        self.plan, self.parts, self.runner, self.context = plan, parts, runner, context
        self.info, self._key, self.idle = info, key, False
        self.rows: list[Step] = []
        self.began: dict[str, float] = {}
        self.errors = LiveErrors()
        self.deadline: float | None = None
        self._deadlines: dict[str, tuple[tuple[int, ...], float]] = {}
        self._forking = threading.Lock()
        self._logger = logging.getLogger("iocflow")
        self.seed: Any = None

    def lend(self) -> StepInfo:
        """Return the info of the step under way."""
        return self.info

    def drive(self, position: Position, reply: Reply | None = None) -> End:
        """Go on from `position`, with the reply to its command if that was run already, to the end."""
        self.context._asked, self.context._lender = None, self
        current_of_thread().lender = self
        command: Command = {}
        try:
            while True:
                tried = command
                command, position = advance(self.plan, position, reply)
                nobody = (command.get("mode"), command.get("path")) != ("handle", tried.get("path"))
                if nobody and tried.get("mode") == "execute" and reply and "error" in reply:
                    self._failed_attempt(tried, self.errors.live(reply["error"]), "fail")
                for row in position["ended"]:
                    self._record(row["path"], row["outcome"], row["attempts"], row["error"], row["result"])
                if command["do"] == "end":
                    return command["end"]
                reply = self._do(command, self._deadline(command, position))
        finally:
            # Loop and context would keep each other alive until the garbage collector comes by.
            self.context._lender = None

    def log_once(self, record: ErrorRecord, level: int, text: str, *args: object) -> None:
        """Log a failure that is not in the log yet."""
        if not record["logged"]:
            self._logger.log(level, text, *args, exc_info=self.errors.live(record))

    # Commands.

    def _do(self, command: Command, deadline: float | None) -> Reply:
        # Not given the position: errors keep this frame alive, and would keep all positions of a long run.
        if command["do"] == "sleep":
            time.sleep(
                command["delay"] if deadline is None else max(0.0, min(command["delay"], deadline - time.monotonic()))
            )
            return {}
        try:
            for processor, item in command["bind"]:
                self.parts.composites[processor].bind(self.context, item)
            if command["do"] == "fork":
                return self._fork(command, deadline)
            if command["mode"] in ("execute", "handle"):
                self._lend(command, deadline)
            return self._modes[command["mode"]](self, command)
        except Exception as error:  # noqa: BLE001 - whatever user code raises is the reply
            return {"error": self.errors.record(error), "stop": self.stops(self.context)}

    def _seed(self, _command: Command) -> Reply:
        self.context.set_seed_data(self.seed)
        return {"stop": self.stops(self.context)}

    def _execute(self, command: Command) -> Reply:
        activity = self.parts.activities[command["step"]["ref"]]
        context = self.context
        if self.info.remaining() == 0:
            raise TimeoutError(f"{command['path']} did not begin: the time limit of what it is part of is over")
        self._tell(StepStarted, command["path"], command["attempt"], time.time())

        def proceed() -> ProcessContext | str | None:
            return settle(activity, activity.execute(context), self.runner, self.info.remaining())

        for interceptor in reversed(self.parts.interceptors):
            proceed = _wrapped(interceptor, self.info, context, proceed)
        # Once more, because an interceptor may have put something in the place of the result.
        result = settle(activity, proceed(), self.runner, self.info.remaining())
        if isinstance(result, ProcessContext):
            self._go_on_with(result)
        goto = self.context.next_activity
        if goto and "names" in command and goto not in command["names"]:
            known = ", ".join(command["names"])
            raise UnknownActivityError(f"next_activity is {goto!r}, which is no activity here (known: {known})")
        named = result if isinstance(result, str) else None
        return {"next": named, "goto": goto, "stop": self.stops(self.context)}

    def _handle(self, command: Command) -> Reply:
        record: ErrorRecord = {**command["error"]}
        error, self.info.failure = self.errors.live(record), record
        try:
            decision = self._decide(command, error)
        except Exception as raised:  # noqa: BLE001 - the handler's error takes the place of the activity's
            self._failed_attempt(command, error, "raise")
            _blame(raised, error)
            again = self.errors.record(raised)
            again["logged"] = raised is error and record["logged"]
            return {"error": again, "stop": self.stops(self.context)}
        finally:
            self.info.failure = None
        level = logging.ERROR if decision.kind == "fail" else logging.WARNING
        self.log_once(record, level, "%s failed, decided: %s", command["path"], decision.kind)
        self._failed_attempt(command, error, decision.kind)
        stop = self.stops(self.context)
        answer: Reply = {"decision": decision.kind, "delay": decision.delay, "goto": decision.activity}
        return {**answer, "logged": True, "stop": stop}

    def _decide(self, command: Command, error: Exception) -> Decision:
        for chain, none in ((command["own"], Decision("continue")), (command["default"], Decision("fail"))):
            for id in chain:
                handler = self.parts.handlers[id]
                decision = handler.handle_error(self.context, error)
                if decision is None:
                    return none
                if not isinstance(decision, Decision):
                    raise TypeError(f"handler {id} returned {decision!r}: a Decision or None is wanted")
                if decision.kind != "pass":
                    return decision
        return Decision("fail")

    def _items(self, command: Command) -> Reply:
        return {"count": self.parts.composites[command["p"]].count(self.context)}

    def _collect(self, command: Command) -> Reply:
        composite = self.parts.composites[command["p"]]
        composite.collect(self.context, command["item"], lost=bool(command["failed"]))
        return {}

    def _join(self, command: Command) -> Reply:
        composite = self.parts.composites[command["p"]]
        try:
            joined = composite.join(self.context, self._kept, command["failed"])
        except Exception as error:
            if not command["failed"]:
                raise
            # Branches failed as well: this may be told of as a part of their group, which nobody logs again.
            record = self.errors.record(error)
            self.log_once(record, logging.ERROR, "the join of %s failed", command["path"])
            return {"error": {**record, "logged": True}, "stop": self.stops(self.context)}
        if not isinstance(joined, ProcessContext | None):
            kind = type(joined).__name__
            raise TypeError(f"the joiner of {command['path']} returned a {kind}: a context or None is wanted")
        if joined is not None:
            self._go_on_with(joined)
        return {"stop": self.stops(self.context)}

    def _go_on_with(self, context: Any) -> None:
        """Make `context` the run's from now on."""
        if context is not self.context:
            succeed(self.context, context)
            self.context = context

    _modes = {  # noqa: RUF012 - a table of methods
        "seed": _seed,
        "execute": _execute,
        "handle": _handle,
        "items": _items,
        "collect": _collect,
        "join": _join,
    }

    def _fork(self, command: Command, deadline: float | None) -> Reply:
        composite, children = self.parts.composites[command["p"]], command["children"]
        kept: list[Any] = [None] * len(children)
        rows: list[list[Step]] = [[] for _ in children]

        def branch(i: int) -> End:
            try:
                with self._forking:
                    context = composite.fork_for(self.context, i)
                before, loop = fields_of(context), self._child(context, deadline)
                rows[i] = loop.rows
                end = loop.drive(children[i])
                if end["outcome"] != "FAILED":
                    stopped = end["outcome"] == "STOPPED"
                    kept[i] = composite.kept(self.context, before, loop.context, stopped=stopped)
                    if stopped:
                        self.context.stop_reason = loop.context.stop_reason
                return end
            except Exception as error:  # noqa: BLE001 - a context that cannot be forked or compared fails its branch
                return End(outcome="FAILED", error=self.errors.record(error), raises=True, last=None)

        pool = ThreadPoolExecutor(composite.parallel or len(children), thread_name_prefix="iocflow-branch")
        try:
            futures = [pool.submit(copy_context().run, branch, i) for i in range(len(children))]
            wait(futures, return_when=FIRST_EXCEPTION)  # an interruption: branches raise nothing else
        finally:
            pool.shutdown(cancel_futures=True)
        interrupted = [raised for future in futures if not future.cancelled() and (raised := future.exception())]
        if interrupted:
            raise interrupted[0]
        self.rows += itertools.chain.from_iterable(rows)
        self._kept = kept
        return {"ends": [future.result() for future in futures]}

    def _child(self, context: Any, deadline: float | None) -> InlineLoop:
        """Return the loop of a branch; it shares the live errors, so that their records stay good here."""
        info = StepInfo(self.info.run_id, self.info.processor, self.info.scheduled_for)
        loop = InlineLoop(self.plan, self.parts, self.runner, context, info, self._key)
        loop.errors, loop.deadline = self.errors, deadline
        return loop

    # What the run leaves.

    def stops(self, context: ProcessContext) -> bool:
        """Clear what was asked on `context`, and return whether it was to stop."""
        asked = take_asked(context)
        self.idle = self.idle or asked.get("idle", False)
        return asked.get("stop", False)

    def _lend(self, command: Command, deadline: float | None) -> None:
        """Bring `context.step` up to date: a new one for a new step, so that its memo lives as long as the step."""
        info, path, key = self.info, command["path"], command.get("key")
        if info.activity != path or (key is not None and info.idempotency_key != f"{self._key}/{key}"):
            info = self.info = StepInfo(info.run_id, info.processor, info.scheduled_for)
            info.activity, info.idempotency_key = path, f"{self._key}/{key}" if key else ""
        info.attempt, info.deadline, info.parts = command["attempt"], deadline, 0

    def _deadline(self, command: Command, position: Position) -> float | None:
        """Note when each step on the stack began, and return the earliest end of the time limits that hold now.

        A step's own limit does not count between its attempts, and limits around a `finally` do not count in it.
        """
        limits = [] if self.deadline is None else [self.deadline]
        attempt: tuple[int, ...] = ()
        for frame in position["stack"]:
            if "closing" in frame:
                limits.clear()
            if "at" not in frame or (command["do"] == "sleep" and frame is position["stack"][-1]):
                continue
            step = steps_of(frame, self.plan["p"][frame["p"]])[frame["at"]]
            path, attempt = frame["path"] + step["name"], (*attempt, frame["seq"], frame["n"])
            self.began.setdefault(path, time.time())
            if step["limit"] is not None:
                if self._deadlines.get(path, ((),))[0] != attempt:
                    self._deadlines[path] = attempt, time.monotonic() + step["limit"]
                limits.append(self._deadlines[path][1])
        return min(limits, default=None)

    def _record(self, path: str, outcome: str, attempts: int, record: ErrorRecord | None, result: str | None) -> None:
        now = time.time()
        began = self.began.pop(path, now)
        ended = max(now, began)  # the clock may have been set back meanwhile
        error = self.errors.live(record) if record else None
        if record and outcome == "FAILED":
            self.log_once(record, logging.ERROR, "%s failed", path)
        times = datetime.fromtimestamp(began, UTC), datetime.fromtimestamp(ended, UTC)
        step = Step(path, StepOutcome[outcome], attempts, *times, error, result)
        self.rows.append(step)
        self._tell(StepFinished, step, ended)

    def _failed_attempt(self, command: Command, error: Exception, decision: str) -> None:
        self._tell(StepFailed, command["path"], command["attempt"], error, decision, time.time())

    def _tell(self, event: Callable[..., RunEvent], *what: object) -> None:
        if self.parts.observers:
            tell(self.parts.observers, event(self.info.run_id, self.info.processor, *what))


def tell(observers: Sequence[RunObserver], event: RunEvent) -> None:
    """Give `event` to every observer; what one raises is logged and dropped."""
    for observer in observers:
        try:
            observer(event)
        except Exception:
            logging.getLogger("iocflow").exception("an observer failed on %s", type(event).__name__)


def take_asked(context: ProcessContext) -> Asked:
    """Return what was asked of the engine on `context` since the last time, and clear it."""
    asked, context._asked = context._asked, None
    return asked or {}


def settle(
    activity: Activity[Any], result: object, runner: AsyncRunner, timeout: float | None = None
) -> ProcessContext | str | None:
    """Return what `execute` gave, awaited if need be.

    Raises:
        TypeError: It is neither a context nor a named result nor None.
    """
    if result is None or isinstance(result, ProcessContext | str):
        return result
    if hasattr(result, "__await__"):
        awaited = copy_context().run(_awaited, runner, result, timeout)
        if awaited is None or isinstance(awaited, ProcessContext | str):
            return awaited
        result = awaited
    kinds = "a context, a str (a named result) or None"
    raise TypeError(f"{activity.name} returned a {type(result).__name__}: {kinds} is wanted")


def _awaited(runner: AsyncRunner, awaitable: Any, timeout: float | None) -> object:
    """Await with a note of its own: the thread's goes on to other runs, while tasks may be left on the loop."""
    current.set(Current(current_of_thread().lender))
    return runner.run(awaitable, timeout)


def _wrapped(
    interceptor: Interceptor, info: StepInfo, context: Any, proceed: Callable[[], ProcessContext | str | None]
) -> Callable[[], ProcessContext | str | None]:
    return lambda: interceptor.around_step(info, context, proceed)


def _blame(raised: Exception, error: Exception) -> None:
    """Make `error` the first cause of what its handler raised, so that it is not lost."""
    chain = _causes(raised)
    if all(one is not error for one in chain) and all(one is not raised for one in _causes(error)):
        object.__setattr__(chain[-1], "__cause__", error)  # the class may refuse attributes


def _causes(error: BaseException) -> list[BaseException]:
    """Return the error, its cause, the cause of that, and so on."""
    chain = [error]
    while (cause := chain[-1].__cause__) is not None and all(one is not cause for one in chain):
        chain.append(cause)
    return chain
