"""A file that is no YAML gets a sentence of its own, at the place to look at."""

from __future__ import annotations

import pytest
import yaml

from iocflow.container.reading.files import lines_of
from iocflow.container.reading.syntax import explain
from iocflow.container.reading.yaml_nodes import parse
from iocflow.wiring import Findings

PLACEHOLDER = 'not YAML: a `${…}` that must be quoted, as it stands inside `{}` or `[]` or holds `: `; write "${…}"'
COMMA = "not YAML: a `,` or the closing `}` is missing; close the `{`, or quote a value that holds `{}[],:`"
BRACKET = "not YAML: a `,` or the closing `]` is missing; close the `[`, or quote a value that holds `{}[],:`"
COLON = "not YAML: a `: ` where none can be; quote a value with `: `; check the indentation"
MISFIT = "not YAML: this does not fit what stands before it; check the indentation and the quotes"
DIRECTIVE = "an unknown directive: a line that begins with `%`; leave it out, or quote what begins with `%`"
NOTHING = "not YAML: something is missing here; close what is open; quote a text that begins with one of `{}[],`"

CASES = [
    ("a: {db: ${db}}", f"f:1:9: {PLACEHOLDER}"),
    ("a: {x: 1, db: ${db}, y: 2}", f"f:1:15: {PLACEHOLDER}"),
    ("a: [${db}]", f"f:1:5: {PLACEHOLDER}"),
    ("a:\n  [x,\n   y-${db}]", f"f:3:6: {PLACEHOLDER}"),
    ("a: {x: '${ok}', y: ${a:b}/c}", f"f:1:20: {PLACEHOLDER}"),
    ("a: ${b: c}", f"f:1:4: {PLACEHOLDER}"),
    ("a: {x: '${ok}' y: z}", f"f:1:16: {COMMA} [f:1:4: begins here]"),
    ("a: {b: c", f"f:1:4: {COMMA}"),
    ("a: {b: c\nd: e\n", f"f:2:2: {COMMA} [f:1:4: begins here]"),
    ("a: [b, c\n\n", f"f:1:4: {BRACKET}"),
    ("a: [b", f"f:1:4: {BRACKET}"),
    ("x: [", f"f:1:4: {NOTHING}"),
    ("a: ]", f"f:1:4: {NOTHING}"),
    ("a: b: c", f"f:1:5: {COLON}"),
    ("a: 1\n b: 2", f"f:2:3: {COLON}"),
    ("a:\n  b: 1\n c: 2", f"f:3:2: {MISFIT}"),
    ('a: "x" y', f"f:1:8: {MISFIT}"),
    ("a: {b: c}}", f"f:1:10: {MISFIT}"),
    ("a: 'x", "f:1:4: not YAML: a quoted text is not closed; close the quote"),
    ('a: "x\nb: 2', "f:1:4: not YAML: a quoted text is not closed; close the quote"),
    ('a: "\\q"', "f:1:5: not YAML: an unknown escape in double quotes; write `\\\\`, or use single quotes"),
    ("\ta: 1", "f:1:1: not YAML: a tab in the indentation; indent with spaces"),
    ("a:\n\tb: 1", "f:2:1: not YAML: a tab in the indentation; indent with spaces"),
    ("a:\n  - x\n\t- y", "f:3:1: not YAML: a tab in the indentation; indent with spaces"),
    ("a: @x", "f:1:4: not YAML: a value cannot begin with `@`; quote it"),
    ("a: `x`", "f:1:4: not YAML: a value cannot begin with ```; quote it"),
    ("a: %x", "f:1:4: not YAML: a value cannot begin with `%`; quote it"),
    ("a: * ", "f:1:4: not YAML: `*` or `&` without a name; quote a text that begins with it"),
    (
        "a: 1\n...\nb: 2",
        "f:3:1: not YAML: the document ended before this; a file holds one mapping; check the indentation",
    ),
    ("- a\nb: 1", "f:2:1: not YAML: an entry of the list without `- `; write `- ` before it; check the indentation"),
    ("a: - b", "f:1:4: not YAML: a list beside its key; begin the list on the next line, or use `[]`"),
    ("a: 1\nb\n", "f:2:1: not YAML: a key without `:`; write `key: value`"),
    ("a: !x!y z", "f:1:4: not YAML: a tag with two `!`; there are four: `!ref`, `!new`, `!provider`, `!type`"),
    ("%YAML 3.0\n---\na: 1", "f:1:1: not YAML: `%YAML` of another version than 1.1 or 1.2; leave the line out"),
    ("%YAML x\n---\na: 1", "f:1:7: not YAML: `%YAML` without a version; leave the line out"),
    ("%A\na: 1", f"f:1:3: not YAML: {DIRECTIVE}"),
    ("a: " + "[" * 2000, "f:1:1003: not YAML: nested too deep; split it into definitions with ids"),
]


@pytest.mark.parametrize(("text", "message"), CASES)
def test_messages(text: str, message: str) -> None:
    """Each way of not being YAML has its sentence, place and remedy."""
    findings = Findings()
    assert parse(text, "f", lines_of(text), findings) is None
    (mistake,) = findings.mistakes
    assert f"{mistake}{''.join(f' [{place}: {what}]' for place, what in mistake.related)}" == message


@pytest.mark.parametrize("text", [text for text, _ in CASES if len(text) < 1000])
def test_the_parser_without_libyaml(text: str) -> None:
    """PyYAML's own parser, where libyaml is missing, leads to a sentence too."""
    with pytest.raises(yaml.YAMLError) as caught:
        list(yaml.parse(text, yaml.SafeLoader))
    mistake = explain(caught.value, "f", lines_of(text))
    assert mistake.what.startswith("not YAML: ")
    assert mistake.remedy
