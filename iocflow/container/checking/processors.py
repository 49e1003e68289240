"""The section `processors`: from its tables to described processors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iocflow.container.checking.beans import Beans, definitions
from iocflow.container.checking.blocks import KINDS, Blocks
from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import Process, Rule
from iocflow.container.checking.durables import read_durable
from iocflow.container.inspecting.annotations import shown
from iocflow.container.inspecting.calling import refusal, uncallable
from iocflow.container.nodes import described
from iocflow.context import ProcessContext, seed_type_of
from iocflow.errors import SeedError
from iocflow.exclusive_choice import ExclusiveChoiceProcessor
from iocflow.for_each import ForEachProcessor
from iocflow.parallel_split import ParallelSplitProcessor
from iocflow.sequence import SequenceProcessor
from iocflow.wiring import BeanInfo, Scalar, Table
from iocflow.wiring.fresh import unfresh_fields

__all__ = ["KIND_CLASSES", "LATER_PROCESSOR_KEYS", "PROCESSOR_KEYS", "Processors"]

PROCESSOR_KEYS = ("context", *KINDS, "on-error", "finally", "max-steps", "concurrency", "durable", "on-failure")
LATER_PROCESSOR_KEYS = {"queue": "comes with queues"}
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
        self._declared: dict[str, tuple[Process, Table]] = {}

    def declare(self, section: Table) -> None:
        """Find out the kind and context of every processor, so that others can refer to it."""
        for id, place, table in definitions(section, "processor", self._checks):
            kinds = [kind for kind in KINDS if kind in table.entries]
            process = Process(id, place, kinds[0] if kinds else "sequence")
            if len(kinds) != 1:
                found = "has no kind" if not kinds else f"is {' and '.join(f'`{kind}`' for kind in kinds)} at once"
                remedy = f"write one of {', '.join(f'`{kind}`' for kind in KINDS)}"
                self._checks.error(place, f"{process.owner} {found}", remedy)
            process.context = self._context(process, table)
            self._declared[id] = process, table
            self._checks.processors[id] = BeanInfo(id, KIND_CLASSES[process.kind], place, process.context)

    def describe(self) -> None:
        """Read the inside of every declared processor."""
        default = self._default()
        for id, (process, table) in self._declared.items():
            self._complete(process, table, default)
            self._checks.described[id] = process

    def describe_durables(self, section: Table) -> None:
        """Read of every processor how it is durable, and not what it runs: what a client needs."""
        for id, place, table in definitions(section, "processor", self._checks):
            process = Process(id, place, "sequence")
            process.context = self._context(process, table)
            read_durable(process, table, self._checks)
            self._checks.described[id] = process

    def _default(self) -> tuple[Rule, ...]:
        """Return the rules of `defaults`, for processors that have none."""
        defaults = self._checks.document.defaults
        if defaults is None:
            return ()
        self._checks.unknown_keys(defaults, ("on-error",), "`defaults`")
        return self._beans.rules.of(defaults, "`defaults`") or ()

    def _context(self, process: Process, table: Table) -> type | None:
        """Return the class of a processor's contexts."""
        what = f"`context` of {process.owner}"
        node = table.entries.get("context")
        if node is None:
            self._checks.error(process.place, f"{process.owner} has no `context`", "write `context: .ItsContextClass`")
            return None
        name = self._checks.text(node, what)
        if name is None or not isinstance(node, Scalar):
            return None
        dotted = "." in name
        cls = self._checks.resolve(node, "class", what) if dotted else self._of_bean(node, what, process)
        if not isinstance(cls, type) or cls is object:
            return None
        if not issubclass(cls, ProcessContext):
            text = f"{what} is {described(node)}, and `{shown(cls)}` is no context"
            self._checks.error(node.place, text, "let it subclass `iocflow.ProcessContext`")
            return None
        method = "set_seed_data"
        if why := uncallable(cls, method, awaited=False) or refusal(cls, method, ("seed_data",)):
            text = f"{what} is {described(node)}, whose `{method}` {why}"
            self._checks.error(node.place, text, f"write `def {method}(self, seed_data)`")
        if cls.set_seed_data is ProcessContext.set_seed_data:
            try:
                seed_type_of(cls)
            except SeedError as error:
                text = f"{what} is {described(node)}, which can be given no seed: {error}"
                self._checks.warn(node.place, text)
        needed = [one.name for one in self._checks.signatures.of(cls).parameters.values() if one.required]
        if dotted and needed:
            text = f"{what} is {described(node)}, which cannot be made without `{'`, `'.join(needed)}`"
            remedy = "give the fields defaults, or name a prototype bean that has `args`"
            self._checks.error(node.place, text, remedy)
        return cls

    def _of_bean(self, node: Scalar, what: str, process: Process) -> type | None:
        bean = self._checks.lookup(node, what, self._checks.fitting(ProcessContext))
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
        process.context_bean = bean
        return info.type

    def _complete(self, process: Process, table: Table, default: tuple[Rule, ...]) -> None:
        """Read what the processor runs; `default` are the rules of one that has none."""
        checks, rules, owner, kind = self._checks, self._beans.rules, process.owner, process.kind
        checks.unknown_keys(table, (*PROCESSOR_KEYS, *KINDS[kind]), owner, later=LATER_PROCESSOR_KEYS)
        blocks = Blocks(checks, self._beans, process.context)
        own = rules.of(table, owner)
        process.on_error = default if own is None else own
        rules.fit(process.on_error, process.context, owner)
        if kind in table.entries:
            process.shape = blocks.shape(kind, table, owner, process.on_error) or process.shape
        if kind in ("parallel-split", "for-each"):
            rules.go(process.on_error, None, owner)
        if "finally" in table.entries:
            process.finally_ = blocks.steps(table.entries["finally"], f"`finally` of {owner}", last=True)
        process.max_steps = checks.number_at(table, "max-steps", owner, 1) or process.max_steps
        process.concurrency = checks.number_at(table, "concurrency", owner, 1)
        read_durable(process, table, checks)
        if process.context is not None and process.durable is None:  # a durable one is told all that cannot be stored
            for name, why in unfresh_fields(process.context).items():
                what = (
                    f"`context` of {owner}, `{shown(process.context)}`, would not be fresh in each run: {name}: {why}"
                )
                checks.error(table.entries["context"].place, what)
