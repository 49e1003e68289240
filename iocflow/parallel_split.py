"""Parallel split: branches at the same time, each on a context of its own, then a join."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar, Unpack

from iocflow.activity import BoundActivity, StepLike, activity, bound
from iocflow.compiler import Compiler
from iocflow.context import ProcessContext, changes, merge
from iocflow.errors import refuse_unfit
from iocflow.plan import ProcessorPlan
from iocflow.processor import Body, Options, Processor

C = TypeVar("C", bound=ProcessContext)

Joiner = Callable[[Any, Mapping[str, Any]], ProcessContext | None]
"""Brings branches together: takes the context and, by name, the contexts of the branches that did not fail."""


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
        refuse_unfit(join)
        if not branches:
            raise ValueError("a parallel split needs at least one branch")
        super().__init__(*(self._branch(name, steps, options) for name, steps in branches.items()), **options)

    def describe(self, compiler: Compiler) -> ProcessorPlan:
        """Return the branches as plain data."""
        name = getattr(self.joiner, "__name__", type(self.joiner).__name__) if self.joiner else ""
        return compiler.describe(self, "split", named=True, join=name)

    def fork_for(self, context: C, part: int) -> C:  # noqa: ARG002
        """Return the context of a branch."""
        return context.fork()

    def kept(self, context: C, before: Mapping[str, Any], fork: C, *, stopped: bool) -> Any:  # noqa: ARG002
        """Return what a branch changed, or all of its context for the joiner."""
        return fork if self.joiner else changes(context, before, fork, self.bound_fields)

    def join(self, context: C, kept: Mapping[int, Any], failed: Collection[int]) -> ProcessContext | None:  # noqa: ARG002
        """Bring the branches that did not fail together on `context`."""
        good = {self.steps[i].name: one for i, one in kept.items()}
        if self.joiner:
            return self.joiner(context, good)
        merge(context, good, "wire a joiner, or use two fields")
        return None

    def _branch(self, name: str, steps: StepLike[C] | Sequence[StepLike[C]], options: Any) -> BoundActivity[C]:
        """Return the branch as one step: a processor, named as the branch."""
        if not isinstance(steps, Sequence):
            one = bound(steps)
            if isinstance(one.activity, Processor):
                return dataclasses.replace(one, name=name)
            steps = [one]
        return activity(Body(self, name, steps, options.get("context")))
