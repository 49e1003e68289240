"""A plan as an indented outline, for people who read it in a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from iocflow.activity import kebab_case
from iocflow.compiler import Compiler
from iocflow.error_handling import HandlesErrors, OnError, RetryingErrorHandler
from iocflow.plan import Plan, ProcessorPlan, StepPlan
from iocflow.processor import Processor

__all__ = ["headline", "label", "outline", "plan_of", "title"]

_UNNAMED = re.compile(r"(sequence|exclusive-choice|parallel-split)(-\d+)?")
"""What the container calls a block that has no name of its own: its kind, and a number when there are several."""


def plan_of(processor: Processor[Any]) -> Plan:
    """Return the plan of a processor in which handlers are not told apart but described, for a drawing."""
    return _Describing(processor).plan


class _Describing(Compiler):
    """Puts into the plan what handlers do: to an engine two `continue` are two handlers, to a person they are one."""

    def handlers(self, handlers: Iterable[HandlesErrors]) -> list[str]:
        """Return the handlers in a few words each."""
        return list(map(_described, handlers))


def _described(handler: HandlesErrors) -> str:
    if isinstance(handler, OnError):
        errors = ", ".join(name.rpartition(".")[2] for name in handler.types)
        return f"{errors} -> {_described(handler.then)}"
    if isinstance(handler, RetryingErrorHandler):
        return f"{handler.attempts} attempt{'' if handler.attempts == 1 else 's'}"
    return str(getattr(handler, "name", kebab_case(type(handler).__name__)))


def outline(plan: Plan) -> str:
    """Return the plan's main processor with everything in it, a step a line."""
    main = plan["p"][plan["main"]]
    return "\n".join((f"{plan['main']}: {title(main)}", *_body(plan, main, "  ")))


def title(processor: ProcessorPlan) -> str:
    """Return what kind of processor it is, in a few words."""
    if processor["kind"] != "each":
        return {"sequence": "sequence", "choice": "exclusive choice", "split": "parallel split"}[processor["kind"]]
    each = processor["each"]
    notes = [f"{each['parallel']} at once"] if each["parallel"] else []
    if each["may_fail"]:
        notes.append(f"{each['may_fail']} may fail")
    return f"for each of {each['items']} as {each['as']}" + (f" ({', '.join(notes)})" if notes else "")


def label(step: StepPlan) -> str:
    """Return the step's name and its time limit."""
    return step["name"] if step["limit"] is None else f"{step['name']} (at most {step['limit']:g} s)"


def headline(step: StepPlan, inner: ProcessorPlan) -> str:
    """Return the label of a step that is a processor, and the kind of that, unless its name says just the kind."""
    unnamed = _UNNAMED.fullmatch(step["name"])
    if unnamed and unnamed[1].replace("-", " ") == title(inner):
        return label(step)
    return f"{label(step)}: {title(inner)}"


def _body(plan: Plan, processor: ProcessorPlan, indent: str) -> Iterator[str]:
    """Yield what belongs to a processor: its steps, its default handlers, its `finally`."""
    numbered = processor["kind"] == "sequence"
    for number, step in enumerate(processor["steps"], 1):
        yield from _step(plan, step, indent, f"{number}. " if numbered else "- ", processor["routes"].get(step["name"]))
    if processor["join"]:
        yield f"{indent}join: {processor['join']}"
    if processor["handlers"]:
        yield f"{indent}on error: {', '.join(processor['handlers'])}"
    if processor["finally"]:
        yield f"{indent}finally:"
        for step in processor["finally"]:
            yield from _step(plan, step, indent + "  ", "- ", None)


def _step(plan: Plan, step: StepPlan, indent: str, mark: str, routes: dict[str, str] | None) -> Iterator[str]:
    """Yield a step's line, with where it leads to, and below it what is nested in it."""
    inner = plan["p"][step["ref"]] if step["do"] == "processor" else None
    line = f"{indent}{mark}{headline(step, inner) if inner else label(step)}"
    if routes:
        ways = [target if len(routes) == 1 else f"{result} -> {target}" for result, target in routes.items()]
        line += f"  => {', '.join(ways)}"
    yield line
    deeper = indent + "   "
    if step["handlers"]:
        yield f"{deeper}on error: {', '.join(step['handlers'])}"
    if inner:
        yield from _body(plan, inner, deeper)
