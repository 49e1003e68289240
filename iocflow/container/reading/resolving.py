"""Placeholders replaced in the nodes of a document, after parsing, so that no value ever changes its structure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from operator import is_

from iocflow.container.nodes import Size, Unresolved, clipped, is_unresolved, size_of
from iocflow.container.reading.origins import Origins
from iocflow.container.reading.outside import Outside
from iocflow.container.reading.placeholders import (
    Placeholder,
    PlaceholderError,
    Template,
    parse_template,
)
from iocflow.container.reading.yaml_nodes import MAX_ALIASED, MAX_DEPTH
from iocflow.wiring import Findings, Listing, Node, Place, Scalar, Table, did_you_mean

__all__ = ["MAX_TEXT", "Resolver", "key_paths"]

MAX_TEXT = 1_000_000
"""The longest text, in characters, that placeholders may add up to."""
_MAX_OPEN = 100  # nodes, six calls each: far from the interpreter's own limit of 1,000 calls


class Resolver:
    """Replaces the placeholders of one document."""

    def __init__(
        self,
        values: Table,
        folders: Mapping[str, str],
        outside: Outside,
        origins: Origins,
        findings: Findings,
        absent: Findings,
    ) -> None:
        """Take what placeholders stand for.

        Args:
            values: The merged `values:`.
            folders: The absolute folder of each file, for `${here}`.
            outside: The environment and the secrets.
            origins: Tell where the values come from.
            findings: Takes the mistakes.
            absent: Takes those about values that no file defines.
        """
        self._values = values
        self._folders = folders
        self._outside = outside
        self._origins = origins
        self._findings = findings
        self._absent = absent
        # by the id of a node before; each entry holds what keeps that id from being used again
        self._templates: dict[str, Template] = {}
        self._done: dict[int, tuple[Node, Node]] = {}
        self._open: dict[int, str] = {}  # the values that are being replaced, and their keys, outermost first
        self._sizes: dict[int, tuple[Node, Size]] = {}
        self._repeated = 0

    def resolve_values(self) -> None:
        """Replace the placeholders of every value, so that the mistakes of unused ones are noted too."""
        for key, _, node in self._values:
            self._resolved(node, key)

    def resolve(self, node: Node) -> Node:
        """Return `node`, no part of the values, with its placeholders replaced; the same one when it has none.

        What cannot be had is noted, and `Unresolved` in its place.
        """
        if isinstance(node, Scalar):
            return self._scalar(node) if _has_placeholder(node) else node
        resolve = self.resolve
        if isinstance(node, Listing):
            return _with_items(node, [resolve(item) for item in node.items])
        return _with_entries(node, [resolve(child) for child in node.entries.values()])

    def _resolved(self, node: Node, key: str) -> Node:
        """Return the value `key`, which is `node`, with its placeholders replaced."""
        if isinstance(node, Scalar) and not _has_placeholder(node):
            return node
        done = self._done.get(id(node))
        if done:
            return done[1]
        self._open[id(node)] = key
        if isinstance(node, Scalar):
            after = self._scalar(node)
        elif isinstance(node, Listing):
            after = _with_items(node, [self._resolved(item, f"{key}[{at}]") for at, item in enumerate(node.items)])
        else:
            after = _with_entries(node, [self._resolved(child, f"{key}.{name}") for name, _, child in node])
        del self._open[id(node)]
        self._done[id(node)] = (node, after)
        return after

    def _scalar(self, node: Scalar) -> Node:
        """Return what a scalar with a placeholder becomes: it keeps its own place, and the text of the file."""
        template = self._template(node)
        found = None if template is None else self._filled(template, node.place)
        if found is None or is_unresolved(found):
            return Scalar(node.place, Unresolved(node.text), node.text, node.tag)
        self._findings.origins[node.place] = partial(self._origins.of, template or (), node.place)
        if not isinstance(found, Scalar):
            return self._as_collection(node, found)
        if node.tag and not isinstance(found.value, str):
            self._findings.error(node.place, f"`!{node.tag} {clipped(node.text)}` stands for no text", "name a text")
            return Scalar(node.place, Unresolved(node.text), node.text, node.tag)
        return Scalar(node.place, found.value, node.text, node.tag, _as_written(found))

    def _as_collection(self, node: Scalar, found: Listing | Table) -> Node:
        """Return the collection that `node` stands for alone, unless such ones grow without measure."""
        size = size_of(found, self._sizes)
        before, self._repeated = self._repeated, self._repeated + size.nodes
        if node.tag:
            self._findings.error(node.place, f"`!{node.tag} {clipped(node.text)}` stands for no text", "name a text")
        elif size.height >= MAX_DEPTH:
            self._findings.error(node.place, f"`{clipped(node.text)}` is nested more than {MAX_DEPTH} deep")
        elif self._repeated <= MAX_ALIASED:
            return replace(found, place=node.place)
        elif before <= MAX_ALIASED:  # said once, not for each of perhaps thousands
            self._findings.error(node.place, f"placeholders repeat more than {MAX_ALIASED:,} nodes, from here on")
        return Scalar(node.place, Unresolved(node.text), node.text)

    def _template(self, node: Scalar) -> Template | None:
        text = str(node.value)
        template = self._templates.get(text)
        if template is None:
            try:
                template = self._templates[text] = parse_template(text)
            except PlaceholderError as error:
                self._filled(error.before, node.place)  # whose mistakes are told as well
                self._findings.error(node.place, str(error), error.remedy)
        return template

    def _filled(self, template: Template, place: Place) -> Node | None:
        """Return what a template stands for: the very node when it is one placeholder, else a text; None: noted."""
        if len(template) == 1 and isinstance(template[0], Placeholder):
            return self._found(template[0], place)
        texts = [part if isinstance(part, str) else self._quoted(part, place) for part in template]
        whole = [text for text in texts if text is not None]
        if len(whole) < len(texts):
            return None
        if sum(map(len, whole)) > MAX_TEXT:
            self._findings.error(place, f"placeholders add up to more than {MAX_TEXT:,} characters")
            return None
        return Scalar(place, "".join(whole), "")

    def _quoted(self, placeholder: Placeholder, place: Place) -> str | None:
        """Return how a longer text quotes the placeholder; None: noted."""
        found = self._found(placeholder, place)
        if found is None or is_unresolved(found):
            return None
        if isinstance(found, Scalar):
            return _as_written(found)
        kind = "a list" if isinstance(found, Listing) else "a mapping"
        remedy = "let it stand alone"
        if isinstance(found, Table) and found.entries:
            remedy += f", or name a part of it: `${{{placeholder.name}.{next(iter(found.entries))}}}`"
        self._findings.error(place, f"`{clipped(placeholder.text)}` is {kind}, which cannot be part of a text", remedy)
        return None

    def _found(self, placeholder: Placeholder, place: Place) -> Node | None:
        """Return what the placeholder stands for; None: noted."""
        name = placeholder.name
        if placeholder.kind == "here":
            return Scalar(place, self._folders[place.file], "")
        if placeholder.kind == "value":
            return self._value(placeholder, place)
        secret = placeholder.kind == "secret"
        text = self._outside.secret(name, place) if secret else self._outside.variable(name)
        if text is not None:
            return Scalar(place, text, "")
        if placeholder.default is None:
            (self._outside.missing_secret if secret else self._outside.missing_variable)(name, place)
            return None
        found = self._default(placeholder.default, place)
        if secret and isinstance(found, Scalar):
            self._outside.keep(name, _as_written(found), place)
        return found

    def _default(self, default: Template, place: Place) -> Node | None:
        return self._filled(default, place) if default else Scalar(place, "", "")

    def _value(self, placeholder: Placeholder, place: Place) -> Node | None:
        """Return the value of that key, else the default; None: noted."""
        node: Node = self._values
        path = ""
        replaced = False  # what came through a placeholder is replaced already, and its `${` are literal ones
        for part in placeholder.name.split("."):
            if isinstance(node, Scalar) and _has_placeholder(node) and not replaced:
                node, replaced = self._closed(node, path, place), True
            if is_unresolved(node):
                return node
            if not isinstance(node, Table) or part not in node.entries:
                return self._undefined(placeholder, place)
            node = node.entries[part]
            path = f"{path}.{part}" if path else part
        return node if replaced else self._closed(node, path, place)

    def _closed(self, node: Node, key: str, place: Place) -> Node:
        """Return the value `key` replaced, unless that is what is being done already."""
        if id(node) not in self._open:
            if len(self._open) < _MAX_OPEN:
                return self._resolved(node, key)
            self._findings.error(
                place, f"values refer to each other too deep, at `{key}`", "give it a value of its own"
            )
        else:
            keys = list(self._open.values())
            circle = " -> ".join([*keys[list(self._open).index(id(node)) :], key])
            self._findings.error(place, f"values refer to each other in a circle: {circle}", "give one of them a value")
        return Scalar(place, Unresolved(), "")

    def _undefined(self, placeholder: Placeholder, place: Place) -> Node | None:
        if placeholder.default is not None:
            return self._default(placeholder.default, place)
        name = placeholder.name
        remedy = did_you_mean(name, self._keys) if self._keys else f"define it: `values: {{{name}: …}}`"
        self._absent.error(place, f"undefined value `{name}`", remedy)
        return None

    @cached_property
    def _keys(self) -> list[str]:
        return list(key_paths(self._values))


def _with_items(node: Listing, items: list[Node]) -> Listing:
    return node if all(map(is_, items, node.items)) else Listing(node.place, tuple(items), node.tag)


def _with_entries(node: Table, children: list[Node]) -> Table:
    if all(map(is_, children, node.entries.values())):
        return node
    return Table(node.place, dict(zip(node.entries, children, strict=True)), node.keys, node.tag)


def key_paths(values: Table, prefix: str = "") -> Iterator[str]:
    """Yield every key of nested `values`, as placeholders name them: `smtp`, `smtp.host`."""
    for key, _, node in values:
        yield f"{prefix}{key}"
        if isinstance(node, Table):
            yield from key_paths(node, f"{prefix}{key}.")


def _as_written(node: Scalar) -> str:
    return "" if node.value is None else node.written


def _has_placeholder(node: Scalar) -> bool:
    # not in a subclass of str, which is `Unresolved`
    return type(node.value) is str and "${" in node.value
