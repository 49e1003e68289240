"""What is wrong with a file that is not YAML, in words of its own and with the likely remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence

import yaml

from iocflow.wiring import Mistake, Place

__all__ = ["explain"]

_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|' r"'(?:''|[^'])*'")
# part of the parser's sentence (libyaml's, or that of PyYAML's own parser): what it means; what to write instead
_MEANINGS = (
    ("',' or '}'", "a `,` or the closing `}` is missing", "close the `{`, or quote a value that holds `{}[],:`"),
    ("',' or ']'", "a `,` or the closing `]` is missing", "close the `[`, or quote a value that holds `{}[],:`"),
    ("mapping values are not allowed", "a `: ` where none can be", "quote a value with `: `; check the indentation"),
    ("sequence entries are not allowed", "a list beside its key", "begin the list on the next line, or use `[]`"),
    ("expected ':'", "a key without `:`", "write `key: value`"),
    ("unexpected end of stream", "a quoted text is not closed", "close the quote"),
    ("unknown escape", "an unknown escape in double quotes", "write `\\\\`, or use single quotes"),
    ("alphabetic or numeric", "`*` or `&` without a name", "quote a text that begins with it"),
    ("maximum nesting", "nested too deep", "split it into definitions with ids"),
    ("violates indentation", "a tab in the indentation", "indent with spaces"),
    ("'-' indicator", "an entry of the list without `- `", "write `- ` before it; check the indentation"),
    ("expected key", "this does not fit what stands before it", "check the indentation and the quotes"),
    ("block end", "this does not fit what stands before it", "check the indentation and the quotes"),
    ("node content", "something is missing here", "close what is open; quote a text that begins with one of `{}[],`"),
    ("incompatible YAML", "`%YAML` of another version than 1.1 or 1.2", "leave the line out"),
    ("directive", "an unknown directive: a line that begins with `%`", "leave it out, or quote what begins with `%`"),
    ("version number", "`%YAML` without a version", "leave the line out"),
    ("tag handle", "a tag with two `!`", "there are four: `!ref`, `!new`, `!provider`, `!type`"),
    ("document start", "the document ended before this", "a file holds one mapping; check the indentation"),
)


def explain(error: yaml.YAMLError, file: str, lines: Sequence[str]) -> Mistake:
    """Return what the parser's `error` means for the `lines` of `file`."""
    problem = getattr(error, "problem", None) or str(error)
    mark, opened = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    line, column = (mark.line, mark.column) if mark else (0, 0)
    text = lines[line] if line < len(lines) else ""
    placeholder = _unquoted_placeholder(text, column)
    if placeholder is not None:
        what = "not YAML: a `${…}` that must be quoted, as it stands inside `{}` or `[]` or holds `: `"
        return Mistake(Place(file, line + 1, placeholder + 1), what, 'write "${…}"')
    if "cannot start any token" in problem:
        what, remedy = _bad_start(text, column)
    else:
        unknown = (problem, "check the quotes and the indentation")
        what, remedy = next((meaning[1:] for meaning in _MEANINGS if meaning[0] in problem), unknown)
    begin = Place(file, opened.line + 1, opened.column + 1) if opened else None
    if line + 1 >= len(lines) and not text[column:].strip():  # the end of the file is no place to look at
        place = begin if begin and "clos" in what else _last_character(file, lines)
        return Mistake(place, f"not YAML: {what}", remedy)
    place = Place(file, line + 1, column + 1)
    related = ((begin, "begins here"),) if begin and "clos" in what else ()
    return Mistake(place, f"not YAML: {what}", remedy, related)


def _last_character(file: str, lines: Sequence[str]) -> Place:
    line = max((at for at, text in enumerate(lines) if text.strip()), default=0)
    return Place(file, line + 1, max(len(lines[line].rstrip()), 1))


def _bad_start(text: str, column: int) -> tuple[str, str]:
    if "\t" in text[: column + 1]:
        return "a tab in the indentation", "indent with spaces"
    return f"a value cannot begin with `{text[column : column + 1]}`", "quote it"


def _unquoted_placeholder(text: str, column: int) -> int | None:
    """Return where the unquoted `${` begins that holds the parser's place, or ends at it."""
    bare = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)
    start = bare.rfind("${", 0, column + 1)
    return None if start < 0 or "}" in bare[start:column] else start
