"""Writing and checking container files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from iocflow.container import Checked, check
from tests.unit.container import parts

HEAD = "iocflow: 1\npackage: tests.unit.container.parts\n"


@pytest.fixture(autouse=True)
def built() -> list[str]:
    """Return the list of what was constructed, empty at first."""
    parts.BUILT.clear()
    return parts.BUILT


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Return a function that writes a container file, with the format and package before its text."""
    monkeypatch.chdir(tmp_path)

    def write(body: str, name: str = "app.yaml") -> Path:
        path = Path(name)
        path.write_text(HEAD + dedent(body).lstrip("\n"), encoding="utf-8")
        return path

    return write


@pytest.fixture
def checked(write: Callable[[str], Path]) -> Callable[..., Checked]:
    """Return a function that checks a container file of that text."""
    return lambda body, **options: check(write(body), **options)
