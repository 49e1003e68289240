"""Compiling: from wired processors to a plan, and to the objects that its ids stand for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, TypeVar

from iocflow.activity import Activity, BoundActivity, FunctionActivity, kebab_case
from iocflow.context import ProcessContext
from iocflow.error_handling import HandlesErrors
from iocflow.perform import Parts
from iocflow.plan import Plan, ProcessorPlan, StepPlan

C = TypeVar("C", bound=ProcessContext)


class Composed(Activity[C]):
    """An activity that is made of activities: a processor, as the compiler sees it."""

    steps: tuple[BoundActivity[C], ...]
    finally_: tuple[BoundActivity[C], ...]
    handlers: tuple[HandlesErrors, ...]
    max_steps: int

    @abstractmethod
    def describe(self, compiler: Compiler) -> ProcessorPlan:
        """Return this processor as plain data; `compiler` gives the ids of what it refers to."""


class Compiler:
    """Turns a processor and all that it reaches into a plan, and keeps what the plan's ids stand for.

    Two different objects of one default name get `inc`, `inc-2`, … in wired order.
    """

    def __init__(self, main: Composed[Any]) -> None:
        """Compile `main`."""
        self.parts = Parts()
        self._ids: dict[tuple[str, int], str] = {}
        self._taken: dict[tuple[str, str], int] = {}
        self.plan: Plan = {"main": main.name, "p": {}}
        self.processor(main)

    def processor(self, processor: Composed[Any]) -> str:
        """Return the id of `processor`, described in the plan."""
        id = self._id("p", processor, processor.name)
        if id not in self.plan["p"]:
            self.plan["p"][id] = processor.describe(self)
            self.parts.composites[id] = processor  # type: ignore[assignment]
        return id

    def step(self, step: BoundActivity[Any], *, named: bool = False) -> StepPlan:
        """Return one use of an activity or processor; `named` when its name is fixed, however often that is used."""
        activity, do = step.activity, "activity"
        handlers = self.handlers(step.handlers)
        if isinstance(activity, Composed):
            do, ref = "processor", self.processor(activity)
        else:
            thing = activity.function if isinstance(activity, FunctionActivity) and not activity.args else activity
            ref = self._id("a", thing, activity.name)
            self.parts.activities[ref] = activity
        name = step.name if named or step.name != activity.name else ref
        options = {"limit": step.time_limit, "mode": step.mode, "on_lost": step.on_lost}
        return {"name": name, "do": do, "ref": ref, "handlers": handlers, **options}  # type: ignore[typeddict-item]

    def handlers(self, handlers: Iterable[HandlesErrors]) -> list[str]:
        """Return the ids of `handlers`."""
        ids = []
        for handler in handlers:
            id = self._id("h", handler, getattr(handler, "name", kebab_case(type(handler).__name__)))
            self.parts.handlers[id] = handler
            ids.append(id)
        return ids

    def describe(self, processor: Composed[Any], kind: Any, *, named: bool = False, **more: Any) -> ProcessorPlan:
        """Return what the plans of all kinds have in common, with `more`; `named` when the steps' names are fixed."""
        described: ProcessorPlan = {
            "kind": kind,
            "steps": [self.step(step, named=named) for step in processor.steps],
            "finally": [self.step(step) for step in processor.finally_],
            "handlers": self.handlers(processor.handlers),
            "max": processor.max_steps,
            "routes": {},
            "join": "",
            "each": {},
        }
        return {**described, **more}  # type: ignore[typeddict-item]

    def _id(self, table: str, thing: object, wanted: str) -> str:
        """Return the id of `thing`, a new one when it has none."""
        key = (table, id(thing))
        if key not in self._ids:
            name = wanted
            while (table, name) in self._taken:
                self._taken[table, wanted] += 1
                name = f"{wanted}-{self._taken[table, wanted]}"
            self._taken[table, name] = 1
            self._ids[key] = name
        return self._ids[key]
