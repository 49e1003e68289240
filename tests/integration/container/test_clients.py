"""Submitting and looking at durable runs without the application."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from iocflow.container import NotDurableError, load
from iocflow.container.clients import client, store_url
from iocflow.durable.errors import SubmitError
from iocflow.store.errors import StoreError
from iocflow.wiring import ConfigurationError

Write = Callable[[str], Path]

BODY = """
    store: "sqlite:///${here}/app.db"
    values: {token: "${secret:no-such-token}"}
    beans:
      bank: {class: .stored.Bank, args: {token: "${token}"}}
      charge: {class: .stored.Charge, args: {bank: !ref bank}}
      context: {class: .stored.Buying, scope: prototype}
    processors:
      buy: {context: .stored.Buying, sequence: [charge], durable: {submitter: customer.name, number: po}}
      also: {context: context, sequence: [charge], durable: true}
      plain: {context: .stored.Buying, sequence: [charge]}
"""
SEED = {"po": "PO-1", "customer": {"name": "ACME"}}


def test_a_file_is_enough_to_submit(write: Write, built: list[str]) -> None:
    """What only the beans need, a secret of theirs, need not be there; nothing is constructed."""
    path = write(BODY)
    with pytest.raises(ConfigurationError, match="no-such-token"):
        load(path)
    outside = client(path)
    try:
        ticket = outside.submit("buy", SEED)
        assert outside.submit("also", SEED, submitter="ACME", number="2").new
        assert outside.status("ACME", "PO-1").state == "queued"
        with pytest.raises(SubmitError, match="known: also, buy"):
            outside.submit("plain", SEED)
    finally:
        outside.close()
    inside = load(write(BODY.replace("${secret:no-such-token}", "").replace(', args: {token: "${token}"}', "")))
    built.clear()
    with inside as app:
        app.run_until_idle()
        assert app.status(ticket.id).state == "completed"


def test_the_url_of_a_store_is_enough_to_look(write: Write, tmp_path: Path) -> None:
    """Of a store alone runs can be looked at, and none submitted; a file tells its store without an import."""
    path = write(BODY)
    url = store_url(path)
    assert url == f"sqlite:///{tmp_path}/app.db"
    outside = client(path)
    outside.submit("buy", SEED)
    outside.close()
    looking = client(url)
    assert [run.number for run in looking.runs()] == ["PO-1"]
    with pytest.raises(SubmitError):
        looking.submit("buy", SEED)
    looking.close()


@pytest.mark.parametrize(
    ("there", "instead", "told"),
    [
        ("number: po", "number: pp", "no field `pp`; known: customer"),
        ("context: .stored.Buying, sequence: [charge], durable: {", "context: .stored.Bying, durable: {", "`Buying`"),
        ("sqlite:///${here}/app.db", "${token}", "no-such-token"),
        ("sqlite:///", "sqlit:///", "did you mean `sqlite`"),
        ("values: {", "values: [", "not YAML"),
        ("context: context", "context: contxt", "did you mean `context`"),
    ],
)
def test_mistakes_that_concern_durable_runs(write: Write, tmp_path: Path, there: str, instead: str, told: str) -> None:
    """A mistake in what a client needs is told with its place, and no store is made."""
    with pytest.raises(ConfigurationError, match=told):
        client(write(BODY.replace(there, instead)))
    assert not (tmp_path / "app.db").exists()


def test_without_a_store(write: Write) -> None:
    """A file without a store, and a URL of none, are refused."""
    path = write("processors: {p: {context: .Order, sequence: [.Note]}}")
    for entrance in (client, store_url):
        with pytest.raises(NotDurableError, match=r"app\.yaml has no store"):
            entrance(path)
    with pytest.raises(StoreError):
        client("mysql://db")


def run(code: str, cwd: Path) -> str:
    """Return what a program prints in a process of its own."""
    root = Path(__file__).resolve().parents[3]
    code = f"import sys; sys.path.insert(0, {str(root)!r})\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


PLAIN = """
    beans: {note: {class: .Note}}
    processors: {p: {context: .Order, sequence: [note]}}
"""
LOADED = "print(sorted({'msgspec', 'psycopg', 'sqlite3', 'iocflow.durable.job', 'iocflow.store'} & set(sys.modules)))"


def test_plain_files_load_nothing_of_durable_runs(write: Write, tmp_path: Path) -> None:
    """A file without a durable processor pays nothing for them, loaded or built in Python."""
    write(PLAIN)
    code = f"from iocflow import App, load\nload('app.yaml').close()\nApp().close()\n{LOADED}"
    assert run(code, tmp_path) == "[]"


def test_looking_imports_no_code_of_the_application(write: Write, tmp_path: Path) -> None:
    """The store of a file, and a client of its URL, load no module that the file names."""
    outside = client(write(BODY))
    outside.submit("buy", SEED)
    outside.close()
    code = (
        "from iocflow.container.clients import client, store_url\n"
        "looking = client(store_url('app.yaml'))\n"
        "assert looking.status('ACME', 'PO-1').state == 'queued'\n"
        "looking.close()\n"
        "print([name for name in sys.modules if name.startswith('tests')])"
    )
    assert run(code, tmp_path) == "[]"


def test_a_missing_extra_is_told(write: Write, tmp_path: Path) -> None:
    """Without msgspec a durable processor is a mistake of the file, with its place and what to install."""
    write(BODY.replace("${secret:no-such-token}", ""))
    code = (
        "sys.modules['msgspec'] = None\n"
        "from iocflow.container import check\n"
        "from iocflow.container.schema import json_schema\n"
        "print([str(one) for one in check('app.yaml').mistakes if 'pip' in str(one)])\n"
        "assert 'store' in json_schema()['properties']"
    )
    told = 'durable runs need msgspec, which is not installed; pip install "iocflow[durable]"'
    assert run(code, tmp_path) == f"['app.yaml:10:54: {told}']"


def test_without_psycopg(write: Write, tmp_path: Path) -> None:
    """Without psycopg a PostgreSQL store is a mistake of the file; its password is in no message."""
    write(BODY.replace("sqlite:///${here}/app.db", "postgresql://app:geheim123@db/app"))
    code = (
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'psycopg' else find(name, *rest)\n"
        "from iocflow.container import check\n"
        "text = check('app.yaml').rendered()\n"
        "assert 'geheim123' not in text and 'postgresql://app:***@db/app' in text, text\n"
        "print('pip install \"iocflow[postgres]\"' in text)"
    )
    assert run(code, tmp_path) == "True"
