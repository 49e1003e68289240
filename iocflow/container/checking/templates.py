"""What a bean has from its `parent`."""

from __future__ import annotations

from iocflow.container.checking.checks import Checks
from iocflow.container.checking.headers import MAKERS
from iocflow.container.nodes import is_table
from iocflow.container.reading.values import overlaid
from iocflow.wiring import Node, Place, Table, did_you_mean

__all__ = ["Templates"]

_MERGED = ("args", "set")
_OWN = ("parent", "abstract")


class Templates:
    """Lays each bean over its parent: `args` and `set` are merged, tables in them too; other keys are replaced."""

    def __init__(self, beans: Table, checks: Checks) -> None:
        """Take the section `beans`.

        In `parents` come those that are one, in `circular` those that are their own, and in `orphans` those whose
        parent, or a parent of that, cannot be had.
        """
        self._beans = beans
        self._checks = checks
        self._merged: dict[str, Table] = {}
        self.circular: set[str] = set()
        self.orphans: set[str] = set()
        self.parents: set[str] = set()

    def merged(self, id: str) -> Table:
        """Return the bean's table with all that it inherits; a parent that cannot be had is noted."""
        return self._laid(id, ())

    def _laid(self, id: str, below: tuple[str, ...]) -> Table:
        own = self._beans.entries[id]
        assert isinstance(own, Table)  # the caller reads only those that are
        if id not in self._merged:
            parent = self._parent(id, own, (*below, id))
            self._merged[id] = own if parent is None else _overlaid(self._laid(parent, (*below, id)), own)
            if parent in self.orphans or (parent is None and "parent" in own.entries):
                self.orphans.add(id)
        return self._merged[id]

    def _parent(self, id: str, own: Table, path: tuple[str, ...]) -> str | None:
        parent = self._checks.text_at(own, "parent", f"bean `{id}`")
        if parent is None:
            return None
        place = own.entries["parent"].place
        if not isinstance(self._beans.entries.get(parent), Table):
            others = [one for one in self._beans.entries if one != id]
            what = f"`parent` of bean `{id}` is `{parent}`, which is no bean"
            if self._checks.document.complete:
                self._checks.error(place, what, did_you_mean(parent, others))
            return None
        if parent in path:
            self._circle(place, path[path.index(parent) :], parent)
            return None
        self.parents.add(parent)
        return parent

    def _circle(self, place: Place, circle: tuple[str, ...], parent: str) -> None:
        if not self.circular & set(circle):
            self._checks.error(
                place,
                f"beans are each other's parent: {' -> '.join((*circle, parent))}",
                "let one of them stand without `parent`",
                related=[(self._beans.keys[one], f"`{one}` is defined here") for one in circle],
            )
        self.circular |= set(circle)


def _overlaid(parent: Table, own: Table) -> Table:
    replaced = {*_OWN, *(MAKERS if any(maker in own.entries for maker in MAKERS) else ())}
    entries: dict[str, Node] = {key: node for key, node in parent.entries.items() if key not in replaced}
    keys = {key: parent.keys[key] for key in entries}
    for key, place, node in own:
        inherited = entries.get(key)
        if key in _MERGED and is_table(inherited) and is_table(node):
            node = overlaid(inherited, node)  # noqa: PLW2901 - what is put at the key
        entries[key], keys[key] = node, place
    return Table(own.place, entries, keys, own.tag)
