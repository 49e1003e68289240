"""YAML text as nodes that know their place; nothing in a file is ever constructed."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any, cast

import yaml

from iocflow.container.syntax import explain
from iocflow.wiring import Findings, Listing, Mistake, Node, Place, Scalar, Table

__all__ = ["MAX_ALIASED", "MAX_DEPTH", "Unresolved", "is_unresolved", "parse", "plain_value", "shown"]

MAX_DEPTH = 64
"""How deep mappings and lists may be nested; a processor with three blocks in each other needs 12."""
MAX_ALIASED = 100_000
"""How many nodes a file with anchors may have, each alias counted in full; beyond it, it was made to explode."""

_PLAIN = "plain"
_SCALAR_TAGS = frozenset({"ref", "provider", "type"})
_FOUR_TAGS = "there are four: `!ref id`, `!new {class: …}`, `!provider id`, `!type package.Class`"
_CORE = "tag:yaml.org,2002:"

_LETTERS = frozenset(string.ascii_letters)  # a scalar that begins with one is a text or one of the words
_NUMERIC = frozenset("0123456789+-.")
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,299})")
_BASED_INT = re.compile(r"0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}


class Unresolved(str):
    """In `Scalar.value`: the value cannot be had and the mistake is noted; later checks pass over such a scalar."""

    __slots__ = ()


def is_unresolved(node: Node) -> bool:
    """Return whether a mistake is noted for `node` already, so that nothing more can be said of it."""
    return isinstance(node, Scalar) and isinstance(node.value, Unresolved)


def plain_value(text: str) -> str | int | float | bool | None:
    """Return what an unquoted scalar stands for by the core schema of YAML 1.2.

    Narrower in one point: what begins with a needless `0` (`010`, a postal code) stays text, as do numbers of more than
    300 digits.
    """
    if text[:1] not in _NUMERIC:
        return cast("str | bool | None", _WORDS.get(text, text))
    if _INT.fullmatch(text):
        return int(text)
    if _BASED_INT.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text) and not text.lstrip("+-").isdigit():
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def shown(text: str, *, length: int = 60) -> str:
    """Return `text` as a message quotes it: one line, cut after `length` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Composes nodes; the tag that it gives an untagged scalar tells whether it is plain or quoted."""

    def resolve(self, kind: type, value: Any, implicit: Any) -> str:  # noqa: ARG002 - PyYAML calls it so
        """Resolve nothing; `plain_value` does, by the rules of YAML 1.2."""
        return _PLAIN if kind is yaml.ScalarNode and implicit[0] else ""

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        """Do nothing; PyYAML's resolvers by path are not used."""

    def ascend_resolver(self) -> None:
        """Do nothing."""


def parse(text: str, file: str, lines: Sequence[str], findings: Findings) -> Table | None:
    """Return the one mapping that `text` holds, or note why there is none.

    Args:
        text: The text of the file.
        file: Its name in places.
        lines: Its lines.
        findings: Takes the mistakes.
    """
    top = Place(file, 1, 1)
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
    except yaml.YAMLError as error:
        findings.mistakes.append(explain(error, file, lines))
        return None
    except RecursionError:  # PyYAML's own parser, where libyaml is missing
        findings.error(top, "not YAML: nested too deep", "split it into definitions with ids")
        return None
    finally:
        loader.dispose()
    if root is None:
        findings.error(top, "the file is empty", "a container file begins with `iocflow: 1`")
        return None
    if "&" in text and not _aliases_are_sound(root, file, findings):
        return None
    node = _Reader(file, findings).read(root)
    if isinstance(node, Table) and not node.tag:
        return node
    if not is_unresolved(node):
        findings.error(node.place, "a container file is one mapping", "it begins with `iocflow: 1`")
    return None


def _aliases_are_sound(root: yaml.Node, file: str, findings: Findings) -> bool:
    """Return whether walking the nodes comes to an end, and soon, although aliases make some of them stand often."""
    sizes: dict[int, tuple[int, int]] = {}  # nodes and depth of each collection, by its id
    open_nodes: set[int] = set()

    def measure(raw: yaml.Node) -> tuple[int, int] | Mistake:
        if type(raw) is yaml.ScalarNode:
            return 1, 0
        key = id(raw)
        if key in sizes:
            return sizes[key]
        place = Place(file, raw.start_mark.line + 1, raw.start_mark.column + 1)
        if key in open_nodes:
            return Mistake(place, "an alias inside of what it stands for", "a definition cannot hold itself")
        open_nodes.add(key)
        size, height = 1, 0
        for part in raw.value if type(raw) is yaml.SequenceNode else [node for pair in raw.value for node in pair]:
            measured = measure(part)
            if isinstance(measured, Mistake):
                return measured
            size, height = size + measured[0], max(height, measured[1] + 1)
        if size > MAX_ALIASED or height > MAX_DEPTH:
            what = f"aliases make this more than {MAX_ALIASED:,} nodes, or more than {MAX_DEPTH} deep"
            return Mistake(place, what, "use `parent:` and ids instead")
        open_nodes.discard(key)
        sizes[key] = size, height
        return size, height

    measured = measure(root)
    if isinstance(measured, Mistake):
        findings.mistakes.append(measured)
        return False
    return True


