"""Opening a SQLite store: URLs, new files, files of something else, versions, and files that cannot be written."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from iocflow.store import open_store
from iocflow.store.errors import StoreError, StoreFullError, StoreLostError, StoreUrlError, StoreVersionError
from iocflow.store.opening import check_url
from iocflow.store.sql.schema import MIGRATIONS, VERSION
from iocflow.store.sqlite.connections import Connections
from iocflow.store.sqlite.schema import open_file
from iocflow.store.sqlite.store import SqliteStore
from tests.contract.store.work import Work, submission

READ_AND_SUBMIT = """
import os, sys
from iocflow.store.sqlite.store import SqliteStore
from tests.contract.store.work import submission
if os.getuid() == 0:
    os.setuid(65534)
store = SqliteStore(sys.argv[1])
print(store.counts()["queued"])
try:
    store.submit([submission()])
except Exception as error:
    print(type(error).__name__)
    assert sys.argv[1] in str(error) and "give this user the right" in str(error), error
"""


def test_a_url_names_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three slashes begin a path from the working directory, four one from the root; both make the file."""
    monkeypatch.chdir(tmp_path)
    for url, path in (("sqlite:///a%20b.db", "a b.db"), (f"sqlite:///{tmp_path}/c.db?synchronous=normal", "c.db")):
        store = open_store(url)
        assert store.url == url
        assert store.counts()["queued"] == 0
        store.close()
        assert (tmp_path / path).is_file()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "store.db",
        "sqlite",
        "mysql://host/db",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite://host/store.db",
        "sqlite:///store.db?synchronous=off",
        "sqlite:///store.db?timeout=5",
        "sqlite:store.db",
        "sqlite:///folder/",
        "sqlite:///a#b.db",
        "sqlite://[::1/store.db",
    ],
)
def test_a_wrong_url_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """What names no store, no file or no option is said, and nothing is made."""
    monkeypatch.chdir(tmp_path)
    for ask in (check_url, open_store):
        with pytest.raises(StoreUrlError):
            ask(url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("option", "level"), [("", 2), ("?synchronous=full", 2), ("?synchronous=normal", 1)])
def test_what_is_committed_survives_as_far_as_asked(tmp_path: Path, option: str, level: int) -> None:
    """Every commit is on the disk, unless the URL says that the last ones may be lost."""
    store = open_store(f"sqlite:///{tmp_path}/store.db{option}")
    assert isinstance(store, SqliteStore)
    with store._connections.write() as tables:
        assert tables.sql("pragma synchronous").fetchone() == (level,)
    store.close()


def test_a_store_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    """What was submitted is found after closing, and by another object before that."""
    path = tmp_path / "store.db"
    first = SqliteStore(path)
    run = first.submit([submission("17")])[0].id
    second = SqliteStore(path)
    assert second.find("ACME", "17") == run
    first.close()
    second.close()
    third = SqliteStore(path)
    assert third.find("ACME", "17") == run
    third.close()


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """After closing, which may be done twice, every method says that the store is closed."""
    store = SqliteStore(tmp_path / "store.db")
    store.close()
    store.close()
    for call in (store.counts, lambda: store.submit([submission()]), lambda: store.listen(1), store.rouse):
        with pytest.raises(StoreLostError, match="closed"):
            call()


def test_many_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    """Of many who open a file that is not there, one makes the tables; all can use them."""

    def use(_: int) -> int:
        store = SqliteStore(tmp_path / "store.db")
        id = store.submit([submission()])[0].id
        store.close()
        return id

    with ThreadPoolExecutor(16) as pool:
        assert sorted(pool.map(use, range(16))) == list(range(1, 17))


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """A file of another kind is not touched."""
    path = tmp_path / "store.db"
    path.write_text("this is a text, and is to stay one" * 50)
    with pytest.raises(StoreVersionError):
        SqliteStore(path)
    assert path.read_text() == "this is a text, and is to stay one" * 50


