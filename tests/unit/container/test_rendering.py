"""Mistakes as people read them: sorted, each with its line and a caret, and counted."""

from __future__ import annotations

import pytest

from iocflow.container.rendering import in_order, render
from iocflow.wiring import Mistake, Place


def at(line: int, column: int, file: str = "a.yaml") -> Place:
    return Place(file, line, column)


def test_the_whole_picture() -> None:
    """Sorted by file and line, with excerpts, related places, warnings and a count."""
    sources = {
        "a.yaml": ["iocflow: 1", "beans:", "  x: {clas: .X}", "  y: 1"],
        "b.yaml": ["iocflow: 1", "beans: {x: 1}"],
    }
    mistakes = [
        Mistake(at(2, 9, "b.yaml"), "id `x` is defined twice", "rename one", ((at(3, 3), "first here"),)),
        Mistake(at(4, 3), "bean `y` is not used", warning=True),
        Mistake(at(3, 7), "unknown key `clas`", "did you mean `class`?"),
        Mistake(at(9, 1), "beyond the end"),
        Mistake(at(1, 1, "gone.yaml"), "`gone.yaml` does not exist"),
    ]
    assert (
        render(mistakes, sources)
        == """\
a.yaml:3:7: unknown key `clas`; did you mean `class`?
     3 |   x: {clas: .X}
       |       ^
a.yaml:4:3: warning: bean `y` is not used
     4 |   y: 1
       |   ^
a.yaml:9:1: beyond the end
b.yaml:2:9: id `x` is defined twice; rename one
     2 | beans: {x: 1}
       |         ^
    a.yaml:3:3: first here
         3 |   x: {clas: .X}
           |   ^
gone.yaml:1:1: `gone.yaml` does not exist
4 mistakes, 1 warning"""
    )


@pytest.mark.parametrize(
    ("mistakes", "count"),
    [
        ([Mistake(at(1, 1), "a")], "1 mistake"),
        ([Mistake(at(1, 1), "a", warning=True)], "1 warning"),
        ([Mistake(at(1, 1), "a", warning=True), Mistake(at(1, 2), "a", warning=True)], "2 warnings"),
        ([Mistake(at(1, 1), "a"), Mistake(at(1, 1), "a")], "1 mistake"),
    ],
)
def test_counts(mistakes: list[Mistake], count: str) -> None:
    """The last line counts; what was noted twice counts once."""
    assert render(mistakes, {}).splitlines()[-1] == count


def test_nothing() -> None:
    """Without mistakes there is nothing to say."""
    assert render([], {}) == ""


def test_order() -> None:
    """By file, line and column, numbers as numbers; errors before warnings at one place."""
    places = [at(10, 1), at(9, 2), at(9, 1), at(1, 1, "b.yaml")]
    mistakes = [Mistake(place, "x") for place in places] + [Mistake(at(9, 1), "a", warning=True)]
    assert [(str(mistake.place), mistake.warning) for mistake in in_order(mistakes)] == [
        ("a.yaml:9:1", False),
        ("a.yaml:9:1", True),
        ("a.yaml:9:2", False),
        ("a.yaml:10:1", False),
        ("b.yaml:1:1", False),
    ]


@pytest.mark.parametrize(
    ("line", "column", "shown", "caret"),
    [
        ("a: b", 4, "a: b", 3),
        ("\ta: b", 5, " a: b", 4),
        ("名前: 値", 5, "名前: 値", 6),
        ("e\u0301: x", 5, "e\u0301: x", 3),
        ("a: b", 5, "a: b", 4),
        ("a: \x1b[31m", 4, "a: \\x1b[31m", 3),
        ("a: \u202eb", 5, "a: \\u202eb", 9),
        ("x" * 500, 1, "x" * 120 + "…", 0),
        ("x" * 500, 401, "…" + "x" * 180, 81),
        ("x" * 500, 500, "…" + "x" * 81, 81),
    ],
)
def test_carets(line: str, column: int, shown: str, caret: int) -> None:
    """The caret stands under its character: beside wide and combining ones, tabs, and in long lines."""
    text = render([Mistake(at(1, column), "here")], {"a.yaml": [line]}).splitlines()
    assert text[1:3] == [f"     1 | {shown}", f"       | {' ' * caret}^"]


def test_a_terminal_obeys_nothing_in_a_message() -> None:
    """Escape sequences and line breaks from a file arrive as text."""
    mistake = Mistake(at(1, 1), "unknown `\x1b[2J\nok\u2066`", "\x07", ((at(2, 1), "\x9b"),))
    assert (
        render([mistake], {}) == "a.yaml:1:1: unknown `\\x1b[2J\\nok\\u2066`; \\x07\n    a.yaml:2:1: \\x9b\n1 mistake"
    )


def test_colours() -> None:
    """Colours are added on request and change nothing else."""
    mistakes = [Mistake(at(1, 1), "a", "b"), Mistake(at(1, 1), "c", warning=True)]
    painted = render(mistakes, {"a.yaml": ["x"]}, colour=True)
    assert "\033[1;31ma\033[0m" in painted
    assert "\033[1;33mwarning: c\033[0m" in painted
    for code in ("\033[1;31m", "\033[1;33m", "\033[36m", "\033[1;32m", "\033[0m"):
        painted = painted.replace(code, "")
    assert painted == render(mistakes, {"a.yaml": ["x"]})
