"""Parallel split: branches at the same time, each on a context of its own, then a join."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar, Unpack

from iocflow.activity import BoundActivity, StepLike, activity, bound
from iocflow.context import ProcessContext
from iocflow.errors import JoinConflictError
from iocflow.plan import ProcessorPlan
from iocflow.processor import Compiler, Options, Processor
from iocflow.sequence import SequenceProcessor

__all__ = ["Joiner", "ParallelSplitProcessor", "changes", "merge"]

C = TypeVar("C", bound=ProcessContext)

Joiner = Callable[[Any, Mapping[str, Any]], ProcessContext | None]
"""Brings branches together: takes the context and, by name, the contexts of the branches that did not fail."""

_NEVER_JOINED = frozenset({"stopped", "stop_reason"})


class ParallelSplitProcessor(Processor[C]):
    """Runs its branches in threads, each on `context.fork()`, and joins what they changed.

    All branches finish. Those that did not fail are joined; then any that failed makes the split fail, always with an
    `ExceptionGroup`. The default join takes the fields that a branch changed; two branches that changed one field
    differently are a `JoinConflictError`.
    """

    parallel = 0

    def __init__(
        self,
        branches: Mapping[str, StepLike[C] | Sequence[StepLike[C]]],
        *,
        join: Joiner | None = None,
        **options: Unpack[Options[C]],
    ) -> None:
        """Take the branches by name, each an activity, a processor or a list, and an own joiner if one is wanted."""
        self.joiner = join
        factory = options["context"]
        super().__init__(*(_branch(name, steps, factory) for name, steps in branches.items()), **options)

    def describe(self, compiler: Compiler) -> ProcessorPlan:
        """Return the branches as plain data."""
        name = getattr(self.joiner, "__name__", type(self.joiner).__name__) if self.joiner else ""
        return compiler.describe(self, "split", join=name)

    def fork_for(self, context: C, part: int) -> C:  # noqa: ARG002
        """Return the context of a branch."""
        return context.fork()

    def kept(self, context: C, before: Mapping[str, Any], fork: C) -> Any:
        """Return what a branch changed, or all of its context for the joiner."""
        return fork if self.joiner else changes(context, before, fork)

    def join(self, context: C, kept: Sequence[Any], failed: Collection[int]) -> ProcessContext | None:
        """Bring the branches that did not fail together on `context`."""
        good = {step.name: kept[i] for i, step in enumerate(self.steps) if i not in failed}
        if self.joiner:
            return self.joiner(context, good)
        merge(context, good)
        return None


def _branch(name: str, steps: StepLike[C] | Sequence[StepLike[C]], factory: Any) -> BoundActivity[C]:
    """Return the branch as one step: a processor, named as the branch."""
    if not isinstance(steps, Sequence):
        one = bound(steps)
        if isinstance(one.activity, Processor):
            return dataclasses.replace(one, name=name)
        steps = [one]
    return activity(SequenceProcessor(steps, context=factory, name=name))


def changes(context: ProcessContext, before: Mapping[str, Any], fork: ProcessContext) -> dict[str, Any]:
    """Return the fields of `fork` that were bound anew since it had `before`, or differ from those of `context`."""
    original = vars(context)
    return {
        name: value
        for name, value in vars(fork).items()
        if not name.startswith("_")
        and name not in _NEVER_JOINED
        and (name not in before or value is not before[name] or _differ(original.get(name), value))
    }


def merge(context: ProcessContext, changed: Mapping[str, Mapping[str, Any]]) -> None:
    """Set the changed fields on `context`, all or none.

    Raises:
        JoinConflictError: Two parts changed one field differently.
    """
    merged: dict[str, tuple[str, Any]] = {}
    for part, fields in changed.items():
        for name, value in fields.items():
            first, other = merged.setdefault(name, (part, value))
            if first != part and _differ(other, value, unknown=other is not value):
                raise JoinConflictError(
                    f"{first} and {part} changed {name!r} differently; wire a joiner, or use two fields"
                )
    for name, (_, value) in merged.items():
        setattr(context, name, value)


def _differ(one: Any, other: Any, *, unknown: bool = False) -> bool:
    """Return whether two values differ; `unknown` is the answer for types without `__eq__`, also inside of containers.

    A fork holds copies, so such objects never compare equal to their originals, changed or not.
    """
    if one is other:
        return False
    if type(one) is not type(other):
        return True
    if isinstance(one, Mapping):
        return one.keys() != other.keys() or any(_differ(one[key], other[key], unknown=unknown) for key in one)
    if isinstance(one, list | tuple):
        return len(one) != len(other) or any(_differ(a, b, unknown=unknown) for a, b in zip(one, other, strict=True))
    if "__eq__" not in {name for base in type(one).__mro__[:-1] for name in vars(base)}:
        return unknown
    unequal = one != other
    # An array compares by element: anything unequal is a difference.
    return bool(unequal.any()) if hasattr(unequal, "any") else bool(unequal)
