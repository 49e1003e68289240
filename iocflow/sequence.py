"""Sequence: activities in a fixed order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, Unpack

from iocflow.activity import StepLike, bound
from iocflow.compiler import Compiler
from iocflow.context import ProcessContext
from iocflow.plan import ProcessorPlan
from iocflow.processor import Options, Processor

C = TypeVar("C", bound=ProcessContext)


class SequenceProcessor(Processor[C]):
    """Runs its activities one after the other, in the order in which they are wired."""

    def __init__(self, steps: Iterable[StepLike[C]], **options: Unpack[Options[C]]) -> None:
        """Take the activities in order; the options are in `Options`."""
        super().__init__(*map(bound, steps), **options)

    def describe(self, compiler: Compiler) -> ProcessorPlan:
        """Return the sequence as plain data."""
        return compiler.describe(self, "sequence")
