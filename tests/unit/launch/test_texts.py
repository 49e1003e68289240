"""Texts from data that are logged or printed."""

from __future__ import annotations

import json

import pytest

from iocflow.launch.texts import error_text, json_line, printable

CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0x202E, 0x2066, 0xD800)]


@pytest.mark.parametrize("control", CONTROLS)
def test_control_characters_are_escaped(control: str) -> None:
    """Nothing that ends a line, moves a cursor or turns the direction of writing gets through, in text and in JSON."""
    shown = printable(f"a{control}b")
    assert shown.isprintable()
    assert shown.startswith("a\\")
    line = json_line({"a": control})
    assert len(line.splitlines()) == 1
    assert all(one.isprintable() or one in "\u202e\u2066\ud800" for one in line)
    assert json.loads(line) == {"a": control}


@pytest.mark.parametrize("text", ["", "no route to host", "王小明, 10 €", "C:\\new"])
def test_other_texts_are_left_alone(text: str) -> None:
    """What can be printed is printed as it is."""
    assert printable(text) == text
    assert json.loads(json_line(text)) == text


def test_errors_by_type_and_message() -> None:
    """An error is named with its message, or alone; one whose message cannot be made does no harm."""

    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert error_text(SystemExit(3)) == "SystemExit: 3"
    assert error_text(KeyboardInterrupt()) == "KeyboardInterrupt"
    assert error_text(BrokenError()).endswith("BrokenError: <BrokenError, whose text cannot be made>")
