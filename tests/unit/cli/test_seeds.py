"""What `--seed` accepts, and what it says about the rest."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from iocflow.cli.command import UsageError
from iocflow.cli.seeds import read_seed


def test_seed_is_json() -> None:
    """JSON of any kind is a seed; without the option there is none."""
    assert read_seed('{"id": 12, "drop": 30.28}') == {"id": 12, "drop": 30.28}
    assert read_seed('"BWI"') == "BWI"
    assert read_seed(None) is None


def test_seed_from_a_file(tmp_path: Path) -> None:
    """`@FILE` reads the file as UTF-8, with or without a byte order mark."""
    file = tmp_path / "seed.json"
    file.write_text('{"name": "王小明"}', encoding="utf-8-sig")
    assert read_seed(f"@{file}") == {"name": "王小明"}


def test_seed_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """`@-` reads standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"[1, 2]")))
    assert read_seed("@-") == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": 1,\n  "x" 2}', "--seed:2:7: Expecting ':' delimiter"),
        ("", "--seed:1:1: Expecting value"),
        ("{'id': 1}", "--seed:1:2: Expecting property name enclosed in double quotes"),
        ("NaN", "NaN is no JSON"),
        ('{"x": [-1e999]}', "--seed: -1e999 is too large for a number; write it as a string"),
        ("[" * 100_000, "nested too deeply"),
        *(("[" * deep + "]" * deep, "nested too deeply; 100 levels") for deep in (101, 490, 960)),
        ("[1, " + "9" * 5000 + "]", "--seed: it has a number of thousands of digits; write it as a string"),
        ("@nowhere.json", "--seed @nowhere.json: No such file or directory"),
        ("@.", "Is a directory"),
        ("null", "--seed: null is no seed; leave --seed out to run without one"),
    ],
)
def test_bad_seed_is_wrong_use(text: str, message: str) -> None:
    """What is no JSON, or cannot be read, is refused with its place."""
    with pytest.raises(UsageError) as refused:
        read_seed(text)
    assert message in str(refused.value)


def test_bad_seed_file_is_named_with_the_place(tmp_path: Path) -> None:
    """A mistake in a seed file is reported as FILE:line:column; bytes that are no text are told by their position."""
    file = tmp_path / "seed.json"
    file.write_text('{\n  "id": 12,,\n}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"seed\.json:2:12: "):
        read_seed(f"@{file}")
    file.write_text(f'{{"id": {"9" * 5000}}}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"seed\.json: it has a number of thousands of digits"):
        read_seed(f"@{file}")
    file.write_bytes(b'{"name": "J\xf6rg"}')
    with pytest.raises(UsageError, match="byte 11 is not UTF-8"):
        read_seed(f"@{file}")
