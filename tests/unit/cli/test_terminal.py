"""What is written where."""

from __future__ import annotations

import json

import pytest

from iocflow.cli.terminal import Terminal, described, table


def test_table_aligns_columns() -> None:
    """Columns are as wide as their widest cell, and no line ends in blanks."""
    assert table([("a", "DONE", ""), ("long-name", "X", "3")]) == ["  a          DONE", "  long-name  X     3"]
    assert table([]) == []


def test_results_and_complaints_are_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """Results go to standard output, complaints to standard error, both masked, neither coloured without a terminal."""
    terminal = Terminal()
    terminal.mask = lambda text: text.replace("secret", "***")
    terminal.write(terminal.styled("the secret", "red"))
    terminal.complain("no secret")
    written = capsys.readouterr()
    assert written.out == "the ***\n"
    assert written.err == "iocflow: no ***\n"


def test_complaints_cannot_forge_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """A complaint is one line whatever is in it; one without a head keeps its lines, and no terminal codes."""
    terminal = Terminal()
    terminal.complain("ConnectionError: x\niocflow: forged \x1b[2J")
    terminal.complain("first\nsecond \x1b[2J", head="")
    assert capsys.readouterr().err == "iocflow: ConnectionError: x\\niocflow: forged \\x1b[2J\nfirst\nsecond \\x1b[2J\n"


def test_json_is_masked_and_stays_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Secrets are taken out of the texts before they become JSON, so quotes in a secret do no harm."""
    terminal = Terminal()
    terminal.mask = lambda text: text.replace('p"w', "***")
    terminal.write_json({"error": 'with p"w', "steps": [{"n": 1, "x": None}]})
    assert json.loads(capsys.readouterr().out) == {"error": "with ***", "steps": [{"n": 1, "x": None}]}


def test_errors_are_described_with_all_their_parts() -> None:
    """Notes and the errors of a group are part of the description, so that none has to be guessed."""
    first = ValueError("one")
    first.add_note("in branch crm")
    group = ExceptionGroup("2 of the branches failed", [first, ConnectionError("two")])
    assert described(group) == (
        "ExceptionGroup: 2 of the branches failed (2 sub-exceptions);"
        " ValueError: one; in branch crm; ConnectionError: two"
    )
