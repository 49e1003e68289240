"""Habits that a tool can see."""

from __future__ import annotations

import doctest
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SKIPPING = '''
import pytest


@pytest.mark.service("postgres")
def test_needs_a_service():
    """Skip, as a test does that does not find its service."""
    pytest.skip("nothing answers")


def test_needs_a_platform():
    """Skip for a reason that is no service's."""
    pytest.skip("not here")
'''


def test_docstring_examples_work(sources: dict[str, str]) -> None:
    """Every `>>>` in a docstring of the package gives what it says."""
    for name in (name for name, text in sources.items() if name.startswith("iocflow/") and ">>> " in text):
        module = importlib.import_module(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        assert doctest.testmod(module).failed == 0, name


@pytest.mark.parametrize(("ci", "ended"), [("true", "1 failed, 1 skipped"), ("", "2 skipped")])
def test_service_tests_may_not_skip_in_ci(root: Path, tmp_path: Path, ci: str, ended: str) -> None:
    """Where CI is set, the skip of a service test is a failure; other skips, and skips elsewhere, are left alone."""
    shutil.copy(root / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_skipping.py").write_text(SKIPPING, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(root / "pyproject.toml"), "--rootdir", str(tmp_path)]
    environment = {**os.environ, "CI": ci}
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended in done.stdout, done.stdout + done.stderr
