"""Type checkers flag exactly the planted mistakes in programs of users, and nothing in right ones."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("programs")
EXPECT = re.compile(r"# expect$")

Flagged = dict[str, dict[int, str]]


def planted() -> dict[str, set[int]]:
    """The lines of every program that a checker has to flag."""
    return {
        path.name: {i for i, line in enumerate(path.read_text().splitlines(), 1) if EXPECT.search(line)}
        for path in sorted(PROGRAMS.glob("*.py"))
    }


def mypy(root: Path, scratch: Path) -> Flagged:
    """What mypy --strict flags."""
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary"]
    options = ["--output=json", f"--cache-dir={scratch}", "--explicit-package-bases", str(PROGRAMS)]
    done = subprocess.run([*command, *options], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    flagged: Flagged = {}
    for line in done.stdout.splitlines():
        found = json.loads(line)
        if found["severity"] == "error":
            flagged.setdefault(Path(found["file"]).name, {})[found["line"]] = found["message"]
    return flagged


def basedpyright(root: Path, scratch: Path) -> Flagged:
    """What basedpyright flags in its strict mode."""
    config = {
        "include": [str(PROGRAMS)],
        "extraPaths": [str(root)],
        "typeCheckingMode": "strict",
        "pythonVersion": f"{sys.version_info.major}.{sys.version_info.minor}",
    }
    path = scratch / "pyrightconfig.json"
    path.write_text(json.dumps(config))
    command = [sys.executable, "-m", "basedpyright", "-p", str(path), "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    flagged: Flagged = {}
    for found in json.loads(done.stdout)["generalDiagnostics"]:
        if found["severity"] == "error":
            lines = flagged.setdefault(Path(found["file"]).name, {})
            lines[found["range"]["start"]["line"] + 1] = found["message"]
    return flagged


@pytest.mark.parametrize("checker", [mypy, basedpyright])
def test_exactly_the_planted_mistakes_are_flagged(checker: object, root: Path, tmp_path: Path) -> None:
    """No planted mistake is missed, and no line that is right is complained about."""
    flagged: Flagged = checker(root, tmp_path)  # type: ignore[operator]
    for name, lines in planted().items():
        found = flagged.get(name, {})
        missed = {line: (PROGRAMS / name).read_text().splitlines()[line - 1].strip() for line in lines - set(found)}
        assert missed == {}, f"{name}: not flagged"
        assert {line: found[line] for line in set(found) - lines} == {}, f"{name}: flagged, but right"
    assert sum(map(len, planted().values())) > 80


def test_the_right_programs_run() -> None:
    """What the checkers let pass as right can be imported, so that it is right at run time too."""
    done = subprocess.run([sys.executable, str(PROGRAMS / "right.py")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
