"""The grammar of placeholders: `${key}`, `${key:default}`, `${env:NAME}`, `${secret:NAME}`, `${here}`, `$${`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from iocflow.container.nodes import clipped
from iocflow.errors import IocflowError

__all__ = ["Placeholder", "PlaceholderError", "Template", "parse_template"]

_TOKEN = re.compile(r"\$\$\{|\$\{|\}")
_HEAD = re.compile(r"(?:(env|secret):)?(\w[\w.-]*)(?=[:}])")
Kind = Literal["value", "env", "secret", "here"]
_KINDS: dict[str, Kind] = {"": "value", "env": "env", "secret": "secret"}
_NAMED = {"env": "an environment variable", "secret": "a secret"}
_LITERAL = "a literal `${` is written `$${`"


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One placeholder.

    Attributes:
        kind: Where its value comes from.
        name: The key, with dots for nested ones; the name of the environment variable or secret; empty for `here`.
        default: What stands for it when there is no value, None without one.
        text: The placeholder as the file writes it.
    """

    kind: Kind
    name: str
    default: Template | None
    text: str


Template = tuple["str | Placeholder", ...]


class PlaceholderError(IocflowError):
    """A text holds `${` but no placeholder.

    Attributes:
        remedy: What to write instead.
        before: What stands before it in the text.
    """

    before: Template = ()

    def __init__(self, what: str, remedy: str) -> None:
        """Take the two halves of the message."""
        super().__init__(what)
        self.remedy = remedy


def parse_template(text: str) -> Template:
    """Return the literal parts and placeholders of `text`.

    Raises:
        PlaceholderError: A placeholder is not closed, is none, or is nested more than once.
    """
    return _parts(text, 0, 0, 0)[0]


def _parts(text: str, position: int, depth: int, opened: int) -> tuple[Template, int]:
    """Return the parts of `text` from `position` on, and where they end.

    Within a default (`depth` over 0) that is after the `}` of the placeholder which is `opened`.
    """
    parts: list[str | Placeholder] = []
    literal = ""
    begin = position
    while token := _TOKEN.search(text, position):
        literal += text[position : token.start()]
        position = token.end()
        if token[0] == "${":
            try:
                placeholder, position = _placeholder(text, token.start(), depth)
            except PlaceholderError as error:
                error.before = tuple(parts)
                raise
            parts += [literal, placeholder] if literal else [placeholder]
            literal = ""
        elif token[0] == "}" and depth:
            break
        elif depth:
            raise PlaceholderError(f"`$${{` in the default `{clipped(text[begin:])}`", "name a value that holds it")
        else:
            literal += "}" if token[0] == "}" else "${"
    else:
        if depth:
            raise _unclosed(text[opened:])
        literal += text[position:]
    if depth and "{" in literal:
        raise PlaceholderError(f"a `{{` in the default `{clipped(text[begin:])}`", "name a value that holds it")
    return (*parts, literal) if literal else tuple(parts), position


def _placeholder(text: str, start: int, depth: int) -> tuple[Placeholder, int]:
    """Return the placeholder whose `${` is at `start`, and the position after its `}`."""
    if depth > 1:
        raise PlaceholderError(f"`{clipped(text)}` nests placeholders more than once", "name a value for the inner one")
    close = text.find("}", start)
    if close < 0:
        raise _unclosed(text[start:])
    head = _HEAD.match(text, start + 2)
    if not head:
        written = clipped(text[start : close + 1])
        raise PlaceholderError(f"`{written}` is no placeholder", f"write `${{key}}` or `${{key:default}}`; {_LITERAL}")
    kind, name = _KINDS[head[1] or ""], head[2]
    if kind == "value" and name in _NAMED:
        given = text[head.end() + 1 : close].partition(":")[0] if text[head.end()] == ":" else ""
        what = f"`{clipped(given)}` is no name of {_NAMED[name]}" if given else f"`${{{name}}}` without a name"
        remedy = f"write `${{{name}:NAME}}`" + (", of letters, digits, `_`, `-` and `.`" if given else "")
        raise PlaceholderError(what, remedy)
    default: Template | None = None
    end = head.end() + 1
    if text[head.end()] == ":":
        default, end = _parts(text, end, depth + 1, start)
    written = text[start:end]
    if kind == "value" and name == "here":
        if default is not None:
            raise PlaceholderError(f"`{clipped(written)}` needs no default", "write `${here}`")
        return Placeholder("here", "", None, written), end
    return Placeholder(kind, name, default, written), end


def _unclosed(text: str) -> PlaceholderError:
    return PlaceholderError(f"`{clipped(text)}` is not closed", f"end it with `}}`; {_LITERAL}")
