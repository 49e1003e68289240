"""What is told when a SQLite store cannot be used: which file it is, and what to do."""

from __future__ import annotations

import errno
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from iocflow.store.errors import StoreError, StoreFullError, StoreLostError, StoreVersionError
from iocflow.store.sqlite import waiting
from iocflow.store.sqlite.errors import CAUSES, store_error
from iocflow.store.sqlite.store import SqliteStore
from tests.contract.store.work import submission


def text(path: Path) -> None:
    path.write_text("a text " * 500)
    SqliteStore(path)


def cut(path: Path) -> None:
    SqliteStore(path).close()
    path.write_bytes(path.read_bytes()[:6000])
    SqliteStore(path).counts()


def folder(path: Path) -> None:
    path.mkdir()
    SqliteStore(path)


def below_a_file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("")
    SqliteStore(path)


def locked(path: Path) -> None:
    store = SqliteStore(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    try:
        store.submit([submission()])
    finally:
        other.close()
        store.close()


def full(path: Path) -> None:
    store = SqliteStore(path)
    with store._connections.write() as tables:
        (pages,) = tables.sql("pragma page_count").fetchone()
        tables.sql(f"pragma max_page_count = {pages}")
    try:
        store.submit([submission(body=b"x" * 100_000)])
    finally:
        store.close()


def named_alike(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("create table meta(version)")
    connection.close()
    SqliteStore(path)


def newer(path: Path) -> None:
    SqliteStore(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("update meta set version = version + 1")
    connection.close()
    SqliteStore(path)


@pytest.mark.parametrize(
    ("use", "kind", "remedy"),
    [
        (text, StoreVersionError, "name another file"),
        (cut, StoreVersionError, "bring back a copy"),
        (folder, StoreLostError, "write the path of a file"),
        (below_a_file, StoreLostError, "write the path of a file"),
        (locked, StoreLostError, "another program is writing"),
        (full, StoreFullError, "make room"),
        (named_alike, StoreVersionError, "name another file"),
        (newer, StoreVersionError, "update iocflow"),
    ],
)
def test_trouble_names_the_file_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Path], None], kind: type[StoreError], remedy: str
) -> None:
    """Whoever has several stores sees which one it is about, and behind a semicolon what helps."""
    monkeypatch.setattr(waiting, "PATIENCE", 0.05)
    path = tmp_path / "shop" / "orders.db"
    path.parent.mkdir()
    with pytest.raises(kind) as told:
        use(path)
    what, _, instead = str(told.value).partition("; ")
    assert str(path) in what
    assert instead.startswith(remedy)


@pytest.mark.parametrize("number", [*CAUSES, errno.EIO])
def test_what_the_system_says_names_the_file_too(number: int) -> None:
    """An error of the system about a file beside, as that of the queue of writers, is told of the store."""
    told = store_error(OSError(number, "it is so", "/srv/orders.db-lock"), Path("/srv/orders.db"))
    assert str(told).startswith("the store /srv/orders.db: it is so; ")


READ_ONLY = """
import os, sys
from iocflow.store.sqlite.store import SqliteStore
from tests.contract.store.work import submission
if os.getuid() == 0:
    os.setuid(65534)
try:
    SqliteStore(sys.argv[1]).submit([submission()])
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(("file", "folder"), [(0o444, 0o777), (0o666, 0o555), (0o444, 0o555), (None, 0o555)])
def test_what_is_read_only_is_told_as_that(file: int | None, folder: int) -> None:
    """A file or folder that this user may not write is no wrong path, whichever of SQLite's errors tells of it."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "orders.db"
        if file is not None:
            SqliteStore(path).close()
            for one in Path(name).iterdir():
                one.chmod(file)
        Path(name).chmod(folder)
        command = [sys.executable, "-c", READ_ONLY, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        Path(name).chmod(0o755)
    assert done.stderr == ""
    assert done.stdout.startswith(f"StoreFullError the store {path}: ")
    assert "; give this user the right to write" in done.stdout


def test_a_read_only_file_system_is_told_as_that() -> None:
    """What the system says of one has a remedy of its own: no right that is given to anybody helps there."""
    told = store_error(OSError(errno.EROFS, "Read-only file system"), Path("/srv/orders.db"))
    assert isinstance(told, StoreFullError)
    assert str(told).endswith("; mount the file system for writing, or name a file in another one")
