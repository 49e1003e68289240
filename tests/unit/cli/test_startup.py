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


EXTRAS = ("h11", "kombu", "msgspec", "prometheus_client", "psycopg", "redis")


@pytest.mark.parametrize("command", ["check", "graph", "schedule", "run", "serve"])
def test_a_base_install_is_enough(command: str) -> None:
    """No command asks for an extra on a file that needs none; a misspelt processor or profile ends those that run."""
    code = (
        "import sys\n"
        "class Lacking:\n"
        "    def find_spec(self, name, *rest):\n"
        f"        if name.partition('.')[0] in {EXTRAS}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Lacking())\n"
        "from iocflow.cli.main import main\n"
        "sys.argv[0] = 'iocflow'\n"
        "main()\n"
    )
    words = {"run": ["fare-dorp"], "serve": ["--profile", "no-such-profile"]}.get(command, [])
    given = [sys.executable, "-c", code, command, "config/fare_drop.yaml", *words]
    done = subprocess.run(given, capture_output=True, text=True, check=False, timeout=60)
    assert "not installed" not in done.stderr, done.stderr
    assert done.returncode == {"run": 2, "serve": 3}.get(command, 0), done.stderr
