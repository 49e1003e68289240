"""The steps of a processor that is a bean: beans that it is given come to it with what they are wired by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_origin

from iocflow.activity import BoundActivity
from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import (
    Bean,
    Constant,
    Entries,
    Inner,
    Items,
    Reference,
    Stepped,
    Value,
    Wire,
)
from iocflow.container.checking.error_rules import Rules
from iocflow.container.checking.roles import Roles
from iocflow.container.inspecting.annotations import UNKNOWN, alternatives, shown
from iocflow.exclusive_choice import ExclusiveChoiceProcessor
from iocflow.processor import Processor
from iocflow.sequence import SequenceProcessor
from iocflow.wiring import Place

__all__ = ["BeanSteps", "steps_of"]

_OPEN: tuple[Any, ...] = (UNKNOWN, Any, object)


@dataclass(slots=True, eq=False)
class _Given:
    """What a processor that is a bean was given for a parameter."""

    bean: Bean
    name: str
    value: Value
    context: type | None

    @property
    def what(self) -> str:
        return f"`{self.name}` of {self.bean.owner}"


class BeanSteps:
    """Finds the steps of processors that are beans, and checks them when all beans are known."""

    def __init__(self, checks: Checks, roles: Roles, rules: Rules) -> None:
        """Take what the checks share."""
        self._checks = checks
        self._roles = roles
        self._rules = rules
        self._given: list[_Given] = []

    def of(self, bean: Bean, values: dict[str, Value]) -> dict[str, Value]:
        """Return the values of a bean, with those of a processor that may be steps marked as such."""
        if not issubclass(bean.type, Processor):
            return values
        context = values.get("context")
        cls = context.value if isinstance(context, Constant) and isinstance(context.value, type) else None
        found = {name: _marked(value) for name, value in values.items()}
        self._given += [_Given(bean, name, value, cls) for name, value in found.items()]
        return found

    def check(self) -> None:
        """Note steps that do not fit, options that would be lost, and answers that go to no step."""
        for given in self._given:
            for leaf in _leaves(given.value):
                wire = leaf.wire if isinstance(leaf, Stepped) else leaf
                place = wire.place if isinstance(wire, Reference) else wire.bean.place
                if not isinstance(leaf, Stepped):
                    self._lost(wire, place, given)
                elif leaf.sure and self._checks.fits(self._roles.candidate(wire), wire.wanted):
                    self._roles.acts(wire, given.context, place, f"a step in {given.what}")
            self._go(given)

    def _lost(self, wire: Wire, place: Place, given: _Given) -> None:
        """Note options of an activity for which the parameter has no room."""
        bean = self._roles.bean(wire)
        if bean is None or not bean.step_options or wire.wanted in _OPEN:
            return
        keys = " and ".join(f"`{key}`" for key in bean.step_options)
        text = f"{keys} of {bean} would be lost in {given.what}, which takes `{shown(wire.wanted)}`"
        self._checks.error(place, text, "annotate it by `iocflow.activity.StepLike`, which comes with such options")

    def _go(self, given: _Given) -> None:
        """Compare where rules of steps go to with the steps, where those are known."""
        target, value = given.bean.target, given.value
        names: tuple[str, ...] | None = None
        if target is SequenceProcessor and given.name == "steps" and isinstance(value, Items):
            steps = value.items
            ids = tuple(one.wire.id for one in steps if isinstance(one, Stepped) and isinstance(one.wire, Reference))
            names = ids if len(ids) == len(steps) else None
        elif target is ExclusiveChoiceProcessor and given.name == "steps" and isinstance(value, Entries):
            steps, names = tuple(value.entries.values()), tuple(value.entries)
        if names is None:
            return
        for one in steps:
            bean = self._roles.bean(one.wire) if isinstance(one, Stepped) else None
            if bean is not None:
                self._rules.go(bean.on_error, names, given.what)


def steps_of(bean: Bean) -> Iterator[Wire]:
    """Yield the beans that stand as steps in a bean, if it is a processor."""
    for value in (*bean.positional, *bean.keywords.values()):
        yield from (leaf.wire for leaf in _leaves(value) if isinstance(leaf, Stepped))


def _marked(value: Value) -> Value:
    """Return the value with the beans in it that may stand as steps marked."""
    if isinstance(value, Reference | Inner):
        sure = any((get_origin(one) or one) is BoundActivity for one in alternatives(value.wanted))
        return Stepped(value, sure) if sure or value.wanted in _OPEN else value
    if isinstance(value, Items):
        return Items(tuple(map(_marked, value.items)), value.kind)
    return Entries({key: _marked(one) for key, one in value.entries.items()}) if isinstance(value, Entries) else value


def _leaves(value: Value) -> Iterator[Stepped | Wire]:
    """Yield the beans that stand in a value."""
    if isinstance(value, Stepped | Reference | Inner):
        yield value
    for one in value.items if isinstance(value, Items) else ():
        yield from _leaves(one)
    for one in value.entries.values() if isinstance(value, Entries) else ():
        yield from _leaves(one)
