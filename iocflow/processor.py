"""Processors: ordered collections of activities, each run with a fresh context."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from time import time as _now
from typing import Any, Generic, Protocol, Required, TypedDict, TypeVar, Unpack

from iocflow.activity import Activity, BoundActivity, FunctionActivity, Result, StepLike, bound, kebab_case
from iocflow.advance import ended, start
from iocflow.async_runner import AsyncRunner
from iocflow.compiler import Compiler, Composed
from iocflow.context import ProcessContext, StepInfo
from iocflow.error_handling import OnErrorLike, as_handlers
from iocflow.errors import UnsupportedActivityError, deferral, refuse_unfit
from iocflow.hooks import Interceptor, RunObserver
from iocflow.inline_loop import InlineLoop
from iocflow.perform import settle
from iocflow.plan import Position, ProcessorPlan, Reply, plan_hash
from iocflow.run import Outcome, Run, RunFinished, RunStarted, current

C = TypeVar("C", bound=ProcessContext)


class Engine(Protocol):
    """Carries out the runs of the processors that are entrusted to it, in a way of its own."""

    def launch(
        self,
        processor: Processor[C],
        seed: Any,
        *,
        run_id: str,
        scheduled_for: datetime | None,
        idempotency_key: str,
        here: bool,
    ) -> Run[C]:
        """Return the run that `processor.launch` asks for with the other arguments, each empty when it was not given.

        Args:
            here: Whether the caller waits for the run's end, as that of `do_activities` does.
        """


_Calls = tuple[Callable[[C], Result], ...]
_Rest = tuple[InlineLoop, Position, Reply]

# Looked up once: each costs as much as a short activity.
_current, _note, _forget, _COMPLETED = current.get, current.set, current.reset, Outcome.COMPLETED


class Options(TypedDict, Generic[C], total=False):
    """What every kind of processor takes by name.

    Attributes:
        context: The context's class, or a factory that makes a new context at every call.
        name: Its id; its class's name in kebab-case without one.
        on_error: The default handlers, asked when an activity has none of its own, or those pass.
        finally_: Activities that run after the others, however they ended (but for an interruption).
        max_steps: The bound on attempts in a run of this processor, 1,000 by default.
        observers: Get the run's events.
        interceptors: Wrap every attempt of every activity.
        async_runner: Awaits what activities return; the processor makes one of its own at first need.
    """

    context: Required[type[C] | Callable[[], C]]
    name: str | None
    on_error: OnErrorLike | None
    finally_: Iterable[StepLike[C]]
    max_steps: int
    observers: Iterable[RunObserver]
    interceptors: Iterable[Interceptor]
    async_runner: AsyncRunner | None


class Processor(Composed[C]):
    """Runs activities in an order that its kind tells; a processor is an activity, so that one can stand in another.

    Attributes:
        context_type: The class that a run's context is an instance of.
        plan: The processor as plain data.
        parts: What the ids in the plan stand for, and the hooks.
        new_context: Makes the context of a run.
        calls: What a plain sequence without hooks and limits runs, one call a step; None for anything else.
        bound_fields: The fields that for-each processors in it put their items into; they are never joined.
    """

    def __init__(self, *steps: BoundActivity[C], **options: Unpack[Options[C]]) -> None:
        """Wire the processor; it does not change afterwards.

        Args:
            steps: What it runs; the kinds' constructors say in which form they take it.
            options: See `Options`.

        Raises:
            UnsupportedActivityError: `supports` refuses an activity.
        """
        self.name = options.get("name") or kebab_case(type(self).__name__)
        unknown = ", ".join(set(options) - set(Options.__annotations__))
        if unknown:
            raise TypeError(f"{self.name}: unknown option {unknown} (known: {', '.join(Options.__annotations__)})")
        context: Any = options.get("context")
        self.context_type: type = context if isinstance(context, type) else ProcessContext
        if not callable(context):
            raise TypeError(f"{self.name}: context= is the class of contexts or a function that makes one: {context}")
        _check_context(self.name, self.context_type)
        self.max_steps = options.get("max_steps", 1_000)
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, not {self.max_steps}")
        self.steps = steps
        self.finally_ = tuple(map(bound, options.get("finally_", ())))
        self.handlers = as_handlers(options.get("on_error"))
        inner = [step.activity for step in (*self.steps, *self.finally_) if isinstance(step.activity, Processor)]
        self.bound_fields: frozenset[str] = frozenset().union(*(one.bound_fields for one in inner))
        made = context if isinstance(context, type) else functools.partial(_made, self.name, context)
        self.new_context: Callable[[], C] = made
        self._own_runner = options.get("async_runner")
        self.engine: Engine | None = None
        for one in (*self.steps, *self.finally_):
            if not self.supports(one.activity):
                kind = type(one.activity).__name__
                raise UnsupportedActivityError(f"{self.name} does not support {one.name} ({kind})")
        compiler = Compiler(self)
        self.plan, self.parts = compiler.plan, compiler.parts
        self.hooked(options.get("observers", ()), options.get("interceptors", ()))

    def supports(self, activity: object) -> bool:
        """Return whether `activity` may stand here; asked for every one when the processor is built."""
        return isinstance(activity, Activity)

    @property
    def plan_hash(self) -> str:
        """A hash of all that the processor can reach; equal for equal wirings."""
        return plan_hash(self.plan)

    def execute(self, context: C) -> Result:
        """Run on a context that is there already; raises what makes it fail.

        Called inside of an activity, it is a part of that activity: it has its run's id, its idempotency key and what
        is left of its time; when it ends STOPPED, that activity asked to stop.
        """
        step, lender, asked = context.step, context._lender, context._asked or {}
        stopped, reason = context.stopped, context.stop_reason
        step.parts += 1
        run: Run[C] = Run()
        run.of, run.context, run.ticks = self, context, [_now()]
        run.id, run.scheduled_for = step.run_id or run.id, step.scheduled_for
        run.idempotency_key = step.idempotency_key and f"{step.idempotency_key}.{step.parts}"
        loop = self._loop(run)
        loop.deadline = step.deadline
        self._drive(run, loop, start(self.plan))
        if run.outcome is Outcome.STOPPED:
            asked = {**asked, "stop": True, "idle": run.idle}
        elif stopped:
            run.context.stopped, run.context.stop_reason = stopped, reason
        run.context._asked, run.context._lender = asked or None, lender
        return run.raise_for_error().context

    def do_activities(self, seed_data: Any = None) -> Run[C]:
        """Run once, in this thread, on a fresh context.

        A failed activity ends the run FAILED, unless a handler decides otherwise.

        Raises:
            Exception: The activity's own error, when there is no handler at all; a handler's, when that raised.
        """
        run: Run[C] = Run()
        self._go(run, seed_data)
        return run.raise_for_error() if run.raises else run

    async def do_activities_async(self, seed_data: Any = None) -> Run[C]:
        """Do as `do_activities` in another thread; cancelling the wait does not stop the run."""
        # The run, not its error: a future cannot take a `StopIteration`, it would never be done.
        run = await asyncio.to_thread(self._launch, seed_data, here=True)
        return run.raise_for_error() if run.raises else run

    def launch(
        self,
        seed_data: Any = None,
        *,
        run_id: str = "",
        scheduled_for: datetime | None = None,
        idempotency_key: str = "",
    ) -> Run[C]:
        """Do as `do_activities`, but leave a failure in the run and never raise it: what launchers call.

        Args:
            seed_data: The data that starts the run.
            run_id: The run's id, made when it is not given.
            scheduled_for: The time that a schedule meant, for `context.step.scheduled_for`.
            idempotency_key: What the keys of the steps begin with, when the launcher knows better than the run's id.
        """
        return self._launch(seed_data, run_id, scheduled_for, idempotency_key, here=False)

    def entrust(self, engine: Engine) -> None:
        """Let `engine` carry out this processor's own runs; what it does inside another one's run stays in that run."""

        def do_activities(seed_data: Any = None) -> Run[C]:
            run = self._launch(seed_data, here=True)
            return run.raise_for_error() if run.raises else run

        self.engine = engine
        # Put in its place, so that an inline run need not ask each time who carries it out.
        self.do_activities = do_activities  # type: ignore[method-assign]

    def hooked(
        self, observers: Iterable[RunObserver], interceptors: Iterable[Interceptor], runner: AsyncRunner | None = None
    ) -> None:
        """Add an application's hooks, outside the processor's own, and its runner; called before the first run."""
        self.parts.observers = (*observers, *self.parts.observers)
        self.parts.interceptors = (*interceptors, *self.parts.interceptors)
        hooks = [(one, "__call__") for one in self.parts.observers]
        for hook, method in (*hooks, *((one, "around_step") for one in self.parts.interceptors)):
            refuse_unfit(hook, method)
            if not callable(getattr(hook, method, None)):
                raise TypeError(f"{self.name}: {hook!r} is no observer or interceptor: it has no method {method}")
        self.runner = self._own_runner or runner or AsyncRunner()
        self.calls, self.names = self._plain()

    def _launch(
        self, seed: Any, run_id: str = "", scheduled_for: datetime | None = None, key: str = "", *, here: bool
    ) -> Run[C]:
        if self.engine is not None:
            given = {"run_id": run_id, "idempotency_key": key}
            return self.engine.launch(self, seed, **given, scheduled_for=scheduled_for, here=here)
        run: Run[C] = Run()
        run.id, run.scheduled_for, run.idempotency_key = run_id or run.id, scheduled_for, key
        self._go(run, seed)
        return run

    def _go(self, run: Run[C], seed: Any) -> None:
        """Run; a plain sequence needs no engine until something else comes than a plain success."""
        calls = self.calls
        run.of, run.ticks = self, [_now()]
        try:
            run.context = context = self.new_context()
        except Exception as error:  # noqa: BLE001 - whatever it is, the run is over before it began
            run.context = ProcessContext()  # type: ignore[assignment]
            loop = self._loop(run)
            self._drive(run, loop, ended("FAILED", loop.errors.record(error)))
            return
        if calls is None:
            self._drive(run, self._loop(run, seed=seed), start(self.plan, seeded=seed is not None))
            return
        if _current() is not None:
            self.runner.refuse_own_thread()
        context._asked, context._lender, token = None, run, _note(run)
        ticks, rest = run.ticks, None
        try:
            try:
                if seed is not None:
                    run.seeding = True
                    context.set_seed_data(seed)
                    if context._asked is not None:
                        calls, rest = (), self._rest(run, seeding=True)
                    run.seeding = False
                for call in calls:
                    result = call(context)
                    if result is not None or context._asked is not None:
                        result = settle(self.steps[len(ticks) - 1].activity, result, self.runner)
                        if context._asked is not None or (result is not None and result is not context):
                            rest = self._rest(run, result)
                            break
                    ticks.append(_now())
            except Exception as error:  # noqa: BLE001 - handlers decide
                rest = self._rest(run, error=error, seeding=run.seeding)
            if rest is None:
                run.outcome = _COMPLETED
            else:
                self._drive(run, *rest)
        finally:
            _forget(token)
            context._lender = None

    def _rest(
        self,
        run: Run[C],
        result: ProcessContext | str | None = None,
        error: Exception | None = None,
        *,
        seeding: bool = False,
    ) -> _Rest:
        """Return how the engine goes on from what a plain sequence has just done."""
        at = len(run.ticks) - 1
        position = start(self.plan, seeded=seeding)
        if not seeding:
            position["stack"][0] |= {"at": at, "seq": at + 1, "used": at + 1, "n": 1}
        loop = self._loop(run, run.lend())
        loop.began[loop.info.activity] = run.ticks[-1]
        return loop, position, loop.returned(result) if error is None else loop.failed(error)

    def _plain(self) -> tuple[_Calls[C] | None, tuple[str, ...]]:
        """Return the calls and names of a plain sequence, without hooks and limits; no calls for anything else."""
        main = self.plan["p"][self.plan["main"]]
        hooked = self.parts.observers or self.parts.interceptors
        limited = any(step["limit"] or step["do"] != "activity" for step in main["steps"])
        if main["kind"] != "sequence" or main["finally"] or hooked or limited or len(main["steps"]) > self.max_steps:
            return None, ()
        activities = [self.parts.activities[step["ref"]] for step in main["steps"]]
        return tuple(map(_call, activities)), tuple(step["name"] for step in main["steps"])

    def _loop(self, run: Run[C], info: StepInfo | None = None, seed: Any = None) -> InlineLoop:
        """Return an engine for the run, which may be at the step that `info` is of."""
        info = info or StepInfo(run.id, self.name, run.scheduled_for)
        loop = InlineLoop(self.plan, self.parts, self.runner, run.context, info, run.idempotency_key or run.id)
        loop.seed = seed
        return loop

    def _drive(self, run: Run[C], loop: InlineLoop, position: Position, reply: Reply | None = None) -> None:
        """Drive the engine from `position`, with the reply to its command if that was run already, to the run's end."""
        self.runner.refuse_own_thread()
        with loop.at_work():
            loop.tell(RunStarted, run.ticks[0])
            why: BaseException | None = None
            try:
                end = loop.drive(position, reply)
                run.outcome = Outcome[end["outcome"]]
                if end["error"] is not None:
                    why = run.error = loop.errors.live(end["error"])
                    run.raises = end["raises"]
                    loop.log_once(end["error"], logging.ERROR, "%s failed", self.name)
            except BaseException as interruption:
                why = interruption
                raise
            finally:
                run.context, run.rows = loop.context, loop.rows
                run.idle = loop.idle and run.outcome is Outcome.STOPPED
                loop.tell(RunFinished, run.outcome, why, run.idle, _now())


