"""Loading container files of the classes that the checks are tested with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from iocflow.container import App, check, load
from tests.unit.container import parts

HEAD = "iocflow: 1\npackage: tests.unit.container.parts\n"


@pytest.fixture(autouse=True)
def built() -> list[str]:
    """Return the list of what was constructed, opened and closed, empty at first."""
    parts.BUILT.clear()
    return parts.BUILT


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Return a function that writes a container file, with the format and package before its text."""
    monkeypatch.chdir(tmp_path)

    def write(body: str) -> Path:
        path = Path("app.yaml")
        path.write_text(HEAD + dedent(body).lstrip("\n"), encoding="utf-8")
        return path

    return write


@pytest.fixture
def loaded(write: Callable[[str], Path]) -> Callable[..., App]:
    """Return a function that loads a container file of that text, of which `check` finds no mistake."""

    def loaded(body: str, **options: Any) -> App:
        path = write(body)
        before = list(parts.BUILT)
        found = check(path, **options)
        assert not found.failed, found.rendered()
        assert before == parts.BUILT, "checking constructs nothing"
        return load(path, **options)

    return loaded
