"""Every command that the samples' READMEs and the container files' own comments give does what it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
READMES = sorted(path.relative_to(ROOT) for path in (ROOT / "samples").rglob("README.md"))
FILES = sorted(path.relative_to(ROOT) for path in (ROOT / "config").glob("*.yaml"))
SAMPLES = sorted(path for path in (ROOT / "samples").iterdir() if path.is_dir() and path.name != "__pycache__")

Shell = Callable[..., object]


@pytest.mark.parametrize("readme", READMES, ids=str)
def test_commands_of_a_readme(readme: Path, shell: Shell) -> None:
    """The commands of a sample's README work, one after the other, in what a fresh clone holds."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / readme).read_text(encoding="utf-8"), re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines() if not line.startswith("pytest")]
    assert lines
    for line in lines:
        shell(line)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_commands_of_a_container_file(file: Path, shell: Shell) -> None:
    """Each container file names commands that run it, and those work in what a fresh clone holds."""
    text = (ROOT / file).read_text(encoding="utf-8")
    lines = re.findall(r"^#   (iocflow (?!serve).*)$", text, re.M)
    assert lines
    assert all(str(file) in line for line in lines)
    for line in (f"iocflow check {file}", *lines):
        shell(line)


def test_every_sample_is_in_the_index() -> None:
    """The index of the samples names each folder, and each container file."""
    index = (ROOT / "samples" / "README.md").read_text(encoding="utf-8")
    for name in (*(f"`{sample.name}/`" for sample in SAMPLES), *map(str, FILES)):
        assert name in index


def test_the_smallest_sample_is_small() -> None:
    """The smallest useful program has at most twenty lines."""
    program = ROOT / "samples" / "first_sequence" / "order_total.py"
    assert len(program.read_text(encoding="utf-8").splitlines()) <= 20


def test_the_schema_that_editors_read_is_up_to_date(shell: Shell) -> None:
    """The schema beside the container files is what `iocflow schema` prints; run that again after a change."""
    shell("iocflow schema | diff - config/iocflow.schema.json")