@pytest.mark.parametrize("sql", ["create table meta(a)", "create table meta(version)", "create table step(a)"])
def test_a_database_with_our_names_is_refused(tmp_path: Path, sql: str) -> None:
    """A database that has a table of its own by one of our names is not touched."""
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path)
    connection.execute(sql)
    connection.close()
    with pytest.raises(StoreVersionError):
        SqliteStore(path)
    connection = sqlite3.connect(path)
    assert len(connection.execute("select * from sqlite_master").fetchall()) == 1
    connection.close()


def test_a_database_of_an_application_can_be_the_store(tmp_path: Path) -> None:
    """A store's tables may stand beside an application's own."""
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path)
    connection.execute("create table seat(no)")
    connection.close()
    store = SqliteStore(path)
    assert store.submit([submission()])[0].what == "new"
    store.close()


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    """A store that was migrated by a later iocflow is not used, and not changed."""
    path = tmp_path / "store.db"
    SqliteStore(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("update meta set version = version + 1")
    with pytest.raises(StoreVersionError, match=f"version {VERSION + 1}"):
        SqliteStore(path)
    assert connection.execute("select version from meta").fetchall() == [(VERSION + 1,)]
    connection.close()


def test_a_store_of_version_1_is_brought_forward(tmp_path: Path) -> None:
    """A store that the first version made, with runs in every state, is migrated when it is opened, and works on."""
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path)
    connection.executescript(Path(__file__).with_name("version_1.sql").read_text())
    connection.close()
    store = SqliteStore(path)
    assert store.counts() == {
        "queued": 1,
        "running": 0,
        "waiting": 1,
        "suspended": 1,
        "completed": 1,
        "failed": 0,
        "cancelled": 0,
    }
    assert list(store.doctor()) == []
    work = Work(store)
    run = store.find("ACME", "2")
    assert run is not None
    assert store.signal(run, "go", b"1")
    claimed = work.claim(5)
    assert len(claimed) == 2
    work.end(*claimed)
    assert [len(store.history(one.id)) for one in store.runs()] == [3, 5, 3, 2]
    assert list(store.doctor()) == []
    store.close()


def test_a_migration_keeps_what_is_there_and_makes_the_views_anew(tmp_path: Path) -> None:
    """A step forward is one transaction: it is done, or the store stays as it was."""
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    run = store.submit([submission()])[0].id
    store.close()
    connections = Connections(path, synchronous="full", clock=lambda: 1.0)
    wrong = (*MIGRATIONS, ("alter table run add column colour text", "this is no SQL"))
    with pytest.raises(StoreError):
        open_file(connections, wrong)
    SqliteStore(path).close()
    right = (*MIGRATIONS, ("alter table run add column colour text default 'red'",))
    open_file(connections, right)
    with connections.read() as tables:
        assert tables.rows("select id, colour from run") == [(run, "red")]
        assert tables.rows("select version from meta") == [(VERSION + 1,)]
        assert tables.rows("select state from v_run_status") == [("queued",)]
    connections.close()
    with pytest.raises(StoreVersionError):
        SqliteStore(path)


def test_a_full_store_says_so_and_goes_on_later(tmp_path: Path) -> None:
    """Where nothing more fits, a commit says that the store is full, writes nothing, and can be repeated."""
    store = SqliteStore(tmp_path / "store.db")
    with store._connections.write() as tables:
        (pages,) = tables.sql("pragma page_count").fetchone()
        tables.sql(f"pragma max_page_count = {pages + 5}")
    batch = [submission(body=b'"%s"' % (b"x" * 2000)) for _ in range(50)]
    with pytest.raises(StoreFullError):
        store.submit(batch)
    assert store.counts()["queued"] == 0
    with store._connections.write() as tables:
        tables.sql("pragma max_page_count = 100000")
    assert {one.what for one in store.submit(batch)} == {"new"}
    store.close()


def test_a_store_that_cannot_be_written_can_be_read() -> None:
    """Who may only read the file sees what is in it, and is told that the store is read-only when it writes."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.db")
        store.submit([submission()])
        for path in Path(folder).iterdir():
            path.chmod(0o444)
        Path(folder).chmod(0o555)
        command = [sys.executable, "-c", READ_AND_SUBMIT, f"{folder}/store.db"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        Path(folder).chmod(0o755)
        store.close()
    assert (done.stdout.split(), done.stderr) == (["1", "StoreFullError"], "")
