"""A table of PostgreSQL as a source: one run a row, dead letters, and what can be wrong with the table."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iocflow.container import App
from iocflow.events.postgres import PostgresSource
from iocflow.events.section import source_at
from iocflow.events.source import Reason
from iocflow.launch.errors import ImpossibleSourceError
from iocflow.launch.exit_codes import ExitCode
from iocflow.sequence import SequenceProcessor
from tests.broker import eventually
from tests.inbox import Inbox, inboxes
from tests.integration.events.conftest import Bench
from tests.integration.events.test_amqp_durable import Word

pytestmark = pytest.mark.service("postgres")

SLOW = "&interval=1h"
"""Rows are found by notifications only."""


def source(inbox: Inbox, options: str = "") -> PostgresSource:
    """Return a source that reads the table."""
    found = source_at(inbox.address(options))
    assert isinstance(found, PostgresSource)
    return found


def test_each_row_is_a_run(bench: Bench, inbox: Inbox) -> None:
    """Rows that were there and rows that come are runs, known by their ids, and are gone when they are done."""
    inbox.put('{"a": 1}', '{"id": "e7", "data": "two"}')
    found = source(inbox, SLOW)
    bench.start(found)
    eventually(lambda: len(bench.seen) == 2)
    inbox.put('"three"')
    eventually(lambda: bench.seen[2:] == ["three"])
    eventually(lambda: inbox.left() == 0)
    assert [id for id in ("1", "e7", "3") for key in bench.keys if f"#{id}/" in key] == ["1", "e7", "3"]
    assert bench.counts().get("errors") is None


def test_the_table_of_the_reference(bench: Bench, inbox: Inbox, root: Path) -> None:
    """The table and trigger that the reference shows are all that it takes: a row is found by its notification."""
    text = (root / "config" / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```sql\n(.*?)^```$", text, re.M | re.S)
    inbox.execute("drop table inbox; drop function ring")
    inbox.execute(block)
    bench.start(source_at(inbox.address(SLOW).replace(f"channel={inbox.schema}", "channel=inbox")))
    eventually(inbox.listens)
    inbox.put("1")
    eventually(lambda: bench.seen == [1] and inbox.left() == 0)
    bench.finish()


def test_a_look_without_a_notification(bench: Bench, inbox: Inbox) -> None:
    """Where nobody notifies, rows are found by looking."""
    inbox.execute("alter table inbox disable trigger ring")
    bench.start(source(inbox, "&interval=50ms"))
    time.sleep(0.3)
    inbox.put("1")
    eventually(lambda: bench.seen == [1])


def test_rows_are_taken_in_order_and_no_more_than_may_be_in_hand(bench: Bench, inbox: Inbox) -> None:
    """With `prefetch=1` one row is locked at a time, the smallest id first, though four threads are free."""
    bench.go.clear()
    inbox.put(*map(str, range(20)))
    bench.start(source(inbox, f"{SLOW}&prefetch=1"))
    eventually(lambda: bench.begun == [0])
    assert inbox.free() == 19
    bench.go.set()
    eventually(lambda: bench.seen == list(range(20)))


@pytest.mark.parametrize(
    ("kind", "pending", "done"),
    [("boolean not null default false", (False,), (True,)), ("timestamptz", (True,), (False,))],
)
def test_rows_that_are_marked(bench: Bench, inbox: Inbox, kind: str, pending: tuple[bool], done: tuple[bool]) -> None:
    """`done:` names a column, a boolean or a time; the row stays, and is not taken again; a dead letter too."""
    inbox.execute(f"alter table inbox add column seen {kind}")
    value = "seen" if "boolean" in kind else "seen is null"
    inbox.put("1", '"bad"')
    found = source(inbox, f"{SLOW}&done=seen")
    bench.start(found)
    eventually(lambda: inbox.execute(f"select {value} from inbox") == [done, done])
    inbox.put("2")
    eventually(lambda: bench.seen == [1, 2])
    assert [(id, bytes(body)) for id, body, _ in inbox.dead()] == [("2", b'"bad"')]
    bench.finish()
    assert source(inbox, "&done=seen").replay(["1"]) == ["1"]
    assert inbox.execute(f"select {value} from inbox order by id") == [done, pending, done]
    assert inbox.left() == 3


@pytest.mark.parametrize(
    ("kind", "raw", "reason"),
    [
        ("bytea", b"\xff\x00{", "refused: not UTF-8 at byte 0"),
        ("text", b'{"a": ', "refused: not JSON: Expecting value: line 1 column 7 (char 6)"),
        ("json", b'{"specversion": "1.0", "id": [], "data": "\\u0000"}', "refused: the envelope's `id` is no text"),
        ("text", None, "refused: its data is NULL"),
    ],
)
def test_poison_is_put_aside_with_its_bytes(
    bench: Bench, inbox: Inbox, kind: str, raw: bytes | None, reason: str
) -> None:
    """A row that is no event is a dead letter, byte for byte; the row behind it runs; replayed, it is as it was."""
    inbox.execute(f"alter table inbox alter column data type {kind} using null, add column \"100%\" text default 'n'")
    value = raw if kind == "bytea" or raw is None else raw.decode()
    inbox.execute("insert into inbox (data) values (%s)", value)
    inbox.execute("insert into inbox (data) values (%s)", b"1" if kind == "bytea" else "1")
    before = inbox.execute('select id, data::text, "100%" from inbox where id = 1')
    found = source(inbox, SLOW)
    bench.start(found)
    eventually(lambda: bench.seen == [1] and inbox.left() == 0)
    bench.finish()
    (letter,) = source(inbox).dead_letters()
    assert (letter.id, letter.body, dict(letter.headers)) == ("1", raw, {"row": "1"})
    assert letter.reason is not None
    assert letter.reason.reason == reason
    assert letter.at is not None
    assert source(inbox).replay(["1", "1", "2", "x"]) == ["1"]
    assert inbox.execute('select id, data::text, "100%" from inbox') == before
    assert inbox.dead() == []


def test_a_failed_run_is_a_dead_letter(bench: Bench, inbox: Inbox) -> None:
    """Its row is moved, with error and activity, in one transaction; `replay` runs it again."""
    inbox.put('"bad"')
    bench.start(source(inbox, SLOW))
    eventually(lambda: [why for _, _, why in inbox.dead()] == ["ValueError: bad it is"])
    assert inbox.left() == 0
    assert source(inbox).replay(["1"]) == ["1"]
    eventually(lambda: bench.begun == ["bad", "bad"])
    eventually(lambda: [number for (number,) in inbox.execute("select number from inbox_dead")] == [2])


def test_the_whole_row_is_the_data(postgres: str, benches: Callable[..., Bench]) -> None:
    """`data=*` gives a table of the user's own as it is: the seed has its columns."""
    with inboxes(postgres, 'key uuid primary key, "Customer" text, amount numeric, at date') as inbox:
        bench = benches()
        key = "00000000-0000-0000-0000-00000000000a"
        inbox.execute("insert into inbox values (%s, 'Ann', 1.50, '2026-03-01')", key)
        bench.start(source(inbox, "&id=key&data=*"))
        eventually(lambda: bench.seen == [{"key": key, "Customer": "Ann", "amount": 1.5, "at": "2026-03-01"}])
        eventually(lambda: inbox.left() == 0)
        bench.finish()


