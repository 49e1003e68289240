"""YAML text becomes nodes: scalars by YAML 1.2, places of keys and values, four tags, and no surprises."""

from __future__ import annotations

import math
import time

import pytest

from iocflow.container.nodes import Unresolved, clipped, is_unresolved
from iocflow.container.reading.files import lines_of
from iocflow.container.reading.yaml_nodes import MAX_DEPTH, parse, plain_value
from iocflow.wiring import Findings, Listing, Place, Scalar, Table


def parsed(text: str) -> tuple[Table | None, list[str]]:
    findings = Findings()
    return parse(text, "f", lines_of(text), findings), [
        f"{mistake}{''.join(f' [{place}: {what}]' for place, what in mistake.related)}" for mistake in findings.mistakes
    ]


TEXTS = ["on", "No", "yes", "off", "y", "010", "-010", "1_000", "12:30", "0b1", "00.5", "1.2.3", "-", "+", ".", "0x"]
TEXTS += ["0o8", "e5", "tRUE", "nul", "2027-01-01", "=", "5m", "--1", "1e", "\u0663", "1.5.2", "0x1G", "+0x1", ".e5"]
TEXTS += ["inf", "nan", "1,5", "1e5x", "9" * 301, "0x" + "f" * 301]


@pytest.mark.parametrize("text", TEXTS)
def test_texts(text: str) -> None:
    """What YAML 1.1 would turn into flags, octal or sexagesimal numbers and dates stays text."""
    assert plain_value(text) == text


CORE: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{"0": 0, "-0": 0, "+5": 5, "12": 12, "0x1F": 31, "0o17": 15, "-12": -12},
    **{"1.5": 1.5, "1.": 1.0, ".5": 0.5, "-.5": -0.5, "1e3": 1000.0, "1E-3": 0.001, "0.10": 0.1, "1e999": math.inf},
    **{".inf": math.inf, "-.INF": -math.inf, "+.Inf": math.inf},
}


@pytest.mark.parametrize(("text", "value"), CORE.items())
def test_core_schema(text: str, value: object) -> None:
    """Null, flags, integers and floats are those of YAML 1.2's core schema, with their types."""
    found = plain_value(text)
    assert found == value
    assert type(found) is type(value)


def test_not_a_number() -> None:
    """`.nan` is a float."""
    assert math.isnan(float(str(plain_value(".NaN"))))


def test_quoted_scalars_are_text() -> None:
    """Quotes and block scalars make text of what would be a number or flag."""
    table, mistakes = parsed("a: '5'\nb: \"true\"\nc: |\n  12\nd: >-\n  null\n")
    assert table
    assert mistakes == []
    assert [node.value for _, _, node in table if isinstance(node, Scalar)] == ["5", "true", "12\n", "null"]


