"""Performing commands: the user's code is called here, and nowhere else, whatever engine drives the run."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from iocflow.activity import Activity
from iocflow.async_runner import AsyncRunner
from iocflow.context import Asked, ProcessContext, StepInfo, succeed
from iocflow.error_handling import Decision, HandlesErrors
from iocflow.errors import ErrorRecord, IocflowError, LiveErrors, RunSignal, UnknownActivityError, blame, text_of
from iocflow.hooks import Interceptor, RunObserver
from iocflow.plan import Command, Ended, Plan, Position, Reply
from iocflow.position import is_stopping, steps_of
from iocflow.run import RunEvent, Step, StepFailed, StepFinished, StepOutcome, StepStarted, current, utc


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

    def join(self, context: Any, kept: Mapping[int, Any], failed: Sequence[int]) -> Any:
        """Bring the forks together on `context`: what was `kept` of those that did not fail, by index and in order."""


@dataclass(slots=True)
class Parts:
    """The objects that a plan's ids stand for, and the hooks of the run."""

    activities: dict[str, Activity[Any]] = field(default_factory=dict)
    handlers: dict[str, HandlesErrors] = field(default_factory=dict)
    composites: dict[str, Composite] = field(default_factory=dict)
    observers: tuple[RunObserver, ...] = ()
    interceptors: tuple[Interceptor, ...] = ()


