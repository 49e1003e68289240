"""The examples of the README and of the container file's reference are executed, in the order in which they stand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Block:
    """A fenced block, and the heading that it stands under."""

    heading: str
    language: str
    text: str

    @property
    def file(self) -> str:
        """The name that the block's first line gives it as a comment, empty without one."""
        found = re.match(r"# ([\w/]+\.\w+)\n", self.text)
        return found[1] if found else ""


def blocks(markdown: str) -> list[Block]:
    """Return every fenced block of a text."""
    found = []
    heading = ""
    for part in re.finditer(
        r"^#+ (?P<heading>[^\n]+)$|^```(?P<language>\w+)\n(?P<text>.*?)^```$", markdown, re.M | re.S
    ):
        heading = part["heading"] or heading
        if part["language"]:
            found.append(Block(heading, part["language"], part["text"]))
    return found


@pytest.fixture
def readme(root: Path) -> list[Block]:
    """Return the blocks of README.md."""
    return blocks((root / "README.md").read_text(encoding="utf-8"))


def shell(command: str, folder: Path) -> str:
    """Run a command as a reader would, with this environment's programs first; return what it prints."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("page", ["README.md", "config/README.md"])
def test_examples_do_what_they_say(root: Path, page: str, tmp_path: Path) -> None:
    """Named blocks become files, container files are checked, Python and shell blocks run, text blocks are printed."""
    printed = ""
    for block in blocks((root / page).read_text(encoding="utf-8")):
        if block.heading in ("Run it", "Test it"):
            continue
        if block.file:
            (tmp_path / block.file).parent.mkdir(exist_ok=True)
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
            if block.language == "yaml" and "/" not in block.file:  # a part is checked with what imports it
                shell(f"iocflow check {block.file}", tmp_path)
        elif block.language == "python":
            (tmp_path / "example.py").write_text(block.text, encoding="utf-8")
            printed = shell("python example.py", tmp_path)
        elif block.language == "sh":
            printed = "".join(shell(line, tmp_path) for line in block.text.splitlines())
        elif block.language == "sql":
            continue  # the test of the source that reads such a table executes it
        elif block.language == "text":
            assert printed == block.text
        else:
            pytest.fail(f"nobody executes this block:\n{block.text}")


def test_run_it_runs_the_notifier(readme: list[Block], root: Path, tmp_path: Path) -> None:
    """The command under "Run it", without its installation, runs to the end in a copy of the project."""
    (block,) = (block for block in readme if block.heading == "Run it")
    for folder in ("config", "samples"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    installation, _, command = block.text.partition(" && .venv/bin/iocflow ")
    assert installation == "python3 -m venv .venv && .venv/bin/pip install -q -e '.[samples]'"
    assert "COMPLETED" in shell(f"iocflow {command}", tmp_path)


def test_ci_runs_the_readme_s_tests(readme: list[Block], root: Path) -> None:
    """The command under "Test it" is the one that .ci/run uses."""
    (block,) = (block for block in readme if block.heading == "Test it")
    install, tests = (part.partition(".venv/bin/")[2] for part in block.text.strip().split(" && ")[1:])
    script = (root / ".ci/run").read_text(encoding="utf-8").replace('"$venv/bin/', "").replace('"', "")
    assert f"\n{install}\n" in script
    assert f"\nstep {tests}\n" in script