class _Reader:
    """Turns the composed nodes of one file into ours."""

    def __init__(self, file: str, findings: Findings) -> None:
        self._file = file
        self._findings = findings

    def read(self, raw: yaml.Node, depth: int = 0) -> Node:
        """Return `raw`, which stands `depth` deep, as our node."""
        mark = raw.start_mark
        place = Place(self._file, mark.line + 1, mark.column + 1)
        tag, value = raw.tag, raw.value
        if type(raw) is yaml.ScalarNode:
            if tag == _PLAIN:
                text = value[:1] in _LETTERS and value not in _WORDS
                return Scalar(place, value if text else plain_value(value), value)
            return self._tagged(raw, place) if tag else Scalar(place, value, value)
        if depth >= MAX_DEPTH:
            return self._refused(place, f"nested more than {MAX_DEPTH} deep", "split it into definitions with ids")
        if type(raw) is yaml.MappingNode:
            return self._table(raw, place, depth + 1)
        listing = Listing(place, tuple([self.read(item, depth + 1) for item in value]))
        return Scalar(place, Unresolved(), "") if tag and not self._takes(raw, place, "a list") else listing

    def _tagged(self, raw: yaml.Node, place: Place) -> Scalar:
        text: str = raw.value
        tag = self._tag(raw, place)
        if tag is None:
            return Scalar(place, Unresolved(text), text)
        if tag == "new":
            return self._refused(place, "`!new` takes a mapping", "write `!new {class: …}`")
        if not text.strip():
            return self._refused(place, f"`!{tag}` without a name", f"write `!{tag} {_example(tag)}`")
        return Scalar(place, text, text, tag)

    def _table(self, raw: yaml.Node, place: Place, depth: int) -> Node:
        file, read = self._file, self.read
        entries: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        for raw_key, raw_value in raw.value:
            mark = raw_key.start_mark
            key_place = Place(file, mark.line + 1, mark.column + 1)
            node = read(raw_value, depth)
            key = raw_key.value
            if raw_key.tag != _PLAIN or key[:1] not in _LETTERS or key in _WORDS or "$" in key:
                key = self._key(raw_key, key_place)
            if key in keys:
                related = ((keys[key], "first here"),)
                self._findings.error(key_place, f"key `{shown(key)}` stands twice", "remove one", related=related)
            elif key is not None:
                keys[key] = key_place
                entries[key] = node
        if raw.tag and not self._takes(raw, place, "a mapping"):
            return Scalar(place, Unresolved(), "")
        return Table(place, entries, keys, "new" if raw.tag else "")

    def _key(self, raw: yaml.Node, place: Place) -> str | None:
        """Return the text of a key that is not obviously one, or note why it cannot be."""
        text = raw.value
        if type(raw) is not yaml.ScalarNode:
            self._findings.error(
                place, "a key is a text, not a list or mapping", "quote a text that begins with `{` or `[`"
            )
        elif raw.tag not in ("", _PLAIN):
            self._findings.error(place, f"a tag before the key `{shown(text)}`", "tags stand before values")
        elif raw.tag == _PLAIN and text == "<<":
            self._findings.error(place, "merge keys `<<` are not part of the format", "use `parent:` of a bean")
        elif raw.tag == _PLAIN and not isinstance(plain_value(text), str):
            self._findings.error(place, f"the key `{text}` is no text", f'quote it: `"{text}"`')
        elif "${" in text:
            self._findings.error(place, f"a placeholder in the key `{shown(text)}`", "placeholders stand in values")
        else:
            return str(text)
        return None

    def _takes(self, raw: yaml.Node, place: Place, kind: str) -> bool:
        """Return whether the tag of the collection `raw` fits it, else note it."""
        tag = self._tag(raw, place)
        if tag == "new" and kind != "a mapping":
            self._findings.error(place, "`!new` takes a mapping", "write `!new {class: …}`")
        elif tag in _SCALAR_TAGS:
            self._findings.error(place, f"`!{tag}` takes a name, not {kind}", f"write `!{tag} {_example(tag)}`")
        return tag == "new" and kind == "a mapping"

    def _tag(self, raw: yaml.Node, place: Place) -> str | None:
        """Return which of the four tags `raw` has, or note that it has another one."""
        tag: str = raw.tag
        if tag[1:] in _SCALAR_TAGS or tag == "!new":
            return tag[1:]
        written = f"!!{tag[len(_CORE) :]}" if tag.startswith(_CORE) else tag
        self._findings.error(place, f"unknown tag `{shown(written)}`", _FOUR_TAGS)
        return None

    def _refused(self, place: Place, what: str, remedy: str) -> Scalar:
        self._findings.error(place, what, remedy)
        return Scalar(place, Unresolved(), "")


def _example(tag: str) -> str:
    return "package.Class" if tag == "type" else "id"