class Body(Processor[C]):
    """The activities that a branch or a for-each takes as a list; its owner says what it supports."""

    def __init__(self, owner: Processor[C], name: str, steps: Iterable[StepLike[C]], context: Any) -> None:
        """Take the activities in order."""
        self._owner = owner
        super().__init__(*map(bound, steps), context=context, name=name)

    def supports(self, activity: object) -> bool:
        """Ask the owner."""
        return self._owner.supports(activity)

    def describe(self, compiler: Compiler) -> ProcessorPlan:
        """Return the activities as a sequence."""
        return compiler.describe(self, "sequence")


def _made(processor: str, factory: Callable[[], C]) -> C:
    """Return the context that `factory` makes, and nothing else."""
    context = factory()
    _check_context(processor, type(context))
    return context


def _check_context(processor: str, made: type) -> None:
    """Raise when a processor's contexts are of a class that no activity can work on."""
    if not issubclass(made, ProcessContext):
        what = f"context= is the class of contexts or a function that makes one, not a {made.__name__}"
        raise TypeError(f"{processor}: {what}: subclass ProcessContext")
    if why := deferral(made, "set_seed_data"):
        raise TypeError(f"{processor}: {made.__name__}.set_seed_data {why}: write a plain function")
    if getattr(getattr(made, "__dataclass_params__", None), "frozen", False):
        raise TypeError(f"{processor}: {made.__name__} is frozen, and activities set fields: leave frozen=True out")


def _call(activity: Activity[Any]) -> Callable[[Any], Result]:
    """Return the quickest way to call `activity`."""
    if not isinstance(activity, FunctionActivity):
        return activity.execute
    return functools.partial(activity.function, **activity.args) if activity.args else activity.function
