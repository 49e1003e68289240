"""YAML text as nodes that know their place; nothing in a file is ever constructed."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from typing import Any, cast

import yaml
from yaml.events import AliasEvent, MappingEndEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent, StreamEndEvent

from iocflow.container.nodes import Size, Unresolved, clipped, is_table, is_unresolved, size_of
from iocflow.container.reading.syntax import explain
from iocflow.errors import IocflowError
from iocflow.wiring import Findings, Listing, Mistake, Node, Place, Scalar, Table

__all__ = ["MAX_ALIASED", "MAX_DEPTH", "parse", "plain_value"]

MAX_DEPTH = 64
"""How deep mappings and lists may be nested; a processor with three blocks in each other needs 12."""
MAX_ALIASED = 100_000
"""How many nodes a file with aliases may have, each alias counted in full; beyond it, it was made to explode."""

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


def parse(text: str, file: str, lines: Sequence[str], findings: Findings) -> Table | None:
    """Return the one mapping that `text` holds, or note why there is none.

    Args:
        text: The text of the file.
        file: Its name in places.
        lines: Its lines.
        findings: Takes the mistakes.
    """
    # events instead of composed nodes: a third less time, and an alias knows its place
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        root = _Reader(loader.get_event, file, findings).document()
    except yaml.YAMLError as error:
        findings.mistakes.append(explain(error, file, lines))
        return None
    except _UnreadableError as error:
        findings.mistakes.append(error.mistake)
        return None
    finally:
        loader.dispose()
    if root is None or (isinstance(root, Scalar) and root.text == ""):
        findings.error(Place(file, 1, 1), "the file is empty", "a container file begins with `iocflow: 1`")
    elif is_table(root):
        return root
    elif not is_unresolved(root):
        findings.error(root.place, "a container file is one mapping", "it begins with `iocflow: 1`")
    return None


class _UnreadableError(IocflowError):
    """The file has a mistake after which nothing more of it can be understood."""

    def __init__(self, place: Place, what: str, remedy: str, related: tuple[tuple[Place, str], ...] = ()) -> None:
        super().__init__(what)
        self.mistake = Mistake(place, what, remedy, related)


class _Reader:
    """Turns the events of one file into nodes."""

    def __init__(self, get_event: Callable[[], Any], file: str, findings: Findings) -> None:
        self._next = get_event
        self._file = file
        self._findings = findings
        self._anchors: dict[str, tuple[Place, Node | None]] = {}  # what is still being read has no node yet
        self._sizes: dict[int, tuple[Node, Size]] = {}
        self._repeated = 0

    def document(self) -> Node | None:
        """Return the root of the one document; None when there is none."""
        self._next()  # the start of the stream
        if type(self._next()) is StreamEndEvent:
            return None
        root = self.read(self._next(), 0)
        self._next()  # the end of the document
        event = self._next()
        if type(event) is not StreamEndEvent:
            raise _UnreadableError(
                self._place(event), "a second document begins here", "a file holds one; remove the `---`"
            )
        return root

    def read(self, event: Any, depth: int) -> Node:
        """Return the node that begins with `event` and stands `depth` deep."""
        mark, kind = event.start_mark, type(event)
        place = Place(self._file, mark.line + 1, mark.column + 1)
        if kind is AliasEvent:
            return self._aliased(event.anchor, place, depth)
        if event.anchor:
            self._anchored(event.anchor, place)
        if kind is ScalarEvent:
            node = self._scalar(event, place)
        elif depth >= MAX_DEPTH:
            raise _UnreadableError(place, f"nested more than {MAX_DEPTH} deep", "split it into definitions with ids")
        else:
            node = (self._listing if kind is SequenceStartEvent else self._table)(event, place, depth + 1)
        if event.anchor:
            self._anchors[event.anchor] = place, node
        return node

    def _scalar(self, event: Any, place: Place) -> Node:
        text: str = event.value
        if event.tag is not None:
            return self._tagged(event, place)
        if not event.implicit[0] or (text[:1] in _LETTERS and text not in _WORDS):
            return Scalar(place, text, text)
        return Scalar(place, plain_value(text), text)

    def _tagged(self, event: Any, place: Place) -> Scalar:
        text: str = event.value
        tag = self._tag(event, place)
        if tag is None:
            return Scalar(place, Unresolved(text), text)
        if tag == "new":
            return self._refused(place, "`!new` takes a mapping", "write `!new {class: …}`")
        if not text.strip():
            return self._refused(place, f"`!{tag}` without a name", f"write `!{tag} {_example(tag)}`")
        return Scalar(place, text, text, tag)

    def _listing(self, start: Any, place: Place, depth: int) -> Node:
        following, read = self._next, self.read
        items = []
        while type(event := following()) is not SequenceEndEvent:
            items.append(read(event, depth))
        if start.tag and not self._takes(start, place, "a list"):
            return Scalar(place, Unresolved(), "")
        return Listing(place, tuple(items))

    def _table(self, start: Any, place: Place, depth: int) -> Node:
        file, following, read = self._file, self._next, self.read
        entries: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        while type(event := following()) is not MappingEndEvent:
            mark = event.start_mark
            key_place = Place(file, mark.line + 1, mark.column + 1)
            key = self._key(event, key_place, depth)
            node = read(following(), depth)
            if key in keys:
                related = ((keys[key], "first here"),)
                self._findings.error(key_place, f"key `{clipped(key)}` stands twice", "remove one", related=related)
            elif key is not None:
                keys[key] = key_place
                entries[key] = node
        if start.tag and not self._takes(start, place, "a mapping"):
            return Scalar(place, Unresolved(), "")
        return Table(place, entries, keys, "new" if start.tag else "")

    def _key(self, event: Any, place: Place, depth: int) -> str | None:
        """Return the text of a key, or note why it cannot be one."""
        if type(event) is not ScalarEvent:
            self.read(event, depth)  # which goes over it
            remedy = "quote a text that begins with `{`, `[` or `*`"
            self._findings.error(place, "a key is a text, not a list, mapping or alias", remedy)
            return None
        text: str = event.value
        plain = event.tag is None and event.implicit[0]
        if plain and text[:1] in _LETTERS and text not in _WORDS and "$" not in text:
            return text  # nearly all of them
        if event.tag is not None:
            self._findings.error(place, f"a tag before the key `{clipped(text)}`", "tags stand before values")
        elif plain and text == "<<":
            self._findings.error(place, "merge keys `<<` are not part of the format", "use `parent:` of a bean")
        elif plain and not isinstance(plain_value(text), str):
            self._findings.error(place, f"the key `{text}` is no text", f'quote it: `"{text}"`')
        elif "${" in text:
            self._findings.error(place, f"a placeholder in the key `{clipped(text)}`", "placeholders stand in values")
        else:
            return text
        return None

    def _anchored(self, name: str, place: Place) -> None:
        if name in self._anchors:
            related = ((self._anchors[name][0], "first here"),)
            raise _UnreadableError(
                place, f"the anchor `&{name}` stands twice", "give each one a name of its own", related
            )
        self._anchors[name] = place, None

    def _aliased(self, name: str, place: Place, depth: int) -> Node:
        """Return what an alias stands for; later checks walk it as often as it stands, so that is bounded."""
        if name not in self._anchors:
            remedy = f"define it before as `&{name}`; quote a text that begins with `*`"
            raise _UnreadableError(place, f"the alias `*{name}` stands for nothing", remedy)
        defined, node = self._anchors[name]
        if node is None:
            related = ((defined, "what it stands for"),)
            raise _UnreadableError(place, f"the alias `*{name}` stands inside of itself", "write it out", related)
        size = size_of(node, self._sizes)
        self._repeated += size.nodes
        if self._repeated > MAX_ALIASED:
            what = f"aliases make this more than {MAX_ALIASED:,} nodes"
            raise _UnreadableError(place, what, "use `parent:` and ids instead")
        if depth + size.height > MAX_DEPTH:
            what = f"aliases nest this more than {MAX_DEPTH} deep"
            raise _UnreadableError(place, what, "use `parent:` and ids instead")
        return node

    def _takes(self, start: Any, place: Place, kind: str) -> bool:
        """Return whether the tag of the collection fits it, else note it."""
        tag = self._tag(start, place)
        if tag == "new" and kind != "a mapping":
            self._findings.error(place, "`!new` takes a mapping", "write `!new {class: …}`")
        elif tag in _SCALAR_TAGS:
            self._findings.error(place, f"`!{tag}` takes a name, not {kind}", f"write `!{tag} {_example(tag)}`")
        return tag == "new" and kind == "a mapping"

    def _tag(self, event: Any, place: Place) -> str | None:
        """Return which of the four tags the node has, or note that it has another one."""
        tag: str = event.tag
        if tag[1:] in _SCALAR_TAGS or tag == "!new":
            return tag[1:]
        written = f"!!{tag[len(_CORE) :]}" if tag.startswith(_CORE) else tag
        self._findings.error(place, f"unknown tag `{clipped(written)}`", _FOUR_TAGS)
        return None

    def _refused(self, place: Place, what: str, remedy: str) -> Scalar:
        self._findings.error(place, what, remedy)
        return Scalar(place, Unresolved(), "")

    def _place(self, event: Any) -> Place:
        return Place(self._file, event.start_mark.line + 1, event.start_mark.column + 1)


def _example(tag: str) -> str:
    return "package.Class" if tag == "type" else "id"
