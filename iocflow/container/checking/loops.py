"""A for-each: its field of items, its body, and the fields that it fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from iocflow.container.checking.beans import Beans
from iocflow.container.checking.checks import Checks
from iocflow.container.checking.description import Each, Rule, Step
from iocflow.container.inspecting.annotations import fields_of, member_of, shown
from iocflow.container.nodes import described
from iocflow.wiring import Node, Place, Scalar, Table, did_you_mean

__all__ = ["Loops"]

_LACKS = {
    "as": "write `as: FIELD`, the field that holds the item",
    "do": "write `do: ACTIVITY`, what runs for each",
}
_ENGINES = {"step", "stopped", "stop_reason", "next_activity"}
"""The fields of every context in which the engine and a run speak to each other."""


class _Use(NamedTuple):
    """A field with what it is to the for-each: `key` in words, and whether it is filled."""

    key: str
    name: str
    place: Place
    filled: bool = True


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
        """Note a field that is two things at once, so that one would be lost in the other, or that cannot be filled."""
        uses = [_Use(f"`{key}`", name, table.entries[key].place, key != "for-each") for key, name in texts.items()]
        lists = table.entries.get("collect")
        if isinstance(lists, Table):
            uses += [_Use("`collect`", name, lists.keys[name]) for name in collect]
            # an item that has a fork of its own may make there what the list is called here
            whole = {texts.get("for-each"), *(() if parallel else (*collect, texts.get("failed")))}
            for name, source in collect.items():
                if source in whole:
                    text = f"`{name}` in `collect` of {what} is `{source}`, which is a list of all items"
                    self._checks.error(lists.entries[name].place, text, "name a field that an item makes")
        first: dict[str, _Use] = {}
        for use in uses:
            other = first.setdefault(use.name, use)
            whose = what if use.key == "`for-each`" else f"{use.key} of {what}"
            if other is not use:
                text = f"{whose} is `{use.name}`, which is its {other.key} too"
                self._checks.error(
                    use.place, text, "take a field for each", related=[(other.place, f"{other.key} stands here")]
                )
            elif use.name in _ENGINES:
                self._checks.error(use.place, f"{whose} is `{use.name}`, which the engine sets", "take another field")
            elif use.filled and self._only_read(use.name):
                self._checks.error(use.place, f"{whose} is `{use.name}`, which can only be read", "take another field")

    def _only_read(self, name: str) -> bool:
        member = None if self._context is None else member_of(self._context, name)
        return isinstance(member, property) and member.fset is None
