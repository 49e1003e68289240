"""For-each: a body for every item of a context field."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, Unpack

from iocflow.activity import StepLike, bound
from iocflow.compiler import Compiler
from iocflow.context import ProcessContext, changes, merge, put_back
from iocflow.errors import UnsetError
from iocflow.plan import ProcessorPlan
from iocflow.processor import Body, Options, Processor

C = TypeVar("C", bound=ProcessContext)

_REMEDY = "list its values by `collect`, or leave it without a value before the for-each: then each item has its own"
_NOT_OWN = "{!r} is no field that is yours to set; name another"


def field_faults(items: str, as_: str, failed: str | None, collect: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what makes the fields of a for-each unusable: the option's name in a container file, and what is wrong."""
    lists = [("failed", failed, "the items that failed")] if failed else []
    lists += [("collect", field, "results") for field in collect]
    holds: dict[str, str] = {}
    for option, field, what in [("for-each", items, "the items"), ("as", as_, "the item"), *lists]:
        if _is_taken(field) or (field == "seed_data" and holds):
            yield option, _NOT_OWN.format(field)
        elif field in holds:
            yield option, f"{field!r} holds {holds[field]} already; name another field"
        holds.setdefault(field, what)
    for source in collect.values():
        if _is_taken(source):
            yield "collect", _NOT_OWN.format(source)
        elif source in (*collect, failed):
            yield "collect", f"{source!r} is a list that the for-each fills; name the field of an item's result"


def _is_taken(field: str) -> bool:
    return not str(field).isidentifier() or field.startswith("_") or hasattr(ProcessContext, field)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the join needs of one item: the fields that it changed, and those that are collected."""

    changed: dict[str, Any]
    collected: dict[str, Any]


class ForEachProcessor(Processor[C]):
    """Runs its body for every item of a field, which is a sequence and is counted once.

    In order, the items share the context. In parallel, each gets a fork without the items' field; what the forks
    changed is joined as after a split, but for a field that had no value before and that every item set: where the
    items differ, each keeps its own. In both ways, an item begins with nothing of another in the fields that are
    collected: each has the class's default, or no value; an item that ends without a value in one of them fails. An
    item that fails, after its handlers, makes the whole fail, unless so many `may_fail`.
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
                failed left out. An item whose failure was handled is collected: with the field's default in the class,
                unless something set it.
            options: See `Options`.

        Raises:
            ValueError: An option cannot be used; see `field_faults`.
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
        for option, fault in field_faults(items, as_, failed, self.collected):
            raise ValueError(f"{self.name}: {option}: {fault}")
        self.bound_fields |= {as_}

    def describe(self, compiler: Compiler) -> ProcessorPlan:
        """Return the loop as plain data."""
        each: dict[str, Any] = {"items": self.items, "as": self.as_, "parallel": self.parallel}
        each |= {"may_fail": self.may_fail, "failed": self.failed, "collect": self.collected}
        each["keeps"] = bool(self.failed or self.collected)
        return compiler.describe(self, "each", named=isinstance(self.steps[0].activity, Body), each=each)

    def count(self, context: C) -> int:
        """Return the number of items, and begin the lists of what is kept."""
        items = self._all(context)
        for name in (*self.collected, *filter(None, [self.failed])):
            setattr(context, name, [])
        return len(items)

    def bind(self, context: C, item: int) -> None:
        """Put an item into its field, and leave nothing of the item before it in the fields that are collected."""
        put_back(context, set(self.collected.values()) - {self.items})
        setattr(context, self.as_, self._item(context, item))

    def collect(self, context: C, item: int, *, lost: bool) -> None:
        """Add what the item made to the lists, or the item itself to those that failed."""
        if not lost:
            for name, result in self._results(context).items():
                getattr(context, name).append(result)
        elif self.failed:
            getattr(context, self.failed).append(self._item(context, item))

    def fork_for(self, context: C, part: int) -> C:
        """Return the context of one item."""
        fork = context.fork(without=frozenset({self.items}))
        put_back(fork, self.collected.values())
        setattr(fork, self.as_, self._item(context, part))
        return fork

    def kept(self, context: C, before: Mapping[str, Any], fork: C, *, stopped: bool) -> _Kept:
        """Return what is joined and what is collected of an item; one that stopped need not have made it."""
        changed = changes(context, before, fork, {*self.bound_fields, *self.collected.values()})
        return _Kept(changed, {} if stopped else self._results(fork))

    def join(self, context: C, kept: Mapping[int, _Kept], failed: Collection[int]) -> None:
        """Join the items that did not fail, and fill the lists in item order."""
        changed = {f"item {i}": one.changed for i, one in kept.items()}
        by_all = set.intersection(*map(set, changed.values())) if changed else set()
        merge(context, changed, _REMEDY, own={name for name in by_all if not hasattr(context, name)})
        for name in self.collected:
            setattr(context, name, [one.collected[name] for one in kept.values() if one.collected])
        if self.failed:
            setattr(context, self.failed, [self._item(context, i) for i in sorted(failed)])

    def _results(self, context: C) -> dict[str, Any]:
        try:
            return {name: getattr(context, source) for name, source in self.collected.items()}
        except UnsetError as error:
            raise UnsetError(f"{self.name} collects what an item left unset, give it a default: {error}") from error

    def _item(self, context: C, i: int) -> Any:
        try:
            return self._all(context)[i]
        except IndexError as error:
            told = f"{self.name}: context.{self.items} has no item {i} any more"
            raise IndexError(f"{told}: the items are counted once, and must not get fewer meanwhile") from error

    def _all(self, context: C) -> Sequence[Any]:
        items = getattr(context, self.items)
        if not isinstance(items, Sequence) or isinstance(items, str | bytes):
            kind = type(items).__name__
            raise TypeError(f"{self.name}: context.{self.items} is a {kind}; for-each wants a list or tuple")
        return items
