"""Addresses of tables in PostgreSQL: their parts, every mistake told, and no password in anything that is shown."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import pytest

from iocflow.container import check
from iocflow.events.address import Address, AddressError
from iocflow.events.postgres_options import PostgresOptions
from iocflow.events.section import source_at
from iocflow.launch.errors import LauncherError


def test_all_parts() -> None:
    """The options are read, libpq's are handed on, and the name has neither user nor password."""
    found = PostgresOptions.of(
        Address.parse(
            "postgres://jo%40x:p%2Fw@db.example/shop?table=app.inbox&id=key&data=event&done=seen&dead=app.lost"
            "&channel=bell&interval=5s&prefetch=3&sslmode=require"
        )
    )
    assert (found.table, found.id, found.data, found.done) == ("app.inbox", "key", "event", "seen")
    assert (found.dead, found.channel, found.prefetch) == ("app.lost", "bell", 3)
    assert found.interval == timedelta(seconds=5)
    assert found.name == "postgres://db.example:5432/shop?table=app.inbox"
    assert "sslmode=require" in found.conninfo
    assert "p/w" not in repr(found)


def test_what_is_left_out() -> None:
    """The columns are `id` and `data`, dead letters lie beside the table, and the channel has the table's name."""
    found = PostgresOptions.of(Address.parse("postgres://h/d?table=app.inbox"))
    assert (found.id, found.data, found.done) == ("id", "data", "")
    assert (found.dead, found.channel) == ("app.inbox_dead", "inbox")


@pytest.mark.parametrize(
    "written",
    ["postgres://h/d?table=t", "postgresql://u:p@h:5432/d?table=t&id=x", "postgres:///d?host=h&table=t&interval=2s"],
)
def test_one_table_however_it_is_written(written: str) -> None:
    """Scheme, default port, user and options make no other source."""
    assert source_at(written).identity == "postgres://h:5432/d?table=t"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("postgres://h/d", "names no table; write postgres://USER@HOST/DATABASE?table=inbox"),
        ("postgres://h?table=t", "names no database; write postgres://USER@HOST/DATABASE?table=inbox"),
        ("postgres://h/d?tabel=t&table=t", "has no option `tabel`, nor has libpq; did you mean `table`?"),
        ("postgres://h/d?table=a.b.c", "table=a.b.c is no name; write letters"),
        ("postgres://h/d?table=drop%20table", "table=drop table is no name; write letters"),
        ("postgres://h/d?table=t&id=data", "`data` is named twice"),
        ("postgres://h/d?table=t&dead=t", "dead=t is the table itself"),
        ("postgres://h/d?table=t&interval=0s", "interval"),
        ("postgres://h/d?table=t&prefetch=0", "prefetch=0 is no number"),
        ("postgres://h:port/d?table=t", "port"),
        ("postgres://h/d?table=t&sslmode=on", "the option `sslmode` of the address of a postgres: source is `on`"),
        ("postgres://u:p?x@h/d?table=t", "percent-encoded"),
    ],
)
def test_mistakes(written: str, told: str) -> None:
    """Each is refused before anything is connected, with what to write instead."""
    with pytest.raises(LauncherError) as caught:
        source_at(written)
    assert told in str(caught.value)


def test_all_mistakes_at_once() -> None:
    """Whatever is wrong with the options is told in one go."""
    with pytest.raises(AddressError) as caught:
        source_at("postgres://h/d?table=t&colour=red&prefetch=none&dead=t")
    assert len(caught.value.reasons) == 3


def test_check_tells_the_place(tmp_path: Path) -> None:
    """`check` names file, line and column of a wrong option."""
    file = tmp_path / "app.yaml"
    file.write_text(
        "iocflow: 1\nprocessors: {p: {context: iocflow.ProcessContext, sequence: []}}\n"
        'launchers:\n  x: {processor: p, source: "postgres://u:hunter2hunter2@h/d?table=t&chanel=c"}\n',
        encoding="utf-8",
    )
    (found,) = [told for told in map(str, check(file).mistakes) if "chanel" in told]
    assert "app.yaml:4:" in found
    assert "did you mean `channel`?" in found
    assert "hunter2" not in found


def test_a_driver_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistake tells which extra brings it."""
    for name in [
        one for one in sys.modules if one.startswith(("iocflow.store.postgres", "iocflow.events.postgres_table"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LauncherError, match=r'pip install "iocflow\[postgres\]"'):
        PostgresOptions.of(Address.parse("postgres://h/d?table=t"))
