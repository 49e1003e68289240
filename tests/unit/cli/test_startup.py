"""What the command line loads before a command is chosen."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = {"apscheduler", "dependency_injector", "jinja2", "lxml", "pydantic", "rich", "yaml"}


@pytest.mark.parametrize("arguments", [["--help"], []])
def test_help_loads_nothing_slow(arguments: list[str]) -> None:
    """`iocflow --help` answers at once because it imports neither a command nor a heavy library."""
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}"
        " | {name for name in sys.modules if name.startswith('iocflow.')}), file=sys.stderr))\n"
        "from iocflow.cli.main import main\n"
        "sys.argv[0] = 'iocflow'\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    loaded = set(done.stderr.rpartition("LOADED")[2].split())
    assert {name for name in loaded if name.startswith("iocflow.cli.")} == {"iocflow.cli.main", "iocflow.cli.streams"}
    assert loaded.isdisjoint(SLOW)
    assert "check" in done.stdout + done.stderr
