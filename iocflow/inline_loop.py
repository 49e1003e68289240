"""The inline engine: drives `advance` here and now, with the run in memory."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

import iocflow.errors as errors_module
from iocflow.activity import Activity
from iocflow.advance import advance
from iocflow.async_runner import AsyncRunner
from iocflow.context import Asked, ProcessContext, StepInfo, fields_of
from iocflow.error_handling import PASS, Decision, HandlesErrors, class_names
from iocflow.errors import ErrorRecord, RecordedError, UnknownActivityError, qualified, record_of
from iocflow.hooks import Interceptor, RunObserver
from iocflow.plan import Command, End, Plan, Position, Reply, steps_of
from iocflow.run import (
    RunEvent,
    Step,
    StepFailed,
    StepFinished,
    StepOutcome,
    StepStarted,
    current_of_thread,
)

__all__ = ["Composite", "InlineLoop", "Parts", "settle", "take_asked"]


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

    def kept(self, context: Any, before: Mapping[str, Any], fork: Any) -> Any:
        """Return what the join needs of a fork, whose fields were `before`."""

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

    def __init__(
        self, plan: Plan, parts: Parts, runner: Callable[[], AsyncRunner], context: Any, info: StepInfo, key: str
    ) -> None:
        """Take what a run needs; `info` names the run, `key` begins every idempotency key."""
        self.plan, self.parts, self.runner, self.context = plan, parts, runner, context
        self.info, self._key, self.idle = info, key, False
        self.rows: list[Step] = []
        self.began: dict[str, float] = {}
        self._outer_deadline: float | None = None
        self._deadlines: dict[tuple[str, int, int], float] = {}
        self._live: dict[int, Exception] = {}
        self._refs = itertools.count()
        self._forking = threading.Lock()
        self._logger = logging.getLogger("iocflow")
        self.seed: Any = None

    def lend(self) -> StepInfo:
        """Return the info of the step under way."""
        return self.info

    def drive(self, position: Position, reply: Reply | None = None) -> End:
        """Go on from `position`, with the reply to its command if that was run already, to the end."""
        outer, self.context._lender = self.context._lender, self
        current_of_thread().lender = self
        try:
            while True:
                command, position = advance(self.plan, position, reply)
                for row in position["ended"]:
                    self._record(row["path"], row["outcome"], row["attempts"], row["error"], row["result"])
                if command["do"] == "end":
                    return command["end"]
                reply = self._do(command, position)
        finally:
            # Loop and context would keep each other alive until the garbage collector comes by.
            self.context._lender = outer

    def failed(self, error: Exception) -> ErrorRecord:
        """Return `error` as plain data, and keep it alive for handlers and the run."""
        cause = error.__cause__
        record = record_of(
            type(error), str(error), f"{qualified(type(cause))}: {cause}" if cause else "", next(self._refs)
        )
        if isinstance(error, RecordedError):
            record["type"], record["names"] = error.type, list(class_names(error))
        self._live[record["ref"]] = error
        return record

    def live(self, record: ErrorRecord) -> Exception:
        """Return the exception that `record` stands for, with its notes."""
        if record["ref"] < 0:
            error: Exception
            name = record["type"].rpartition(".")[2]
            if record["errors"]:
                error = ExceptionGroup(record["message"], [self.live(part) for part in record["errors"]])
            elif record["type"].startswith("iocflow.errors."):
                error = getattr(errors_module, name)(record["message"])
            else:
                error = RecordedError(record)
            record["ref"] = next(self._refs)
            self._live[record["ref"]] = error
        error = self._live[record["ref"]]
        for note in record["notes"]:
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
        return error

    def log_once(self, record: ErrorRecord, level: int, text: str, *args: object) -> None:
        """Log a failure that is not in the log yet."""
        if not record["logged"]:
            self._logger.log(level, text, *args, exc_info=self.live(record))
            record["logged"] = True

    # Commands.

    def _do(self, command: Command, position: Position) -> Reply:
        if command["do"] == "sleep":
            time.sleep(command["delay"])
            return {}
        try:
            for processor, item in command["bind"]:
                self.parts.composites[processor].bind(self.context, item)
            if command["do"] == "fork":
                return self._fork(command, self._deadline(position))
            return self._modes[command["mode"]](self, command, position)
        except Exception as error:  # noqa: BLE001 - whatever user code raises is the reply
            return {"error": self.failed(error), "stop": take_asked(self.context).get("stop", False)}

    def _seed(self, _command: Command, _position: Position) -> Reply:
        self.context.set_seed_data(self.seed)
        return {"stop": self._stops(take_asked(self.context))}

    def _execute(self, command: Command, position: Position) -> Reply:
        self._lend(command, position)
        activity = self.parts.activities[command["step"]["ref"]]
        context = self.context
        if self.parts.observers:
            self._emit(StepStarted(*self._ids, command["path"], command["attempt"], time.time()))

        def proceed() -> ProcessContext | str | None:
            return settle(activity, activity.execute(context), self.runner, self.info.remaining())

        for interceptor in reversed(self.parts.interceptors):
            proceed = _wrapped(interceptor, self.info, context, proceed)
        result = proceed()
        asked = take_asked(context)
        if isinstance(result, ProcessContext) and result is not context:
            asked = {**asked, **take_asked(result)}
            result._lender, self.context = self, result
        goto = asked.get("next")
        if goto and "names" in command and goto not in command["names"]:
            known = ", ".join(command["names"])
            raise UnknownActivityError(f"next_activity is {goto!r}, which is no activity here (known: {known})")
        named = result if isinstance(result, str) else None
        return {"next": named, "goto": goto, "stop": self._stops(asked)}

    def _handle(self, command: Command, position: Position) -> Reply:
        self._lend(command, position)
        record = command["error"]
        error, context = self.live(record), self.context
        self.info.failure = record
        try:
            decision = self._decide(command, error)
        except Exception as raised:
            if raised is not error and raised.__cause__ is None:
                raised.__cause__ = error
            self._failed_attempt(command, error, "raise")
            raise
        finally:
            self.info.failure = None
        level = logging.ERROR if decision.kind == "fail" else logging.WARNING
        self.log_once(record, level, "%s failed, decided: %s", command["path"] or command["p"], decision.kind)
        self._failed_attempt(command, error, decision.kind)
        stop = self._stops(take_asked(context))
        logged = record["logged"]
        return {
            "decision": decision.kind,
            "delay": decision.delay,
            "goto": decision.activity,
            "logged": logged,
            "stop": stop,
        }

    def _decide(self, command: Command, error: Exception) -> Decision:
        for chain, none in ((command["own"], Decision("continue")), (command["default"], Decision("fail"))):
            for id in chain:
                handler = self.parts.handlers[id]
                decision = handler.handle_error(self.context, error)
                if decision is None:
                    return none
                if not isinstance(decision, Decision):
                    raise TypeError(f"handler {id} returned {decision!r}: a Decision or None is wanted")
                if decision != PASS:
                    return decision
        return Decision("fail")

    def _items(self, command: Command, _position: Position) -> Reply:
        return {"count": self.parts.composites[command["p"]].count(self.context)}

    def _collect(self, command: Command, _position: Position) -> Reply:
        composite = self.parts.composites[command["p"]]
        composite.collect(self.context, command["item"], lost=bool(command["failed"]))
        return {}

    def _join(self, command: Command, _position: Position) -> Reply:
        composite = self.parts.composites[command["p"]]
        joined = composite.join(self.context, self._kept, command["failed"])
        if isinstance(joined, ProcessContext):
            joined._lender, self.context = self, joined
        return {}

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
        threads = composite.parallel or len(children)
        kept: list[Any] = [None] * len(children)
        rows: list[list[Step]] = [[] for _ in children]

        def branch(i: int) -> End:
            try:
                with self._forking:
                    context = composite.fork_for(self.context, i)
            except Exception as error:  # noqa: BLE001 - a context that cannot be forked fails its branch
                return End(outcome="FAILED", error=self.failed(error), raises=True, last=None)
            before = fields_of(context)
            loop = self._child(context, deadline)
            end = loop.drive(children[i])
            rows[i] = loop.rows
            kept[i] = composite.kept(self.context, before, loop.context)
            return end

        with ThreadPoolExecutor(threads, thread_name_prefix="iocflow-branch") as pool:
            futures = [pool.submit(copy_context().run, branch, i) for i in range(len(children))]
        ends = [future.result() for future in futures]
        self.rows += itertools.chain.from_iterable(rows)
        self._kept = kept
        return {"ends": ends}

    def _child(self, context: Any, deadline: float | None) -> InlineLoop:
        """Return the loop of a branch; it shares the live errors, so that their records stay good here."""
        info = StepInfo(self.info.run_id, self.info.processor, self.info.scheduled_for)
        loop = InlineLoop(self.plan, self.parts, self.runner, context, info, self._key)
        loop._live, loop._refs, loop._outer_deadline = self._live, self._refs, deadline
        return loop

    # What the run leaves.

    @property
    def _ids(self) -> tuple[str, str]:
        return self.info.run_id, self.info.processor

    def _stops(self, asked: Asked) -> bool:
        self.idle = self.idle or asked.get("idle", False)
        return asked.get("stop", False)

    def _lend(self, command: Command, position: Position) -> None:
        """Bring `context.step` up to date: a new one for a new step, so that its memo lives as long as the step."""
        info, path, key = self.info, command["path"], command.get("key")
        if info.activity != path or (key is not None and info.idempotency_key != f"{self._key}/{key}"):
            info = self.info = StepInfo(info.run_id, info.processor, info.scheduled_for)
            info.activity, info.idempotency_key = path, f"{self._key}/{key}" if key else ""
        info.attempt = command["attempt"]
        if command["mode"] == "execute":
            info.deadline = self._deadline(position)

    def _deadline(self, position: Position) -> float | None:
        """Note when each step on the stack began, and return the earliest end of their time limits."""
        limits = [] if self._outer_deadline is None else [self._outer_deadline]
        for frame in position["stack"]:
            if "at" not in frame:
                continue
            step = steps_of(frame, self.plan["p"][frame["p"]])[frame["at"]]
            path = frame["path"] + step["name"]
            self.began.setdefault(path, time.time())
            if step["limit"] is not None:
                attempt = (path, frame["seq"], frame["n"])
                limits.append(self._deadlines.setdefault(attempt, time.monotonic() + step["limit"]))
        return min(limits, default=None)

    def _record(self, path: str, outcome: str, attempts: int, record: ErrorRecord | None, result: str | None) -> None:
        ended = time.time()
        began = self.began.pop(path, ended)
        error = self.live(record) if record else None
        if record and outcome == "FAILED":
            self.log_once(record, logging.ERROR, "%s failed", path)
        times = datetime.fromtimestamp(began, UTC), datetime.fromtimestamp(ended, UTC)
        step = Step(path, StepOutcome[outcome], attempts, *times, error, result)
        self.rows.append(step)
        if self.parts.observers:
            self._emit(StepFinished(*self._ids, step, ended))

    def _failed_attempt(self, command: Command, error: Exception, decision: str) -> None:
        if self.parts.observers:
            path, attempt = command["path"], command["attempt"]
            self._emit(StepFailed(*self._ids, path, attempt, error, decision, time.time()))

    def _emit(self, event: RunEvent) -> None:
        tell(self.parts.observers, event)


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
    activity: Activity[Any], result: object, runner: Callable[[], AsyncRunner], timeout: float | None = None
) -> ProcessContext | str | None:
    """Return what `execute` gave, awaited if need be.

    Raises:
        TypeError: It is neither a context nor a named result nor None.
    """
    if result is None or isinstance(result, ProcessContext | str):
        return result
    if hasattr(result, "__await__"):
        awaited = runner().run(result, timeout)
        if awaited is None or isinstance(awaited, ProcessContext | str):
            return awaited
        result = awaited
    kinds = "a context, a str (a named result) or None"
    raise TypeError(f"{activity.name} returned a {type(result).__name__}: {kinds} is wanted")


def _wrapped(
    interceptor: Interceptor, info: StepInfo, context: Any, proceed: Callable[[], ProcessContext | str | None]
) -> Callable[[], ProcessContext | str | None]:
    return lambda: interceptor.around_step(info, context, proceed)
