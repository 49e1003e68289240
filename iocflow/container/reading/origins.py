"""Where the value that a placeholder stands for comes from, for the mistakes that come to light where it is used."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from iocflow.container.reading.outside import Outside
from iocflow.container.reading.placeholders import Placeholder, PlaceholderError, Template, parse_template
from iocflow.wiring import Node, Place, Scalar, Table

__all__ = ["Origins"]


class Origins:
    """Tells what stands behind placeholders; it is asked only when there is a mistake."""

    def __init__(self, values: Table, given: Collection[str], outside: Outside) -> None:
        """Take the merged values, the dotted keys of those that the caller gave, and the environment."""
        self._values = values
        self._given = given
        self._outside = outside

    def of(self, template: Template, place: Place) -> tuple[tuple[Place, str], ...]:
        """Return where the values of a template that stands at `place` come from, each with a sentence."""
        return tuple(dict.fromkeys(self._of(template, place, ())))

    def _of(self, template: Template, place: Place, path: tuple[Place, ...]) -> Iterator[tuple[Place, str]]:
        for part in template:
            if isinstance(part, Placeholder) and part.kind != "here":
                yield from self._placeholder(part, place, path)

    def _placeholder(self, one: Placeholder, place: Place, path: tuple[Place, ...]) -> Iterator[tuple[Place, str]]:
        if one.kind == "value":
            found = self._value(one.name)
            if found is not None:
                yield from self._defined(*found, path)
                return
        elif one.kind == "env" and self._outside.variable(one.name) is not None:
            yield place, f"`{one.name}` is taken from the environment"
            return
        elif one.kind == "secret" and self._outside.has_secret(one.name):
            yield place, f"the secret `{one.name}` is taken from the environment or its file"
            return
        yield from self._of(one.default or (), place, path)

    def _value(self, name: str) -> tuple[str, Place, Node] | None:
        """Return the key, its place and the value that `name` leads to, or to what stands for the rest of it."""
        node: Node = self._values
        place, key = node.place, ""
        for part in name.split("."):
            if isinstance(node, Scalar) and key:
                break
            if not isinstance(node, Table) or part not in node.entries:
                return None
            place, node, key = node.keys[part], node.entries[part], f"{key}.{part}" if key else part
        return key, place, node

    def _defined(self, key: str, place: Place, node: Node, path: tuple[Place, ...]) -> Iterator[tuple[Place, str]]:
        if key in self._given:
            yield place, f"`{key}` is given by `--set` or `values=`, in place of what stands here"
            return
        yield place, f"`{key}` is defined here"
        if isinstance(node, Scalar) and isinstance(node.value, str) and "${" in node.value and node.place not in path:
            try:
                template = parse_template(node.value)
            except PlaceholderError:  # which is noted at the value itself
                return
            yield from self._of(template, node.place, (*path, node.place))
