"""Exclusive choice: after each activity, its result picks the next one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TypeVar, Unpack

from iocflow.activity import StepLike, bound
from iocflow.compiler import Compiler
from iocflow.context import ProcessContext
from iocflow.errors import UnknownActivityError
from iocflow.plan import ProcessorPlan
from iocflow.processor import Options, Processor

C = TypeVar("C", bound=ProcessContext)


class ExclusiveChoiceProcessor(Processor[C]):
    """Runs one activity, then the one that its named result, or else `context.next_activity`, picks, until `end`.

    A route for the named result beats `next_activity`; with neither, and after a handled failure, the `else` route
    applies.
    """

    def __init__(
        self,
        routes: Mapping[str, Mapping[str, str] | str],
        steps: Mapping[str, StepLike[C]],
        **options: Unpack[Options[C]],
    ) -> None:
        """Take the graph and the activities by name.

        Args:
            routes: For each activity its routes, from named result to the next activity's name; the first key
                starts. A bare name is a map that has only `else`. `end` ends the processor; `else` is needed in
                every map.
            steps: The activity for every key of `routes`.
            options: See `Options`.

        Raises:
            UnknownActivityError: A route, or an activity, that the other map does not know, or a map without `else`.
        """
        self.routes = {name: {"else": to} if isinstance(to, str) else dict(to) for name, to in routes.items()}
        _check(self.routes, steps)
        named = (dataclasses.replace(bound(steps[name]), name=name) for name in self.routes)
        super().__init__(*named, **options)

    def describe(self, compiler: Compiler) -> ProcessorPlan:
        """Return the graph as plain data."""
        return compiler.describe(self, "choice", named=True, routes=self.routes)


def _check(routes: Mapping[str, Mapping[str, str]], steps: Mapping[str, object]) -> None:
    known, routed = ", ".join(steps), ", ".join(routes)
    if not routes:
        raise UnknownActivityError("an exclusive choice needs at least one activity")
    for name in steps:
        if name in ("end", "else"):
            raise UnknownActivityError(f"{name!r} is reserved; give the activity another name")
        if name not in routes:
            raise UnknownActivityError(f"{name!r} has no routes (known: {routed})")
    for name, targets in routes.items():
        if name not in steps:
            raise UnknownActivityError(f"routes of {name!r}: no such activity (known: {known})")
        if "else" not in targets:
            raise UnknownActivityError(f"routes of {name!r}: `else` is missing; `else: end` ends the processor")
        for result, target in targets.items():
            if target not in routes and target != "end":
                raise UnknownActivityError(f"route {name} -> {result}: {target!r} has no routes (known: {routed})")
