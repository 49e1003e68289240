"""A mistake in `package:` is told once, where it stands; what is named relative to it is held back."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iocflow.container import check

NUMBERS = itertools.count()
MODULE = """
from iocflow import Activity, ProcessContext
class Order(ProcessContext): ...
class Note(Activity[Order]):
    def execute(self, context: Order) -> None: ...
"""
BODY = """
beans:
  note: {class: .Note}
  other: {class: .deep.Note, on-error: {for: .LostError, then: stop}}
processors:
  p: {context: .Order, sequence: [note, other]}
"""


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the name of a package that no other test uses, in the current folder, which is on the import path."""
    name = f"shop_{next(NUMBERS)}_packages"
    inner = tmp_path / name / "fares"
    inner.mkdir(parents=True)
    (inner / "__init__.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / name / "broken.py").write_text("\n1 / 0\n", encoding="utf-8")
    (tmp_path / name / "lacking.py").write_text("import no_such_module_anywhere\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    for module in [module for module in sys.modules if module.startswith(name)]:
        del sys.modules[module]


def told(package: str, file: str = "app.yaml") -> list[str]:
    """Return the mistakes of a file with that package."""
    Path(file).write_text(f"iocflow: 1\npackage: {package}\n{BODY}", encoding="utf-8")
    return [str(mistake).removeprefix(f"{file}:") for mistake in check(file).mistakes]


def test_a_misspelt_part(name: str) -> None:
    """The neighbours are known."""
    assert told(f"{name}.faers") == [f"2:10: there is no package `{name}.faers`; did you mean `fares`?"]


def test_a_misspelt_package(name: str, tmp_path: Path) -> None:
    """The packages of the current folder and of the import path are known."""
    wrong = name.replace("packages", "pakages")
    looked = f"(the import path has the current folder, {tmp_path}, and no `{wrong}`)"
    what = f"2:10: there is no package `{wrong}.fares`: there is no `{wrong}`"
    assert told(f"{wrong}.fares") == [f"{what}; did you mean `{name}`? {looked}"]
    assert told("nothing_like_it") == [
        f"2:10: there is no package `nothing_like_it`; {looked[1:-1].replace(wrong, 'nothing_like_it')}"
    ]


def test_another_current_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who starts from another folder is told which one it is, and where the package lies above the file."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(tmp_path)])
    there = f"there is one in {tmp_path}: run from there, or add that to PYTHONPATH; the current folder, {elsewhere},"
    what = f"2:10: there is no package `{name}.fares`: there is no `{name}`"
    why = "is not on the import path: the command line puts it there, `load()` does not"
    assert told(f"{name}.fares", "../app.yaml") == [f"{what}; {there} {why}"]


@pytest.mark.parametrize(
    ("part", "why", "remedy"),
    [
        ("broken", "ZeroDivisionError: division by zero", "correct it"),
        ("lacking", "ModuleNotFoundError: No module named 'no_such", "install what has `no_such_module_anywhere`, or"),
    ],
)
def test_a_package_that_cannot_be_imported(name: str, part: str, why: str, remedy: str) -> None:
    """What its import raised is told once, with the line, and what to do about it."""
    (mistake,) = told(f"{name}.{part}")
    assert mistake.startswith(f"2:10: the package `{name}.{part}` cannot be imported: {why}")
    assert f"{part}.py:" in mistake
    assert f"; {remedy}" in mistake


@pytest.mark.parametrize("package", ["subprocess", "3", "a..b", "!odd x", "[a]"])
def test_a_package_that_is_none(name: str, package: str) -> None:
    """A `package:` that is there but wrong is never said to be missing."""
    (mistake,) = told(package)
    assert mistake.startswith("2:10: ")
    assert "has no `package:`" not in mistake


def test_a_part_below_the_package(name: str) -> None:
    """With a right package, only the names that are wrong are told."""
    mistakes = told(f"{name}.fares")
    assert [mistake.partition(":")[0] for mistake in mistakes] == ["6", "6"]
    assert f"there is no module `{name}.fares.deep`" in mistakes[0]
