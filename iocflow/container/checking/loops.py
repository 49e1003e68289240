"""A for-each: its field of items, its body, and the fields that it fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_origin

from iocflow.container.checking.beans import Beans
from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import Each, Rule, Step
from iocflow.container.inspecting.annotations import (
    alternatives,
    fields_of,
    is_protocol,
    member_of,
    resolved,
    shown,
    unwrapped,
)
from iocflow.container.nodes import described
from iocflow.for_each import field_faults
from iocflow.wiring import Node, Scalar, Table, did_you_mean

__all__ = ["Loops"]

_LACKS = {
    "as": "write `as: FIELD`, the field that holds the item",
    "do": "write `do: ACTIVITY`, what runs for each",
}
_ENGINES = {"step", "stopped", "stop_reason", "next_activity"}
"""The fields of every context in which the engine and a run speak to each other."""


class Loops:
    """Reads the for-each blocks of one processor."""

    def __init__(
        self,
        checks: Checks,
        beans: Beans,
        context: type | None,
        step: Callable[[Node, str], Step | None],
        rules_of: Callable[[Step], tuple[Rule, ...]],
    ) -> None:
        """Take what the checks share, the processor's context, and what reads a step and its rules."""
        self._checks = checks
        self._beans = beans
        self._context = context
        self._step = step
        self._rules_of = rules_of

    def read(self, node: Node, table: Table, what: str) -> Each | None:
        """Read the for-each over the field that `node` names; `table` has the keys beside it."""
        texts = {"for-each": self._field(node, what)}
        for key in ("as", "failed"):
            if key in table.entries:
                texts[key] = self._field(table.entries[key], f"`{key}` of {what}")
        for key in ("as", "do"):
            if key not in table.entries:
                self._checks.error(table.keys["for-each"], f"{what} has no `{key}`", _LACKS[key])
        body = self._step(table.entries["do"], f"`do` of {what}") if "do" in table.entries else None
        if body is not None:
            self._beans.rules.go(self._rules_of(body), None, f"`do` of {what}")
        parallel = self._checks.number_at(table, "parallel", what, 0) or 0
        may_fail = self._may_fail(table, what)
        collect = self._collect(table, what)
        self._check_uses(table, {key: name for key, name in texts.items() if name}, collect, parallel, what)
        items, item = texts["for-each"], texts.get("as")
        if items is not None and self._context is not None:
            self._check_items(node, items, what)
        if items is None or body is None or item is None:
            return None
        return Each(items, body, item, parallel, may_fail, texts.get("failed"), collect)

    def _field(self, node: Node, what: str) -> str | None:
        """Return the name of a field of the context, if there is such a one."""
        name = self._checks.text(node, what)
        known = () if self._context is None else fields_of(self._context)
        if name is not None and self._context is not None and name not in known:
            text = f"{what} is {described(node)}, and `{shown(self._context)}` has no such field"
            self._checks.error(node.place, text, did_you_mean(name, set(known) - {*_ENGINES, "seed_data"}))
        return name

    def _may_fail(self, table: Table, what: str) -> int | str:
        node = table.entries.get("may-fail")
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, str) and value.endswith("%") and value[:-1].replace(".", "", 1).isdigit():
            return value
        if isinstance(node, Scalar) and isinstance(value, str):
            text = f"`may-fail` of {what} is {described(node)}, which is neither a number nor a share"
            self._checks.error(node.place, text, "write a whole number of items, as 3, or a share of them, as 10%")
            return 0
        return self._checks.number_at(table, "may-fail", what, 0) or 0

    def _collect(self, table: Table, what: str) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for name, place, source in self._checks.table_at(table, "collect", what) or ():
            inner = self._field(source, f"`{name}` in `collect` of {what}")
            if self._field(Scalar(place, name, name), f"`collect` of {what}") and inner:
                found[name] = inner
        return found

    # What each field is for.

    def _check_uses(
        self, table: Table, texts: Mapping[str, str], collect: Mapping[str, str], parallel: int, what: str
    ) -> None:
        """Note a field that is two things at once, so that one would be lost in the other, or that cannot be set."""
        lists = table.entries.get("collect")
        keys = lists.keys if isinstance(lists, Table) else {}
        places = {key: table.entries[key].place for key in texts}
        if "for-each" in texts and "as" in texts:
            told: set[tuple[str, str]] = set()
            for i, name in enumerate(("", *collect)):  # one list more each time, so that it is known whose fault it is
                some = {key: collect[key] for key in list(collect)[:i]}
                faults = field_faults(texts["for-each"], texts["as"], texts.get("failed"), some)
                for option, fault in [one for one in faults if one not in told]:
                    told.add((option, fault))
                    place = keys[name] if option == "collect" else places[option]
                    self._checks.error(place, f"{_whose(option, what)}: {fault}")
        filled = [*((key, texts[key], places[key]) for key in ("as", "failed") if key in texts)]
        for option, name, place in (*filled, *(("collect", name, keys[name]) for name in collect)):
            if self._only_read(name):
                text = f"{_whose(option, what)} is `{name}`, which can only be read"
                self._checks.error(place, text, "take another field")
        for name, source in collect.items():
            if parallel and source == texts.get("for-each"):
                text = f"`{name}` in `collect` of {what} is `{source}`, which an item of its own has not"
                self._checks.error(keys[name], text, "name a field that an item makes")

    def _check_items(self, node: Node, items: str, what: str) -> None:
        """Note a field of items that is annotated as what has no items to go through in order."""
        annotation = resolved(self._context).get(items, Any)
        if not any(map(_may_be_list, alternatives(annotation))):
            text = f"{what} is `{items}`, which is no list: it is annotated as `{shown(annotation)}`"
            self._checks.error(node.place, text, "name a field with a list, a tuple, or another Sequence")

    def _only_read(self, name: str) -> bool:
        member = None if self._context is None or name in _ENGINES else member_of(self._context, name)
        return isinstance(member, property) and member.fset is None


def _may_be_list(annotation: Any) -> bool:
    """Whether something that is annotated so can be what a for-each goes through."""
    cls = get_origin(unwrapped(annotation)) or unwrapped(annotation)
    if cls is Any or not isinstance(cls, type) or is_protocol(cls):
        return True
    return not issubclass(cls, str | bytes) and (issubclass(cls, Sequence) or issubclass(list, cls))


def _whose(option: str, what: str) -> str:
    return what if option == "for-each" else f"`{option}` of {what}"