def test_what_is_given_back_does_not_hold_up_others(inbox: Inbox) -> None:
    """A row that was given back is passed over for a moment by the same source, and free for another one at once."""
    inbox.put("1", "2")
    first, second = source(inbox), source(inbox)
    for one in (first, second):
        one.open()
    (one,) = first.receive(1, 0)
    first.give_back(one)
    (two,) = first.receive(1, 0)
    assert (one.name, two.name) == ("1", "2")
    (again,) = second.receive(2, 0)
    assert again.name == "1"
    second.give_back(again)
    first.give_back(two)
    found: list[Any] = []
    eventually(lambda: found.extend(first.receive(2, 0.1)) or len(found) == 2)
    for one in (first, second):
        one.close()
    assert inbox.free() == 2


def test_a_row_is_one_run_of_a_store(bench: Bench, inbox: Inbox, tmp_path: Any) -> None:
    """A row that comes again with the same id is the run that is on record; with other data it is a dead letter."""
    bench.processor = SequenceProcessor([bench.act], context=Word, name="p")
    with App(bench.processor, store=f"sqlite:///{tmp_path}/app.db") as app:
        worker = app.worker(threads=2)
        worker.start()
        bench.start(source(inbox, SLOW))
        for data in ('"one"', '"one"', '"two"'):
            inbox.execute("insert into inbox (id, data) values (7, %s)", data)
            eventually(lambda: inbox.left() == 0)
        eventually(lambda: [run.state for run in app.client.runs()] == ["completed"])
        bench.finish()
        worker.stop()
        bench.processor = None
    assert bench.seen == ["one"]
    ((id, body, why),) = inbox.dead()
    assert (id, bytes(body)) == ("7", b'"two"')
    assert "ConflictError" in why


