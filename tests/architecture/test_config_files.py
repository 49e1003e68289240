"""The container files of the project."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from iocflow.container import check, load

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path.relative_to(ROOT) for path in (ROOT / "config").glob("*.yaml"))


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a copy of the folders that container files refer to, so that `var/` is made there."""
    for folder in ("config", "samples"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)


def test_there_are_files() -> None:
    """The folder config/ holds container files; without any, the tests below would prove nothing."""
    assert FILES


@pytest.mark.usefixtures("copy")
@pytest.mark.parametrize("file", FILES, ids=str)
def test_file_in_config_loads(file: Path) -> None:
    """Every file in config/ passes all checks without a warning, is built with all its processors, and closes."""
    assert check(file).mistakes == ()
    with load(file) as app:
        assert app.processors
