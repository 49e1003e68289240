"""What a worker knows of one durable processor."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable
from typing import Any

from iocflow.activity import Activity, Result
from iocflow.durable.intake import Durable, Intake
from iocflow.plan import Plan, plan_hash
from iocflow.processor import Processor
from iocflow.store.contract import Store

__all__ = ["Durable", "Job"]


class Job(Intake):
    """A processor with what its durable runs need; the plans that its open runs began with are kept as they are met."""

    def __init__(self, processor: Processor[Any], durable: Durable | None = None) -> None:
        """Take a processor.

        Raises:
            ContextTypeError: Its context cannot be stored.
        """
        super().__init__(processor.context_type, durable, plain=isinstance(processor.new_context, type))
        self.processor = processor
        self._plans: dict[int, Plan] = {}
        self._own = 0
        self._lock = threading.Lock()

    @functools.cached_property
    def plain(self) -> bool:
        """Whether the processor is a plain sequence of steps, none of which wants anything of the engine."""
        steps = self.processor.plan["p"][self.processor.plan["main"]]["steps"]
        wanting = any(step["mode"] != "leased" or step["on_lost"] != "retry" for step in steps)
        return bool(self.processor.calls) and not wanting

    @functools.cached_property
    def calls(self) -> tuple[Callable[[Any], Result], ...]:
        """What the steps of a plain sequence call."""
        return self.processor.calls or ()

    def activity(self, at: int) -> Activity[Any]:
        """Return the activity of a step of a plain sequence."""
        return self.processor.steps[at].activity

    def own_plan(self, store: Store) -> tuple[int, Plan]:
        """Return the id in `store` of the processor's own plan, and the plan."""
        with self._lock:
            if not self._own:
                plan = self.processor.plan
                self._own = store.plan(plan_hash(plan), self.processor.name, json.dumps(plan))
                self._plans[self._own] = plan
            return self._own, self._plans[self._own]

    def plan(self, id: int, store: Store) -> Plan:
        """Return a plan that a run began with."""
        with self._lock:
            if id not in self._plans:
                self._plans[id] = json.loads(store.plan_of(id)[1])
            return self._plans[id]

    def gone(self, plan: Plan) -> list[str]:
        """Return the ids in `plan` that this processor does not know any more."""
        parts = self.processor.parts
        known = {*parts.activities, *parts.composites}
        wanted = {step["ref"] for one in plan["p"].values() for step in (*one["steps"], *one["finally"])}
        wanted |= set(plan["p"])
        handlers = {h for one in plan["p"].values() for h in one["handlers"]}
        handlers |= {h for one in plan["p"].values() for s in (*one["steps"], *one["finally"]) for h in s["handlers"]}
        return sorted((wanted - known) | (handlers - set(parts.handlers)))
