"""A plan as a Mermaid flowchart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise

from iocflow.cli.outline import headline, label
from iocflow.plan import Plan, ProcessorPlan, StepPlan

__all__ = ["mermaid"]


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the drawing: the node that is entered, and the ways out as (node, label of the way)."""

    entry: str
    exits: list[tuple[str, str]]


def mermaid(plans: Sequence[Plan]) -> str:
    """Return one flowchart of the plans' main processors, each from a rounded node to a rounded node."""
    drawing = _Flowchart()
    for plan in plans:
        drawing.draw(plan)
    return "\n".join(("flowchart TD", *drawing.nodes, *drawing.arrows))


def quoted(text: str) -> str:
    """Return `text` as a Mermaid label; whatever could have a meaning there becomes a character code."""
    plain = " ".join(text.split()) or " "
    return '"' + re.sub(r"[^\w \-./,:()+*=%']", lambda found: f"#{ord(found[0])};", plain) + '"'


class _Flowchart:
    """Draws one flowchart.

    Arrows are kept apart and come last: one that stood in a box would pull the nodes it names into that box.
    """

    def __init__(self) -> None:
        self.processors: Mapping[str, ProcessorPlan] = {}
        self.nodes: list[str] = []
        self.arrows: list[str] = []
        self.numbers = count(1)
        self.depth = 1

    def draw(self, plan: Plan) -> None:
        """Draw all of a plan."""
        self.processors, main = plan["p"], plan["main"]
        begin = self.node(main, "([{}])")
        part = self.processor(main)
        self.arrow([(begin, "")], part.entry)
        self.arrow(part.exits, self.node("end", "([{}])"))
        self.asked(begin, self.processors[main]["handlers"])

    def line(self, text: str) -> None:
        self.nodes.append("    " * self.depth + text)

    def node(self, text: str, shape: str = "[{}]") -> str:
        """Add a node; return its id."""
        name = f"n{next(self.numbers)}"
        self.line(name + shape.format(quoted(text)))
        return name

    def arrow(self, exits: Iterable[tuple[str, str]], to: str) -> None:
        """Add an arrow from every exit to the node `to`."""
        for source, way in exits:
            self.arrows.append(f"    {source} -->{f'|{quoted(way)}|' if way else ''} {to}")

    def asked(self, node: str, handlers: list[str]) -> None:
        """Add the chain of handlers that is asked when something in `node` fails."""
        if handlers:
            chain = self.node(", ".join(handlers), "{{{{{}}}}}")
            self.arrows.append(f"    {node} -. {quoted('on error')} .-> {chain}")

    def boxed(self, text: str, draw: Callable[[], _Part]) -> _Part:
        """Draw something inside a box."""
        self.line(f"subgraph b{next(self.numbers)}[{quoted(text)}]")
        self.depth += 1
        part = draw()
        self.depth -= 1
        self.line("end")
        return part

    def joined(self, parts: list[_Part]) -> _Part:
        """Connect parts one after the other."""
        for before, after in pairwise(parts):
            self.arrow(before.exits, after.entry)
        return _Part(parts[0].entry, parts[-1].exits)

    def chain(self, steps: list[StepPlan]) -> _Part:
        """Draw steps one after the other."""
        if not steps:
            nothing = self.node("nothing to do")
            return _Part(nothing, [(nothing, "")])
        return self.joined([self.step(step) for step in steps])

    def step(self, step: StepPlan) -> _Part:
        """Draw one step: a node, or a box with a processor in it."""
        if step["do"] == "activity":
            node = self.node(label(step))
            part = _Part(node, [(node, "")])
        else:
            inner = self.processors[step["ref"]]
            part = self.boxed(headline(step, inner), lambda: self.processor(step["ref"]))
            self.asked(part.entry, inner["handlers"])
        self.asked(part.entry, step["handlers"])
        return part

    def processor(self, id: str) -> _Part:
        """Draw a processor's steps and its `finally`."""
        processor = self.processors[id]
        kinds = {"sequence": self.sequence, "choice": self.choice, "split": self.split, "each": self.each}
        part = kinds[processor["kind"]](processor)
        if processor["finally"]:
            part = self.joined([part, self.boxed("finally", lambda: self.chain(processor["finally"]))])
        return part

    def sequence(self, processor: ProcessorPlan) -> _Part:
        """Draw a sequence."""
        return self.chain(processor["steps"])

    def each(self, processor: ProcessorPlan) -> _Part:
        """Draw a for-each: the body as a loop from and to the node that hands out the items."""
        items = self.node("next item", "{{{}}}")
        body = self.chain(processor["steps"])
        self.arrow([(items, "")], body.entry)
        self.arrow(body.exits, items)
        return _Part(items, [(items, "no more")])

    def split(self, processor: ProcessorPlan) -> _Part:
        """Draw the branches of a split between a fork and a join."""
        fork = self.node("split", "[/{}\\]")
        branches = [self.step(step) for step in processor["steps"]]
        join = self.node(processor["join"] or "join", "[\\{}/]")
        for branch in branches:
            self.arrow([(fork, "")], branch.entry)
            self.arrow(branch.exits, join)
        return _Part(fork, [(join, "")])

    def choice(self, processor: ProcessorPlan) -> _Part:
        """Draw the steps of a choice, then its routes; the first step is where it starts."""
        parts = {step["name"]: self.step(step) for step in processor["steps"]}
        exits: list[tuple[str, str]] = []
        for name, routes in processor["routes"].items():
            for result, target in routes.items():
                way = "" if len(routes) == 1 else result
                ways = [(node, way or before) for node, before in parts[name].exits]
                if target == "end":
                    exits += ways
                else:
                    self.arrow(ways, parts[target].entry)
        return _Part(next(iter(parts.values())).entry, exits)
