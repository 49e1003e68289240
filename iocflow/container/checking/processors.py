"""The section `processors`: from its tables to described processors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iocflow.container.checking.beans import Beans, check_id
from iocflow.container.checking.blocks import KINDS, Blocks
from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import Process, Rule, Steps
from iocflow.container.inspecting.annotations import shown
from iocflow.container.nodes import described
from iocflow.context import ProcessContext
from iocflow.exclusive_choice import ExclusiveChoiceProcessor
from iocflow.for_each import ForEachProcessor
from iocflow.parallel_split import ParallelSplitProcessor
from iocflow.sequence import SequenceProcessor
from iocflow.wiring import BeanInfo, Place, Scalar, Table

__all__ = ["KIND_CLASSES", "PROCESSOR_KEYS", "Processors"]

PROCESSOR_KEYS = ("context", *KINDS, "on-error", "finally", "max-steps", "concurrency")
LATER_PROCESSOR_KEYS = dict.fromkeys(("durable", "queue", "on-failure"), "comes with durable runs")
KIND_CLASSES: Mapping[str, type[Any]] = {
    "sequence": SequenceProcessor,
    "exclusive-choice": ExclusiveChoiceProcessor,
    "parallel-split": ParallelSplitProcessor,
    "for-each": ForEachProcessor,
}


class Processors:
    """Reads processors: first which there are (`declare`), then what they run (`describe`)."""

    def __init__(self, checks: Checks, beans: Beans) -> None:
        """Take what the checks share."""
        self._checks = checks
        self._beans = beans
        self._tables: dict[str, tuple[Table, str]] = {}
        self._contexts: dict[str, str] = {}

    def declare(self, section: Table) -> None:
        """Find out the kind and context of every processor, so that others can refer to it."""
        for id, place, node in section:
            table = (
                self._checks.table(node, f"processor `{id}`")
                if check_id(id, place, "processor", self._checks)
                else None
            )
            if table is None:
                continue
            kinds = [kind for kind in KINDS if kind in table.entries]
            if len(kinds) != 1:
                found = "has no kind" if not kinds else f"is {' and '.join(f'`{kind}`' for kind in kinds)} at once"
                remedy = f"write one of {', '.join(f'`{kind}`' for kind in KINDS)}"
                self._checks.error(place, f"processor `{id}` {found}", remedy)
            kind = kinds[0] if kinds else "sequence"
            self._tables[id] = (table, kind)
            context = self._context(id, place, table)
            self._checks.processors[id] = BeanInfo(id, KIND_CLASSES[kind], place, context)

    def describe(self) -> None:
        """Read the inside of every declared processor."""
        default = self._default()
        for id, (table, kind) in self._tables.items():
            self._checks.described[id] = self._process(id, table, kind, default)

    def _default(self) -> tuple[Rule, ...]:
        """Return the rules of `defaults`, for processors that have none."""
        defaults = self._checks.document.defaults
        if defaults is None:
            return ()
        self._checks.unknown_keys(defaults, ("on-error",), "`defaults`")
        node = defaults.entries.get("on-error")
        return () if node is None else self._beans.rules.chain(node, "`on-error` of `defaults`")

    def _context(self, id: str, place: Place, table: Table) -> type | None:
        """Return the class of a processor's contexts."""
        what = f"`context` of processor `{id}`"
        node = table.entries.get("context")
        if node is None:
            self._checks.error(place, f"processor `{id}` has no `context`", "write `context: .ItsContextClass`")
            return None
        name = self._checks.text(node, what)
        if name is None or not isinstance(node, Scalar):
            return None
        dotted = "." in name
        cls = self._checks.resolve(node, "class", what) if dotted else self._of_bean(node, what, id)
        if not isinstance(cls, type) or cls is object:
            return None
        if not issubclass(cls, ProcessContext):
            text = f"{what} is {described(node)}, and `{shown(cls)}` is no context"
            self._checks.error(node.place, text, "let it subclass `iocflow.ProcessContext`")
            return None
        needed = [one.name for one in self._checks.signatures.of(cls).parameters.values() if one.required]
        if dotted and needed:
            text = f"{what} is {described(node)}, which cannot be made without `{'`, `'.join(needed)}`"
            remedy = "give the fields defaults, or name a prototype bean that has `args`"
            self._checks.error(node.place, text, remedy)
        return cls

    def _of_bean(self, node: Scalar, what: str, id: str) -> type | None:
        bean = self._checks.lookup(node, what)
        if bean is None or bean not in self._checks.beans:
            if bean is not None:
                self._checks.error(node.place, f"{what} is {described(node)}, a processor", "name a context")
            return None
        info = self._checks.beans[bean]
        related = [(info.place, f"`{bean}` is defined here")]
        if bean in self._checks.overrides:
            text = (
                f"{what} is {described(node)}, which is overridden by one object; every run needs a context of its own"
            )
            self._checks.error(node.place, text, "override what its context is given instead", related=related)
        elif self._beans.scope_of(bean) != "prototype":
            text = f"{what} is {described(node)}, a singleton; every run needs a context of its own"
            self._checks.error(node.place, text, f"write `scope: prototype` at `{bean}`", related=related)
        self._contexts[id] = bean
        return info.type

    def _process(self, id: str, table: Table, kind: str, default: tuple[Rule, ...]) -> Process:
        checks, owner = self._checks, f"processor `{id}`"
        info = checks.processors[id]
        checks.unknown_keys(table, (*PROCESSOR_KEYS, *KINDS[kind]), owner, later=LATER_PROCESSOR_KEYS)
        blocks = Blocks(checks, self._beans, info.context)
        rules = default
        if "on-error" in table.entries:
            rules = self._beans.rules.chain(table.entries["on-error"], f"`on-error` of {owner}")
        self._beans.rules.fit(rules, info.context, owner)
        shape = blocks.shape(kind, table, owner, rules) if kind in table.entries else None
        process = Process(id, info.place, kind, info.context, shape or Steps(()), self._contexts.get(id, ""), rules)
        if kind in ("parallel-split", "for-each"):
            self._beans.rules.go(rules, None, owner)
        if "finally" in table.entries:
            process.finally_ = blocks.steps(table.entries["finally"], f"`finally` of {owner}", last=True)
        process.max_steps = checks.number_at(table, "max-steps", owner, 1) or process.max_steps
        process.concurrency = checks.number_at(table, "concurrency", owner, 1)
        return process
