"""From described processors to the core's processors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from iocflow.activity import Activity, BoundActivity, FunctionActivity, activity
from iocflow.async_runner import AsyncRunner
from iocflow.container.building.isolating import Isolating
from iocflow.container.checking.description import (
    Bean,
    Block,
    Choice,
    Constant,
    Inner,
    Process,
    Reference,
    Rule,
    Shape,
    Split,
    Step,
    Steps,
    Value,
)
from iocflow.error_handling import OnError
from iocflow.exclusive_choice import ExclusiveChoiceProcessor
from iocflow.for_each import ForEachProcessor
from iocflow.parallel_split import ParallelSplitProcessor
from iocflow.processor import Processor
from iocflow.sequence import SequenceProcessor

__all__ = ["Assembler"]


class Values(Protocol):
    """Where the objects come from."""

    def value(self, value: Value) -> Any:
        """Return the object that a description means."""


class Assembler:
    """Makes one processor of the file, with all the blocks inside."""

    def __init__(
        self, values: Values, bean_of: Callable[[str], Bean | None], context: Any, isolating: Isolating | None = None
    ) -> None:
        """Take how beans are found, what makes the contexts, and what isolates activities, if any of them are."""
        self._values = values
        self._isolating = isolating
        self._bean_of = bean_of
        self._context = context
        self._made: dict[Any, Any] = {}

    def processor(
        self, process: Process, observers: Iterable[Any], interceptors: Iterable[Any], runner: AsyncRunner
    ) -> Processor[Any]:
        """Return the processor."""
        made = self._shape(
            process.shape,
            name=process.id,
            on_error=self._chain(process.on_error),
            finally_=[self._step(step) for step in process.finally_],
            max_steps=process.max_steps,
            observers=observers,
            interceptors=interceptors,
            async_runner=runner,
        )
        made.context_type = process.context or made.context_type
        vars(made)["concurrency"] = process.concurrency  # launchers bound the runs by it
        return made

    def _shape(self, shape: Shape, **options: Any) -> Processor[Any]:
        options["context"] = self._context
        if isinstance(shape, Steps):
            return SequenceProcessor([self._step(step) for step in shape.steps], **options)
        if isinstance(shape, Choice):
            steps = {name: self._step(step) for name, step in shape.steps.items()}
            return ExclusiveChoiceProcessor(shape.routes, steps, **options)
        if isinstance(shape, Split):
            branches = {name: self._step(step) for name, step in shape.branches.items()}
            join = None if shape.join is None else self._object(shape.join)
            return ParallelSplitProcessor(branches, join=join, **options)
        return ForEachProcessor(
            shape.items,
            self._step(shape.body),
            as_=shape.as_,
            parallel=shape.parallel,
            may_fail=shape.may_fail,
            failed=shape.failed,
            collect=shape.collect,
            **options,
        )

    def _step(self, step: Step) -> BoundActivity[Any]:
        bean = None
        if isinstance(step.what, Block):
            what: Activity[Any] = self._shape(step.what.shape, name=step.what.name)
        else:
            bean = step.what.bean if isinstance(step.what, Inner) else self._bean_of(step.what.id)
            what = self.activity(step.what, step.name)
            isolate = step.isolate or (bean and bean.isolate)
            if isolate and self._isolating is not None:
                key = step.what.id if isinstance(step.what, Reference) else step.what
                what = self._once(("isolated", key), functools.partial(self._isolating.activity, step, what))
        rules = step.on_error if bean is None else (*step.on_error, *bean.on_error)
        limit = step.time_limit if bean is None or step.time_limit is not None else bean.time_limit
        mode = step.mode or (bean and bean.mode)
        on_lost = step.on_lost or (bean and bean.on_lost)
        options: Any = {"mode": mode and mode.word, "on_lost": on_lost and on_lost.word}
        given = {key: word for key, word in options.items() if word}
        return activity(what, name=step.name, on_error=self._chain(rules), time_limit=limit, **given)

    def activity(self, wire: Reference | Inner, name: str) -> Activity[Any]:
        """Return the activity of a step; a function becomes one, the same one wherever it stands in the processor."""
        made = self._object(wire)
        if isinstance(made, Activity):
            return made
        key = wire.id if isinstance(wire, Reference) else wire
        found: Activity[Any] = self._once(("activity", key), lambda: self._function(made, name))
        return found

    def _function(self, function: Callable[..., Any], name: str) -> Activity[Any]:
        """Return a function as an activity; the engine knows functions by identity, so a second bean's is wrapped."""
        first = self._once(("function", id(function)), lambda: name)
        return FunctionActivity(function if first == name else functools.partial(function), name=name)

    def _chain(self, rules: Iterable[Rule]) -> list[Any]:
        return [self._handler(rule) for rule in rules]

    def _handler(self, rule: Rule) -> Any:
        return self._once(rule, lambda: self._answer(rule))

    def _answer(self, rule: Rule) -> Any:
        answer = self._object(rule.answer)
        return OnError(rule.errors, answer) if rule.errors else answer

    def _object(self, value: Value) -> Any:
        if isinstance(value, Constant):
            return value.value
        if isinstance(value, Inner):
            return self._once(value, lambda: self._values.value(value))
        return self._values.value(value)

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what was made for `key`, made at the first call."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]