def test_places() -> None:
    """Keys and values know line and column, counted from 1 in characters; a tagged value begins at its tag."""
    table, mistakes = parsed("ü: {ß: 1, k: !ref x}\nlist:\n  - a\n  -   b\n")
    assert mistakes == []
    assert table
    assert table.place == Place("f", 1, 1)
    inner = table.entries["ü"]
    assert isinstance(inner, Table)
    assert (inner.place, inner.keys["k"]) == (Place("f", 1, 4), Place("f", 1, 11))
    assert inner.entries["k"].place == Place("f", 1, 14)
    items = table.entries["list"]
    assert isinstance(items, Listing)
    assert [item.place for item in items.items] == [Place("f", 3, 5), Place("f", 4, 7)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85", "\u2028"])
def test_line_breaks(end: str) -> None:
    """Lines are counted as YAML counts them, so that a message shows the line it means."""
    text = f"a: 1{end}b: 2\n"
    table, _ = parsed(text)
    assert lines_of(text) == ["a: 1", "b: 2", ""]
    if table:  # a break of YAML 1.1 only is part of the text by libyaml's rules of plain scalars
        assert all(place.line <= len(lines_of(text)) for place in table.keys.values())


def test_the_four_tags() -> None:
    """Each tag is kept with its node; a tagged scalar is text."""
    table, mistakes = parsed("a: !ref 5\nb: !provider x\nc: !type p.C\nd: !new {class: .X}\n")
    assert mistakes == []
    assert table
    assert [node.tag for _, _, node in table] == ["ref", "provider", "type", "new"]
    assert isinstance(table.entries["a"], Scalar)
    assert table.entries["a"].value == "5"


FOUR = "there are four: `!ref id`, `!new {class: …}`, `!provider id`, `!type package.Class`"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: !refs x", f"f:1:4: unknown tag `!refs`; {FOUR}"),
        ("a: !!python/object/apply:os.system [ls]", f"f:1:4: unknown tag `!!python/object/apply:os.system`; {FOUR}"),
        ("a: !!str x", f"f:1:4: unknown tag `!!str`; {FOUR}"),
        ("a: !ref {x: y}", "f:1:4: `!ref` takes a name, not a mapping; write `!ref id`"),
        ("a: !type [x]", "f:1:4: `!type` takes a name, not a list; write `!type package.Class`"),
        ("a: !new x", "f:1:4: `!new` takes a mapping; write `!new {class: …}`"),
        ("a: !new [x]", "f:1:4: `!new` takes a mapping; write `!new {class: …}`"),
        ("a: !provider", "f:1:4: `!provider` without a name; write `!provider id`"),
        ("!ref a: x", "f:1:1: a tag before the key `a`; tags stand before values"),
        ("a: 1\nb: 2\na: 3", "f:3:1: key `a` stands twice; remove one [f:1:1: first here]"),
        ("1: x", 'f:1:1: the key `1` is no text; quote it: `"1"`'),
        ("true: x", 'f:1:1: the key `true` is no text; quote it: `"true"`'),
        (
            "? [a]\n: b",
            "f:1:3: a key is a text, not a list, mapping or alias; quote a text that begins with `{`, `[` or `*`",
        ),
        (
            "a: {{ x }}",
            "f:1:5: a key is a text, not a list, mapping or alias; quote a text that begins with `{`, `[` or `*`",
        ),
        ("<<: {a: b}", "f:1:1: merge keys `<<` are not part of the format; use `parent:` of a bean"),
        ("${a}: x", "f:1:1: a placeholder in the key `${a}`; placeholders stand in values"),
        ("a: &x [*x]", "f:1:8: the alias `*x` stands inside of itself; write it out [f:1:4: what it stands for]"),
        (
            "a: *b",
            "f:1:4: the alias `*b` stands for nothing; define it before as `&b`; quote a text that begins with `*`",
        ),
        (
            "*b : c",
            "f:1:1: the alias `*b` stands for nothing; define it before as `&b`; quote a text that begins with `*`",
        ),
        (
            "a: &x 1\nb: &x 2",
            "f:2:4: the anchor `&x` stands twice; give each one a name of its own [f:1:4: first here]",
        ),
        ("a: 1\n---\nb: 2", "f:2:1: a second document begins here; a file holds one; remove the `---`"),
        ("a: ! x", f"f:1:4: unknown tag `!`; {FOUR}"),
        ("---\n", "f:1:1: the file is empty; a container file begins with `iocflow: 1`"),
        ("", "f:1:1: the file is empty; a container file begins with `iocflow: 1`"),
        ("# only a comment", "f:1:1: the file is empty; a container file begins with `iocflow: 1`"),
        ("[a]", "f:1:1: a container file is one mapping; it begins with `iocflow: 1`"),
        ("text", "f:1:1: a container file is one mapping; it begins with `iocflow: 1`"),
        ("!new {a: b}", "f:1:1: a container file is one mapping; it begins with `iocflow: 1`"),
        ("a: " + "[" * 65 + "]" * 65, "f:1:67: nested more than 64 deep; split it into definitions with ids"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    """Each mistake of structure has its own message."""
    assert parsed(text)[1] == [message]


def test_all_mistakes_are_found() -> None:
    """A refused node does not hide the mistakes in and after it."""
    _, mistakes = parsed("a: !new [!foo x, {1: y}]\nb: !bar {c: !ref }\n")
    assert [mistake.split(": ", 1)[1].split(";")[0] for mistake in mistakes] == [
        "unknown tag `!foo`",
        "the key `1` is no text",
        "`!new` takes a mapping",
        "`!ref` without a name",
        "unknown tag `!bar`",
    ]


def test_what_is_refused_is_unresolved() -> None:
    """A refused value is there as `Unresolved`, so that later checks neither miss nor misread it."""
    table, _ = parsed("a: !foo x\nb: !ref {}\nc: x")
    assert table
    assert [is_unresolved(node) for _, _, node in table] == [True, True, False]
    assert isinstance(Unresolved("x"), str)


def test_aliases() -> None:
    """An alias is what its anchor is."""
    table, mistakes = parsed("a: &x {k: [1]}\nb: *x\nc: &y text\nd: *y\n")
    assert mistakes == []
    assert table
    assert table.entries["a"].place == table.entries["b"].place
    assert isinstance(table.entries["d"], Scalar)
    assert table.entries["d"].value == "text"


def test_exploding_aliases_are_refused_at_once() -> None:
    """A billion laughs are refused by counting, without walking them."""
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40)]
    began = time.monotonic()
    table, mistakes = parsed("\n".join(levels))
    assert time.monotonic() - began < 2
    assert table is None
    assert mistakes == ["f:6:10: aliases make this more than 100,000 nodes; use `parent:` and ids instead"]


def test_aliases_cannot_nest_deeper_than_text() -> None:
    """Aliases of aliases count towards the depth, on which later checks recur."""
    half = MAX_DEPTH // 2 + 2
    _, mistakes = parsed(f"a: &a {'[' * half}{']' * half}\nb: {'[' * half}*a{']' * half}\n")
    assert mistakes == [f"f:2:{4 + half}: aliases nest this more than 64 deep; use `parent:` and ids instead"]


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "{? [", "a: &x\n "])
def test_deep_files_do_not_crash(opening: str) -> None:
    """A file of 100,000 openings is a mistake, not a crash of the interpreter."""
    table, mistakes = parsed(opening * 100_000)
    assert table is None
    assert len(mistakes) == 1


@pytest.mark.parametrize(
    ("text", "quoted"), [("a", "a"), ("a\n  b\t c", "a b c"), ("x" * 61, "x" * 59 + "…"), ("x" * 60, "x" * 60)]
)
def test_shown(text: str, quoted: str) -> None:
    """A message quotes a text in one short line."""
    assert clipped(text) == quoted
