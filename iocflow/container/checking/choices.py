"""Exclusive choices: the graph of routes, or one activity that decides."""

from __future__ import annotations

from collections.abc import Callable, Collection

from iocflow.container.checking.beans import RESERVED
from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import Block, Choice, Step
from iocflow.container.checking.roles import Roles
from iocflow.container.inspecting.contexts import results
from iocflow.container.nodes import described
from iocflow.wiring import Node, Place, Scalar, Table, check_id, did_you_mean

__all__ = ["Choices"]

END, ELSE = RESERVED


class Choices:
    """Reads the routes of one exclusive choice; `step` reads a step."""

    def __init__(self, checks: Checks, roles: Roles, step: Callable[[Node, str], Step | None]) -> None:
        """Take what the checks share."""
        self._checks = checks
        self._roles = roles
        self._step = step
        self._places: dict[str, Place] = {}
        self._astray = False

    def graph(self, node: Node, what: str) -> Choice | None:
        """Read a map from activity to where its results lead; the first key starts."""
        table = self._checks.table(node, what)
        if table is None:
            return None
        if not table.entries:
            self._checks.error(node.place, f"{what} is empty", "write `ACTIVITY: NEXT` for each activity")
            return None
        steps: dict[str, Step] = {}
        for key, place, _ in table:
            step = self._keyed(key, place, what)
            if step is not None:
                steps[key] = step
                self._places[step.name] = place
        names = {key: steps[key].name if key in steps else key for key in table.entries}
        routes = {names[key]: self._routes(key, place, to, names, steps.get(key)) for key, place, to in table}
        return Choice({step.name: step for step in steps.values()}, routes)

    def decided(self, node: Node, routes: Node, what: str) -> Choice | None:
        """Read an activity that decides, and what runs for each of its results."""
        decides, table = self._step(node, what), self._checks.table(routes, f"`routes` of {what}")
        if table is None or decides is None:
            return None
        steps = {decides.name: decides}
        targets: dict[str, str] = {}
        for result, place, to in table:
            check_id(result, "route", place, self._checks.findings)
            if isinstance(to, Scalar) and to.value == END:
                targets[result] = END
            elif (step := self._step(to, f"route `{result}` of {what}")) is not None:
                steps.setdefault(step.name, step)
                self._places.setdefault(step.name, place)
                targets[result] = step.name
        names, closed = self._results(decides)
        self._known(table, names, decides.name)
        uncovered = [name for name in names if name not in table.entries]
        if ELSE not in table.entries and not self._unknown(decides):
            unknown = any(result not in names for result in table.entries)  # said already, and it covers one perhaps
            if not closed or (uncovered and not unknown):
                lacking = ", ".join(f"`{name}`" for name in (*uncovered, *(() if closed else (ELSE,))))
                text = f"`routes` of {what} lead nowhere for {lacking}"
                self._checks.error(routes.place, text, "write `else: end`, or a route for each")
        targets.setdefault(ELSE, END)
        return Choice(steps, {decides.name: targets, **{name: {ELSE: END} for name in steps if name != decides.name}})

    def reached(self, choice: Choice, also: Collection[str], what: str) -> None:
        """Note activities that no route leads to; `also` are those that an error rule goes to."""
        if self._astray:  # a misspelt route leads to what seems never to be reached
            return
        start = next(iter(choice.routes))
        found, todo = {start, *also}, [start, *also]
        while todo:
            for target in choice.routes.get(todo.pop(), {}).values():
                if target not in found:
                    found.add(target)
                    todo.append(target)
        for name in choice.steps:
            if name not in found:
                text = f"`{name}` is never reached: no route of {what} leads to it"
                self._checks.error(self._places[name], text, "lead a route to it, or remove it")

    def _keyed(self, key: str, place: Place, what: str) -> Step | None:
        if key in RESERVED:
            text = f"`{key}` cannot be an activity of {what}: routes give it a meaning"
            self._checks.error(place, text, "name an activity")
            return None
        return self._step(Scalar(place, key, key), f"activity `{key}` of {what}")

    def _routes(self, key: str, place: Place, to: Node, names: dict[str, str], step: Step | None) -> dict[str, str]:
        """Return where the results of the activity `key` lead."""
        if isinstance(to, Scalar):
            return {ELSE: self._target(to, f"the route of `{key}`", names)}
        table = self._checks.table(to, f"the routes of `{key}`")
        if table is None:
            return {ELSE: END}
        for result, at, _ in table:
            check_id(result, "route", at, self._checks.findings)
        routes = {result: self._target(node, f"the route `{result}` of `{key}`", names) for result, _, node in table}
        if ELSE not in routes:
            self._checks.error(place, f"the routes of `{key}` have no `else`", "write `else: end`, or where it leads")
        if step is not None:
            self._known(table, self._results(step)[0], key)
        return routes

    def _target(self, node: Node, what: str, names: dict[str, str]) -> str:
        name = self._checks.text(node, what)
        if name is None or name == END:
            self._astray |= name is None
            return END
        if name in names:
            return names[name]
        self._astray = True
        remedy = did_you_mean(name, (*names, END))
        if name in self._checks.ids:
            remedy = f"write where that leads: `{name}: end`"
        self._checks.error(node.place, f"{what} leads to {described(node)}, which has no routes here", remedy)
        return END

    def _results(self, step: Step) -> tuple[tuple[str, ...], bool]:
        target = None if isinstance(step.what, Block) else self._roles.target(step.what)
        return ((), False) if target is None else results(target, self._checks.signatures)

    def _unknown(self, step: Step) -> bool:
        """Return whether what the step runs could not be had, so that nothing can be said of its results."""
        bean = None if isinstance(step.what, Block) else self._roles.bean(step.what)
        return bean is not None and bean.target is None

    def _known(self, table: Table, names: tuple[str, ...], decides: str) -> None:
        """Note routes for results that the activity cannot have, where its annotation tells."""
        for result, place, _ in table:
            if names and result != ELSE and result not in names:
                text = f"`{decides}` never returns `{result}`"
                self._checks.error(place, text, did_you_mean(result, names))
