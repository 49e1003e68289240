"""The tree as the architecture tests see it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def sources(root: Path) -> dict[str, str]:
    """Return the text of every Python file of the project by its path from the root."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for top in ("iocflow", "samples", "tests")
        for path in sorted((root / top).rglob("*.py"))
    }


@pytest.fixture(scope="session")
def trees(sources: dict[str, str]) -> dict[str, ast.Module]:
    """Return every file parsed."""
    return {name: ast.parse(text, name) for name, text in sources.items()}
