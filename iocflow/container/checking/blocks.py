"""What stands inside a processor: steps with their options, and blocks."""

from __future__ import annotations

from collections.abc import Mapping

from iocflow.activity import kebab_case
from iocflow.container.checking.beans import Beans, time_limit
from iocflow.container.checking.checks import Checks
from iocflow.container.checking.choices import Choices
from iocflow.container.checking.description import (
    Block,
    Choice,
    Inner,
    Reference,
    Rule,
    Shape,
    Split,
    Step,
    Steps,
)
from iocflow.container.checking.loops import Loops
from iocflow.container.checking.roles import JOINER
from iocflow.container.checking.step_options import STEP_OPTIONS, read_step_options
from iocflow.container.nodes import is_table
from iocflow.wiring import Listing, Node, Scalar, Table, check_id, did_you_mean

__all__ = ["KINDS", "Blocks"]

KINDS: Mapping[str, tuple[str, ...]] = {
    "sequence": (),
    "exclusive-choice": ("routes",),
    "parallel-split": ("join",),
    "for-each": ("as", "do", "parallel", "may-fail", "failed", "collect"),
}
"""The kinds of processors, with the keys that stand beside each."""

_OPTIONS = ("on-error", "time-limit", *STEP_OPTIONS)


class Blocks:
    """Reads the inside of one processor."""

    def __init__(self, checks: Checks, beans: Beans, context: type | None) -> None:
        """Take what the checks share, and the processor's context, which all that stands in it works on."""
        self._checks = checks
        self._beans = beans
        self._context = context
        self._blocks: dict[str, int] = {}
        self._anonymous: dict[str, Inner] = {}
        self._loops = Loops(checks, beans, context, self.step, self.rules_of)

    def shape(self, kind: str, table: Table, owner: str, default: tuple[Rule, ...] = ()) -> Shape | None:
        """Read what stands at the key `kind` of `table`, and beside it; `default` are the rules of the whole."""
        node = table.entries[kind]
        if kind == "sequence":
            return Steps(self.steps(node, owner, default))
        what = f"`{kind}` of {owner}"
        if kind == "parallel-split":
            return self._split(node, table, what)
        if kind == "for-each":
            return self._loops.read(node, table, what)
        return self._choice(node, table, what, default)

    def steps(self, node: Node, what: str, default: tuple[Rule, ...] = (), *, last: bool = False) -> tuple[Step, ...]:
        """Read a list of steps; `default` are the rules of the whole, `last` means that none can be gone to."""
        items = self._checks.listed(node)
        if not items:
            self._checks.error(node.place, f"{what} has no steps", "name the activities in their order")
        found = [self.step(item, f"step {i} of {what}") for i, item in enumerate(items, 1)]
        steps = tuple(step for step in found if step is not None)
        names = None if last else tuple(step.name for step in steps)
        for rules in (default, *map(self.rules_of, steps)):
            self._beans.rules.go(rules, names, what)
        return steps

    def step(self, node: Node, what: str, name: str = "") -> Step | None:
        """Read one step: an id, a dotted name, a list, a table with `do`, or a block.

        A list or block is called `name`, as the branch that it is; without one, by its kind.
        """
        if isinstance(node, Listing) and not node.tag:
            name = name or self._number("sequence")
            return Step(node.place, name, Block("sequence", name, node.place, Steps(self.steps(node, what))))
        if is_table(node):
            return self._table(node, what, name)
        wire = self._wire(node, what)
        if wire is None:
            return None
        self._beans.roles.acts(wire, self._context, node.place, what)
        self._beans.rules.fit(self._bean_rules(wire), self._context, what)
        if isinstance(wire, Reference):
            return Step(node.place, wire.id, wire)
        name = getattr(wire.bean.target, "__name__", "") or (_last(node) if isinstance(node, Scalar) else "")
        return Step(node.place, kebab_case(name or "activity"), wire)

    def rules_of(self, step: Step) -> tuple[Rule, ...]:
        """Return the rules that are asked about a step: its own, then its bean's."""
        return step.on_error + (() if isinstance(step.what, Block) else self._bean_rules(step.what))

    # Steps.

    def _wire(self, node: Node, what: str) -> Reference | Inner | None:
        """Return the bean of a step; a dotted name that stands twice in a processor is one activity."""
        name = node.value if isinstance(node, Scalar) and not node.tag else None
        if isinstance(name, str) and name in self._anonymous:
            return self._anonymous[name]
        wire = self._beans.wired(node, what, "any", self._beans.roles.acting)
        if isinstance(wire, Inner) and isinstance(name, str):
            self._anonymous[name] = wire
        return wire

    def _bean_rules(self, wire: Reference | Inner) -> tuple[Rule, ...]:
        bean = self._beans.roles.bean(wire)
        return () if bean is None else bean.on_error

    def _number(self, name: str) -> str:
        """Return a name that no other block of the processor has."""
        self._blocks[name] = self._blocks.get(name, 0) + 1
        return name if self._blocks[name] == 1 else f"{name}-{self._blocks[name]}"

    def _table(self, table: Table, what: str, name: str) -> Step | None:
        kinds = [kind for kind in KINDS if kind in table.entries]
        if len(kinds) > 1:
            names = " and ".join(f"`{kind}`" for kind in kinds)
            self._checks.error(table.keys[kinds[1]], f"{what} is {names} at once", "keep one of them")
            return None
        if not kinds and "do" not in table.entries:
            known = ("do", *KINDS)
            wrong = next(iter(table.entries), "")
            remedy = did_you_mean(wrong, known)
            self._checks.error(table.place, f"{what} is a mapping that does not say what to do", remedy)
            return None
        if not kinds:
            self._checks.unknown_keys(table, ("do", *_OPTIONS), what)
            step = self.step(table.entries["do"], f"`do` of {what}", name)
        else:
            step = self._block(kinds[0], table, what, name)
        return None if step is None else self._with_options(step, table, what)

    def _block(self, kind: str, table: Table, what: str, name: str) -> Step | None:
        self._checks.unknown_keys(table, (kind, *KINDS[kind], *_OPTIONS), what)
        name = name or self._number(kind)
        shape = self.shape(kind, table, what)
        return None if shape is None else Step(table.place, name, Block(kind, name, table.place, shape))

    def _with_options(self, step: Step, table: Table, what: str) -> Step:
        step.time_limit = time_limit(table, what, self._checks)
        read_step_options(step, table, what, self._checks)
        if rules := self._beans.rules.of(table, what):
            step.on_error = (*rules, *step.on_error)
            self._beans.rules.fit(step.on_error, self._context, what)
        return step

    # Blocks.

    def _split(self, node: Node, table: Table, what: str) -> Split | None:
        branches = self._checks.table(node, what)
        if branches is None:
            return None
        found: dict[str, Step] = {}
        for name, place, branch in branches:
            check_id(name, "branch", place, self._checks.findings)
            step = self.step(branch, f"branch `{name}` of {what}", name)
            if step is not None:
                self._beans.rules.go(self.rules_of(step), None, f"branch `{name}` of {what}")
                found[name] = step
        if not branches.entries:
            self._checks.error(node.place, f"{what} has no branches", "write `NAME: ACTIVITY` for each")
        join = None
        if "join" in table.entries:
            fit = self._beans.roles.filling(JOINER)
            join = self._beans.wired(table.entries["join"], f"`join` of {what}", "any", fit)
            if join is not None:
                self._beans.roles.fills(join, JOINER, table.entries["join"].place, f"`join` of {what}")
        return Split(found, join)

    def _choice(self, node: Node, table: Table, what: str, default: tuple[Rule, ...]) -> Choice | None:
        routes = table.entries.get("routes")
        if routes is None and not is_table(node):
            remedy = "write `routes: {RESULT: ACTIVITY, else: end}` beside it"
            self._checks.error(node.place, f"{what} has an activity that decides, and no `routes`", remedy)
            return None
        choices = Choices(self._checks, self._beans.roles, self.step)
        choice = choices.graph(node, what) if routes is None else choices.decided(node, routes, what)
        if choice is None:
            return None
        rules = (default, *map(self.rules_of, choice.steps.values()))
        for chain in rules:
            self._beans.rules.go(chain, tuple(choice.steps), what)
        choices.reached(choice, {rule.goto for chain in rules for rule in chain if rule.goto}, what)
        return choice


def _last(node: Scalar) -> str:
    """Return the last part of a dotted name, by which a step goes also when there is nothing of that name."""
    return str(node.value).rpartition(".")[2]
