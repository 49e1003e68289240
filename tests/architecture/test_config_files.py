"""The container files of the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iocflow.container import check

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "config").glob("*.yaml"))


def test_there_are_files() -> None:
    """The folder config/ holds container files; without any, the tests below would prove nothing."""
    assert FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_file_in_config_has_no_mistake(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file in config/ passes all checks, without a warning, from the root of the project."""
    monkeypatch.chdir(ROOT)
    assert os.fspath(file)
    assert check(file.relative_to(ROOT)).mistakes == ()
