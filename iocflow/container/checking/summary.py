"""What a checked file wires, as plain data for `iocflow check`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import Block, Constant, Inner, Process, Reference, Rule, Split, Step
from iocflow.container.checking.graph import all_steps, children
from iocflow.container.inspecting.annotations import shown
from iocflow.error_handling import Decision, RetryingErrorHandler
from iocflow.wiring import Node, Scalar, Table

__all__ = ["summary_of"]


def summary_of(checks: Checks) -> Mapping[str, Any]:
    """Return processors, the number of beans, and launchers."""
    return {
        "file": checks.document.path,
        "beans": len(checks.beans),
        "processors": {id: _process(process, checks) for id, process in checks.described.items()},
        "launchers": _launchers(checks.document.sections.get("launchers")),
    }


def _process(process: Process, checks: Checks) -> Mapping[str, Any]:
    steps = children(process.shape)
    rules = [*process.on_error]
    for step in all_steps(steps):
        bean = checks.defined.get(step.what.id) if isinstance(step.what, Reference) else None
        rules += [*step.on_error, *(() if bean is None else bean.on_error)]
    return {
        "kind": process.kind,
        "context": None if process.context is None else shown(process.context),
        "steps": [_step(step) for step in steps],
        "handlers": list(dict.fromkeys(map(_rule, rules))),
        "finally": [_step(step) for step in process.finally_],
        "durable": process.durable is not None,
    }


def _step(step: Step, branch: str = "") -> str:
    if not isinstance(step.what, Block):
        return step.name
    shape = step.what.shape
    named = shape.branches.items() if isinstance(shape, Split) else [("", one) for one in children(shape)]
    parts = [f"{name}: {_step(one, name)}" if name else _step(one) for name, one in named]
    head = step.what.kind if step.name == branch else step.name
    return f"{head} [{', '.join(parts)}]"


def _rule(rule: Rule) -> str:
    """Return a rule in a few words."""
    errors = ", ".join(error.__name__ for error in rule.errors)
    return f"{errors}: {_answer(rule)}" if errors else _answer(rule)


def _answer(rule: Rule) -> str:
    answer = rule.answer
    if isinstance(answer, Reference):
        return answer.id
    if isinstance(answer, Inner):
        return getattr(answer.bean.target, "__name__", "handler")
    made = answer.value if isinstance(answer, Constant) else None
    if isinstance(made, RetryingErrorHandler):
        return f"{made.attempts} attempts"
    return f"{made.kind} {made.activity}".strip() if isinstance(made, Decision) else ""


def _launchers(section: Node | None) -> Mapping[str, Any]:
    return {name: dict(_texts(table)) for name, _, table in section} if isinstance(section, Table) else {}


def _texts(table: Node) -> Iterator[tuple[str, str]]:
    """Yield the keys of a launcher with what the file says, which holds no secret."""
    for key, _, node in table if isinstance(table, Table) else ():
        yield key, _flat(node)


def _flat(node: Node) -> str:
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Table):
        return f"{{{', '.join(f'{key}: {_flat(value)}' for key, _, value in node)}}}"
    return f"[{', '.join(map(_flat, node.items))}]"