@pytest.mark.parametrize(
    ("statement", "options", "told"),
    [
        ("alter table inbox rename to outbox", "", "there is no table `inbox`; make it"),
        ("alter table inbox rename data to body", "", "has no column `data`; write data= with one of id, body"),
        ("alter table inbox rename id to key", "", "has no column `id`; write id= with one of key, data"),
        ("", "&done=seen", "has no column `seen`; write done= with one of id, data"),
        ("alter table inbox add seen text", "&done=seen", "the column `seen` is text; write done= with a boolean"),
        ("alter table inbox drop constraint inbox_pkey", "", "`id` does not tell rows apart; make it the primary key"),
        ("create table inbox_dead (id text)", "", "`inbox_dead` is no table of dead letters, it lacks body"),
    ],
)
def test_a_table_that_cannot_be_read(bench: Bench, inbox: Inbox, statement: str, options: str, told: str) -> None:
    """The daemon ends at the start with status 3, and a message that says what to do."""
    if statement:
        inbox.execute(statement)
    bench.start(source(inbox, options))
    eventually(lambda: bench.given_up)
    assert bench.given_up[0][0] is ExitCode.CONFIGURATION
    assert told in bench.given_up[0][1]


def test_rights_that_are_missing(inbox: Inbox) -> None:
    """Each right is asked for at the start; the message has the statement that makes the dead letters' table."""
    role = f"{inbox.schema}_user"
    inbox.execute(f"create role {role}; grant usage on schema {inbox.schema} to {role}")
    try:
        for right in ("select", "update", "delete"):
            with pytest.raises(ImpossibleSourceError, match=f"grant {right} on "):
                source(inbox, f"%20-crole%3D{role}").open()
            inbox.execute(f"grant {right} on inbox to {role}")
        with pytest.raises(ImpossibleSourceError, match='let somebody who may do it say: create table "inbox_dead"'):
            source(inbox, f"%20-crole%3D{role}").open()
    finally:
        inbox.execute(f"drop owned by {role}; drop role {role}")


def test_a_row_that_a_trigger_keeps(bench: Bench, inbox: Inbox, caplog: pytest.LogCaptureFixture) -> None:
    """A row that cannot be deleted is told as the launcher's trouble, and not run again and again."""
    inbox.execute(
        "create function keep() returns trigger language plpgsql as 'begin return null; end';"
        " create trigger keep before delete on inbox for each row execute function keep()"
    )
    inbox.put("1")
    with caplog.at_level(logging.WARNING):
        launcher = bench.start(source(inbox))
        eventually(lambda: "row 1 cannot be ended: a trigger or policy keeps it" in launcher.trouble)
        inbox.execute("drop trigger keep on inbox")
        eventually(lambda: inbox.left() == 0)
    assert bench.begun == [1]


def test_reasons_that_postgresql_cannot_store(inbox: Inbox) -> None:
    """A reason with a NUL or half a character, from whatever an activity raised, is kept all the same."""
    inbox.put("1")
    found = source(inbox)
    found.open()
    (delivery,) = found.receive(1, 0)
    found.dead_letter(delivery, Reason("a\0b\ud800c", "x", "p"))
    found.close()
    assert inbox.dead() == [("1", b"1", "a\ufffdb?c")]
