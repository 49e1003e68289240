"""For-each: a body for every item of a context field."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, Unpack

from iocflow.activity import StepLike, bound
from iocflow.compiler import Compiler
from iocflow.context import ProcessContext, changes, merge
from iocflow.plan import ProcessorPlan
from iocflow.processor import Body, Options, Processor

C = TypeVar("C", bound=ProcessContext)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the join needs of one item: the fields that it changed, and those that are collected."""

    changed: dict[str, Any]
    collected: dict[str, Any]


class ForEachProcessor(Processor[C]):
    """Runs its body for every item of a field, which is a sequence and is counted once.

    In order, the items share the context. In parallel, each gets a fork without the items' field; what the forks
    changed is joined as after a split. An item that fails, after its handlers, makes the whole fail, unless so many
    `may_fail`.
    """

    def __init__(
        self,
        items: str,
        body: StepLike[C] | Sequence[StepLike[C]],
        *,
        as_: str,
        parallel: int = 0,
        may_fail: int | str = 0,
        failed: str | None = None,
        collect: Mapping[str, str] | None = None,
        **options: Unpack[Options[C]],
    ) -> None:
        """Take the field and the body.

        Args:
            items: The context's field that holds the items.
            body: What runs for each: an activity, a processor, or a list.
            as_: The field that holds the item while the body runs; never joined.
            parallel: How many items run at once; 0 means one after the other.
            may_fail: How many items may fail, a number or a share as in `10%`.
            failed: The field that gets the list of the items that failed.
            collect: For each field, the field of the item's context whose values it lists, in item order, those that
                failed left out.
            options: See `Options`.
        """
        share = isinstance(may_fail, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)?%", may_fail)
        if not share and not (isinstance(may_fail, int) and may_fail >= 0):
            raise ValueError(f"may_fail is a number or a share such as '10%', not {may_fail!r}")
        if parallel < 0:
            raise ValueError(f"parallel is the number of items at once, not {parallel}")
        self.items, self.as_, self.parallel, self.may_fail = items, as_, parallel, may_fail
        self.failed, self.collected = failed, dict(collect or {})
        if isinstance(body, Sequence):
            body = Body(self, as_, body, options.get("context"))
        super().__init__(bound(body), **options)
        self.bound_fields |= {as_}

    def describe(self, compiler: Compiler) -> ProcessorPlan:
        """Return the loop as plain data."""
        each = {
            "items": self.items,
            "as": self.as_,
            "parallel": self.parallel,
            "may_fail": self.may_fail,
            "failed": self.failed,
            "collect": self.collected,
            "keeps": bool(self.failed or self.collected),
        }
        return compiler.describe(self, "each", named=isinstance(self.steps[0].activity, Body), each=each)

    def count(self, context: C) -> int:
        """Return the number of items, and begin the lists of what is kept."""
        items = self._all(context)
        for name in (*self.collected, *filter(None, [self.failed])):
            setattr(context, name, [])
        return len(items)

    def bind(self, context: C, item: int) -> None:
        """Put an item into its field."""
        setattr(context, self.as_, self._all(context)[item])

    def collect(self, context: C, item: int, *, lost: bool) -> None:
        """Add what the item made to the lists, or the item itself to those that failed."""
        if not lost:
            for name, source in self.collected.items():
                getattr(context, name).append(getattr(context, source))
        elif self.failed:
            getattr(context, self.failed).append(self._all(context)[item])

    def fork_for(self, context: C, part: int) -> C:
        """Return the context of one item."""
        item = self._all(context)[part]
        fork = context.fork(without=frozenset({self.items}))
        setattr(fork, self.as_, item)
        return fork

    def kept(self, context: C, before: Mapping[str, Any], fork: C, *, stopped: bool) -> _Kept:
        """Return what is joined and what is collected of an item; one that stopped need not have made it."""
        changed = changes(context, before, fork, {*self.bound_fields, *self.collected.values()})
        collected = {} if stopped else {name: getattr(fork, source) for name, source in self.collected.items()}
        return _Kept(changed, collected)

    def join(self, context: C, kept: Mapping[int, _Kept], failed: Collection[int]) -> None:
        """Join the items that did not fail, and fill the lists in item order."""
        merge(context, {f"item {i}": one.changed for i, one in kept.items()})
        for name in self.collected:
            setattr(context, name, [one.collected[name] for one in kept.values() if one.collected])
        if self.failed:
            setattr(context, self.failed, [self._all(context)[i] for i in sorted(failed)])

    def _all(self, context: C) -> Sequence[Any]:
        items = getattr(context, self.items)
        if not isinstance(items, Sequence) or isinstance(items, str | bytes):
            raise TypeError(
                f"{self.name}: context.{self.items} is a {type(items).__name__}; for-each wants a list or tuple"
            )
        return items
