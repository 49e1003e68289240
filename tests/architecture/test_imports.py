"""Who may import whom, and what an import may do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

IMPORT_AND_REPORT = """
import importlib, json, logging, signal, sys, threading
before = set(sys.modules)
handlers = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}
for name in sys.argv[1:]:
    importlib.import_module(name)
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps({
    "foreign": sorted(loaded - set(sys.stdlib_module_names) - {"iocflow"}),
    "threads": [thread.name for thread in threading.enumerate()],
    "logging": [str(handler) for name in (None, "iocflow") for handler in logging.getLogger(name).handlers],
    "signals": [str(name) for name, handler in handlers.items() if signal.getsignal(name) is not handler],
}))
"""


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the import contracts over the package in `folder`."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def import_and_report(names: list[str]) -> dict[str, list[str]]:
    """Import `names` in a fresh interpreter; return what that brought with it."""
    command = [sys.executable, "-c", IMPORT_AND_REPORT, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    report: dict[str, list[str]] = json.loads(done.stdout)  # anything that an import prints makes this fail
    assert not done.stderr
    return report


def test_import_contracts_hold(root: Path) -> None:
    """The layers, the core's independence and each heavy library's one folder are kept."""
    done = lint_imports(root)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("errors.py", "import yaml", "The core imports no third-party package"),
        ("errors.py", "from iocflow import wiring", "Layers"),
        ("wiring/__init__.py", "import iocflow", "Nobody inside imports the package root"),
        ("cli/version.py", "import dependency_injector", "dependency_injector and yaml only in container"),
    ],
)
def test_import_contracts_catch(root: Path, tmp_path: Path, file: str, line: str, contract: str) -> None:
    """A planted import of each forbidden kind breaks the contract that is about it."""
    shutil.copy(root / "pyproject.toml", tmp_path)
    shutil.copytree(root / "iocflow", tmp_path / "iocflow", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "iocflow" / file).open("a", encoding="utf-8") as planted:
        planted.write(f"\n{line}\n")
    done = lint_imports(tmp_path)
    assert done.returncode == 1
    broken = [row for row in " ".join(done.stdout.split()).split("Contracts:")[0].split("KEPT") if "BROKEN" in row]
    assert any(contract in row for row in broken), done.stdout


def test_core_needs_no_third_party_package(root: Path) -> None:
    """Importing the package root and every file of the core loads the standard library and nothing else."""
    core = [f"iocflow.{path.stem}" for path in (root / "iocflow").glob("*.py") if path.stem != "__init__"]
    assert import_and_report(["iocflow", *sorted(core)])["foreign"] == []


def test_names_of_the_core_load_no_third_party_package() -> None:
    """Asking the package root for a name of the core does not load the container."""
    code = "import sys, iocflow; iocflow.SequenceProcessor; sys.exit('dependency_injector' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_importing_does_nothing(root: Path) -> None:
    """Importing every module starts no thread, prints nothing, and leaves logging and signals alone."""
    modules = [
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in sorted((root / "iocflow").rglob("*.py"))
        if not path.stem.startswith("__")
    ]
    report = import_and_report(modules)
    assert report["threads"] == ["MainThread"]
    assert report["logging"] == []
    assert report["signals"] == []