class Performer:
    """Runs the user code that commands mean, on the context of one thread of control; engines drive it.

    Attributes:
        context: The run's; an activity or a joiner may have put another in its place.
        info: What `context.step` is. Each step gets `info.following()`, so that an engine's subclass stays.
        errors: The live exceptions behind the records in positions and replies.
        rows: The trail so far.
        began: When each step under way began, by path, in seconds since the epoch.
        deadline: When all of this should have ended, on the clock of `time.monotonic`; None without a limit.
        around: The time limits around all of this, the outermost first: when each ends, and the path of its step.
        limits: Those that hold now, likewise; the path of `deadline` is empty.
        seed: The seed data.
        idle: Whether a poll found nothing to do.
        kept: What the join needs of the branches or items that did not fail, by their index.
    """

    def __init__(self, plan: Plan, parts: Parts, runner: AsyncRunner, context: Any, info: StepInfo, key: str) -> None:
        """Take what a run needs; `info` names the run, `key` begins every idempotency key."""
        self.plan, self.parts, self.runner, self.context = plan, parts, runner, context
        self.info, self.key, self.errors = info, key, LiveErrors()
        self.rows: list[Step] = []
        self.began: dict[str, float] = {}
        self.deadline: float | None = None
        self.around: Sequence[tuple[float, str]] = ()
        self.limits: Sequence[tuple[float, str]] = ()
        self.seed: Any = None
        self.idle = False
        self.kept: dict[int, Any] = {}
        self._deadlines: dict[str, tuple[tuple[int, ...], float]] = {}
        self._logger = logging.getLogger("iocflow")

    def lend(self) -> StepInfo:
        """Return the info of the step under way."""
        return self.info

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Lend `context.step`, and the run's id to log records, while commands are performed in this thread."""
        token = current.set(self)
        self.context._asked, self.context._lender = None, self
        try:
            yield
        finally:
            # Performer and context would keep each other alive until the garbage collector comes by.
            self.context._lender = None
            current.reset(token)

    def perform(self, command: Command, deadline: float | None) -> Reply:
        """Run the user code that a `run` command means, and return what became of it; see `time_limit`.

        An `Exception` of the user's code is a reply; what else it raises passes, but for a `RunSignal`.
        """
        # Not given the position: errors keep this frame alive, and would keep all positions of a long run.
        try:
            self.bind(command)
            if command["mode"] in ("execute", "handle", "items", "join"):
                self.prepare(command, deadline)
            reply: Reply = getattr(self, f"_{command['mode']}")(command)
        except RunSignal as signal:
            reply = self.failed(IocflowError(f"only an activity's `execute` can wait, as for {signal.name!r}"))
        except Exception as error:  # noqa: BLE001 - whatever user code raises is the reply
            reply = self.failed(error)
        over = self._over(command)
        if "error" in reply and over is not None:
            cause = self.errors.live(reply["error"])
            late = TimeoutError(f"the time limit of {over or self.info.processor} is over: {text_of(cause)}")
            late.__cause__ = (cause.__cause__ if "unbegun" in reply else None) or cause
            reply["error"] = {**self.errors.record(late), "over": over}
        return reply

    def prepare(self, command: Command, deadline: float | None) -> None:
        """Bring `info` up to date for what reads the context, as `perform` does by itself.

        A new step gets a new one, so that its memo lives as long as the step.
        """
        step = command["path"], self.step_key(command)
        if (self.info.activity, self.info.idempotency_key) != step:
            self.info = self.info.following()
            self.info.activity, self.info.idempotency_key = step
        self.info.attempt, self.info.deadline, self.info.parts = command["attempt"], deadline, 0

    def step_key(self, command: Command) -> str:
        """Return the idempotency key of the step whose `execute` or `handle` this is, empty when it is no step's."""
        return f"{self.key}/{command['key']}" if "key" in command else ""

    def bind(self, command: Command) -> None:
        """Put the items into their fields that a `run` or `fork` command wants there; `perform` does it by itself."""
        for processor, item in command["bind"]:
            self.parts.composites[processor].bind(self.context, item)

    def failed(self, error: Exception) -> Reply:
        """Return the reply that tells of `error`."""
        return {"error": self.errors.record(error), "stop": self.stops()}

    def returned(self, result: ProcessContext | str | None, names: Collection[str] | None = None) -> Reply:
        """Return the reply that tells what an `execute` returned and asked.

        Raises:
            UnknownActivityError: It set `next_activity` to something else than one of `names`, where there are any.
        """
        if isinstance(result, ProcessContext):
            self._go_on_with(result)
        goto, named = self.context.next_activity, result if isinstance(result, str) else None
        if goto and names is not None and goto not in names:
            known = ", ".join(names)
            raise UnknownActivityError(f"next_activity is {goto!r}, which is no activity here (known: {known})")
        return {"next": named, "goto": goto, "stop": self.stops()}

    def stops(self) -> bool:
        """Clear what was asked on the context, and return whether it was to stop."""
        asked: Asked = self.context._asked or Asked()
        self.context._asked = None
        self.idle = self.idle or asked.get("idle", False)
        return asked.get("stop", False)

    # Branches and parallel items.

    def fork(self, command: Command, i: int) -> Any:
        """Return a context for the child `i` of a `fork` command, whose `bind` is done."""
        return self.parts.composites[command["p"]].fork_for(self.context, i)

    def keep(self, command: Command, i: int, before: Mapping[str, Any], fork: ProcessContext, *, stopped: bool) -> None:
        """Keep for the join what it needs of the child `i`, which did not fail.

        Args:
            command: The `fork` or the `join`.
            i: The child's index.
            before: The fields of `fork` as it began. A field that is another object now was bound anew.
            fork: The context that the child ended with.
            stopped: Whether it ended STOPPED.
        """
        self.kept[i] = self.parts.composites[command["p"]].kept(self.context, before, fork, stopped=stopped)
        if stopped:
            self.context.stopped, self.context.stop_reason = True, fork.stop_reason

    # The modes of a `run` command.

    def _seed(self, _command: Command) -> Reply:
        self.context.set_seed_data(self.seed)
        return {"stop": self.stops()}

    def _execute(self, command: Command) -> Reply:
        activity, context = self.parts.activities[command["step"]["ref"]], self.context
        if self._over(command) is not None:
            error = TimeoutError(f"{command['path']} did not begin")
            error.__cause__ = self.errors.live(command["error"]) if "error" in command else None
            return {**self.failed(error), "unbegun": True}
        self.tell(StepStarted, command["path"], command["attempt"], time.time())

        def proceed() -> ProcessContext | str | None:
            return settle(activity, activity.execute(context), self.runner, self.info.remaining())

        for interceptor in reversed(self.parts.interceptors):
            proceed = partial(interceptor.around_step, self.info, context, proceed)
        try:
            # Once more, because an interceptor may have put something in the place of the result.
            result = settle(activity, proceed(), self.runner, self.info.remaining())
        except RunSignal as signal:
            return {"wait": {"name": signal.name, "timeout": signal.timeout}, "stop": self.stops()}
        return self.returned(result, command.get("names"))

    def _handle(self, command: Command) -> Reply:
        record: ErrorRecord = {**command["error"]}
        error, self.info.failure = self.errors.live(record), record
        if self._over(command) is not None:
            self._failed_attempt(command, error, "fail")
            raise error
        try:
            decision = self._decide(command, error)
        except Exception as raised:  # noqa: BLE001 - the handler's error takes the place of the activity's
            self._failed_attempt(command, error, "raise")
            blame(raised, error)
            reply = self.failed(raised)
            reply["error"]["logged"] = raised is error and record["logged"]
            return reply
        finally:
            self.info.failure = None
        level = logging.ERROR if decision.kind == "fail" else logging.WARNING
        self.log_once(record, level, "%s failed, decided: %s", command["path"], decision.kind)
        self._failed_attempt(command, error, decision.kind)
        goto, stop = decision.activity, self.stops()
        return {"decision": decision.kind, "delay": decision.delay, "goto": goto, "stop": stop}

    def _decide(self, command: Command, error: Exception) -> Decision:
        for chain, none in ((command["own"], Decision("continue")), (command["default"], Decision("fail"))):
            for id in chain:
                handler = self.parts.handlers[id]
                decision = handler.handle_error(self.context, error)
                if isinstance(decision, Awaitable):
                    end = min((end for end, _ in self._around(command)), default=None)
                    decision = self.runner.run(decision, None if end is None else end - time.monotonic())
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
        kept, self.kept = dict(sorted(self.kept.items())), {}
        try:
            joined = composite.join(self.context, kept, command["failed"])
        except Exception as error:
            if not command["failed"]:
                raise
            # Branches failed as well: this may be told of as a part of their group, which nobody logs again.
            reply = self.failed(error)
            self.log_once(reply["error"], logging.ERROR, "the join of %s failed", command["path"])
            reply["error"]["logged"] = True
            return reply
        if isinstance(joined, ProcessContext):
            self._go_on_with(joined)
        elif joined is not None:
            kind = type(joined).__name__
            raise TypeError(f"the joiner of {command['path']} returned a {kind}: a context or None is wanted")
        return {"stop": self.stops()}

    def _go_on_with(self, context: Any) -> None:
        """Make `context` the run's from now on."""
        if context is not self.context:
            succeed(self.context, context)
            self.context = context

    # Between commands.

    def time_limit(self, command: Command, position: Position) -> float | None:
        """Note when each step on the stack began, and return the earliest end of the time limits that hold now.

        A step's own limit does not count between its attempts or while it waits, and limits around a `finally` do not
        count in it. The result is on the clock of `time.monotonic`.
        """
        limits = [*self.around, *([] if self.deadline is None else [(self.deadline, "")])]
        attempt: tuple[int, ...] = ()
        for frame in position["stack"]:
            if "closing" in frame:
                limits.clear()
            if "at" not in frame:
                continue
            step = steps_of(frame, self.plan["p"][frame["p"]])[frame["at"]]
            path, attempt = frame["path"] + step["name"], (*attempt, frame["seq"], frame["n"])
            self.began.setdefault(path, time.time())
            if command["do"] in ("sleep", "wait") and frame is position["stack"][-1]:
                self._deadlines.pop(path, None)
            elif step["limit"] is not None:
                if self._deadlines.get(path, ((),))[0] != attempt:
                    self._deadlines[path] = attempt, time.monotonic() + step["limit"]
                limits.append((self._deadlines[path][1], path))
        self.limits = limits
        return min((end for end, _ in limits), default=None)

    def _around(self, command: Command) -> list[tuple[float, str]]:
        """Return the time limits that hold now, but for that of the command's own step."""
        return [one for one in self.limits if "step" not in command or one[1] != command["path"]]

    def _over(self, command: Command) -> str | None:
        """Return the path of the outermost step around a command whose time limit is over."""
        now = time.monotonic()
        return next((path for end, path in self._around(command) if end <= now), None)

    def follow(self, tried: Command, reply: Reply | None, command: Command, position: Position) -> None:
        """Record and tell what `advance` made of `reply` to `tried`: `command` comes next, at `position`."""
        asked = command.get("mode") == "handle" and command.get("path") == tried.get("path")
        if tried.get("mode") == "execute" and reply and "error" in reply and not ("unbegun" in reply or asked):
            self._failed_attempt(tried, self.errors.live(reply["error"]), "fail")
        for ended in position["ended"]:
            self._record(ended)
        if self.context.stopped is not is_stopping(position):
            self.context.stopped = not self.context.stopped
            self.context.stop_reason = self.context.stop_reason if self.context.stopped else ""

    def _record(self, ended: Ended) -> None:
        now, record = time.time(), ended["error"]
        began = self.began.pop(ended["path"], now)
        end = max(now, began)  # the clock may have been set back meanwhile
        if record and ended["outcome"] == "FAILED":
            self.log_once(record, logging.ERROR, "%s failed", ended["path"])
        error, outcome = self.errors.live(record) if record else None, StepOutcome[ended["outcome"]]
        step = Step(ended["path"], outcome, ended["attempts"], utc(began), utc(end), error, ended["result"])
        self.rows.append(step)
        self.tell(StepFinished, step, end)

    def log_once(self, record: ErrorRecord, level: int, text: str, path: str, *more: object) -> None:
        """Log the failure of what has that path, if it is not in the log yet."""
        if not record["logged"]:
            step = {"activity": path, "attempt": self.info.attempt if self.info.activity == path else 1}
            self._logger.log(level, text, path, *more, exc_info=self.errors.live(record), extra=step)

    def _failed_attempt(self, command: Command, error: Exception, decision: str) -> None:
        self.tell(StepFailed, command["path"], command["attempt"], error, decision, time.time())

    def tell(self, event: Callable[..., RunEvent], *what: object) -> None:
        """Give every observer an event of this run, made of `what`; what one raises is logged and dropped."""
        if not self.parts.observers:
            return
        made = event(self.info.run_id, self.info.processor, *what)
        for observer in self.parts.observers:
            try:
                if isinstance(observer(made), Awaitable):
                    raise TypeError(f"{observer} is async, and nobody awaits it")
            except Exception:
                self._logger.exception("an observer failed on %s", type(made).__name__)


def settle(
    activity: Activity[Any], result: object, runner: AsyncRunner, timeout: float | None = None
) -> ProcessContext | str | None:
    """Return what `execute` gave, awaited if need be.

    Raises:
        TypeError: It is neither a context nor a named result nor None.
    """
    if isinstance(result, Awaitable):
        result = runner.run(result, timeout)
    if result is None or isinstance(result, ProcessContext | str):
        return result
    kinds = "a context, a str (a named result) or None"
    raise TypeError(f"{activity.name} returned a {type(result).__name__}: {kinds} is wanted")
