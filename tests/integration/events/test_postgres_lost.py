"""A table of PostgreSQL and what breaks: connections that end, and daemons that are killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker import eventually
from tests.inbox import Daemons, Inbox
from tests.integration.events.conftest import Bench
from tests.integration.events.test_postgres import SLOW, source

pytestmark = pytest.mark.service("postgres")


@pytest.fixture
def daemons(tmp_path: Path, inbox: Inbox) -> Iterator[Daemons]:
    """Return daemons that read the table, to be started."""
    made = Daemons(tmp_path, inbox.address(SLOW))
    yield made
    for pid in list(made.processes):
        made.kill(pid)


def test_an_idle_connection_is_made_anew(bench: Bench, inbox: Inbox) -> None:
    """After pg_terminate_backend, and again, rows arrive by notifications, and the launcher is in no trouble."""
    launcher = bench.start(source(inbox, SLOW))
    for i in range(3):
        inbox.put(str(i))
        eventually(lambda i=i: bench.seen == list(range(i + 1)))
        eventually(lambda: inbox.left() == 0)
        assert inbox.terminate("idle") >= 1
        eventually(lambda i=i: bench.counts().get("errors") == i + 1)
    inbox.put("3")
    eventually(lambda: bench.seen == [0, 1, 2, 3])
    eventually(lambda: launcher.trouble == "")


def test_a_connection_that_ends_with_a_row_in_hand(bench: Bench, inbox: Inbox) -> None:
    """The row is locked anew while its run goes on, is run once, and deleted at its end."""
    bench.go.clear()
    bench.start(source(inbox, SLOW))
    inbox.put('"long"')
    eventually(lambda: bench.begun == ["long"])
    for _ in range(2):
        before = inbox.holders()
        assert len(before) == 1
        inbox.terminate("idle in transaction")
        eventually(lambda before=before: inbox.holders() - before)
        eventually(lambda: len(inbox.holders()) == 1)
    bench.go.set()
    eventually(lambda: inbox.left() == 0)
    inbox.put('"next"')
    eventually(lambda: bench.seen == ["long", "next"])
    assert bench.begun == ["long", "next"]


@pytest.mark.parametrize("word", ["long", "bad"])
def test_a_row_whose_every_connection_ends_just_before_its_run(bench: Bench, inbox: Inbox, word: str) -> None:
    """It is settled on another connection: deleted, or one dead letter."""
    bench.go.clear()
    bench.start(source(inbox, SLOW))
    inbox.put(f'"{word}"')
    eventually(lambda: bench.begun == [word])
    assert inbox.terminate() >= 2
    bench.go.set()
    eventually(lambda: inbox.left() == 0)
    eventually(lambda: len(inbox.dead()) == (word == "bad"))
    assert bench.begun == [word]


def test_a_row_that_another_daemon_took_meanwhile(
    benches: Callable[..., Bench], inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    """When the lock is lost and another one has it, both run the event, with one key, and it is settled once."""
    first, second = source(inbox, SLOW), source(inbox, SLOW)
    inbox.put("1")
    for one in (first, second):
        one.open()
    (mine,) = first.receive(1, 0)
    assert second.receive(1, 0) == []
    inbox.terminate("idle in transaction")
    eventually(lambda: inbox.free() == 1)
    second.open()
    (theirs,) = second.receive(1, 0)
    assert mine.event == theirs.event
    first.tend(1)
    first.acknowledge(mine)
    assert "another daemon has it" in caplog.text
    assert inbox.left() == 1
    second.acknowledge(theirs)
    assert inbox.left() == 0
    for one in (first, second):
        one.close()


@pytest.fixture
def switch(inbox: Inbox) -> Iterator[Callable[[bool], None]]:
    """Return a function that lets the user of the address `&user=SCHEMA` in, or ends what it has and keeps it out."""
    role = inbox.schema
    inbox.execute(f"create role {role} superuser login")

    def turn(on: bool) -> None:
        inbox.execute(f"alter role {role} {'login' if on else 'nologin'}")
        if not on:
            inbox.terminate()

    yield turn
    inbox.terminate()
    inbox.execute(f"drop owned by {role}; drop role {role}")


def test_a_database_that_is_away(bench: Bench, inbox: Inbox, switch: Callable[[bool], None]) -> None:
    """Away at the start, and while a run goes on: the source waits for it, and no event is run twice."""
    switch(False)
    launcher = bench.start(source(inbox, f"{SLOW}&user={inbox.schema}"))
    eventually(lambda: "is lost" in launcher.trouble)
    assert bench.given_up == []
    switch(True)
    bench.go.clear()
    inbox.put("1")
    eventually(lambda: bench.begun == [1])
    switch(False)
    eventually(lambda: "is lost" in launcher.trouble)
    bench.go.set()
    eventually(lambda: bench.seen == [1])
    switch(True)
    eventually(lambda: inbox.left() == 0)
    assert bench.begun == [1]
    bench.finish()


def test_a_stop_while_the_database_is_away(bench: Bench, inbox: Inbox, switch: Callable[[bool], None]) -> None:
    """What ended meanwhile comes again; nobody waits for that all the grace."""
    launcher = bench.start(source(inbox, f"{SLOW}&user={inbox.schema}"))
    bench.go.clear()
    inbox.put("1")
    eventually(lambda: bench.begun == [1])
    switch(False)
    eventually(lambda: "is lost" in launcher.trouble)
    bench.finish()
    assert (bench.seen, inbox.left()) == ([1], 1)


def test_two_daemons_share_a_table(daemons: Daemons, inbox: Inbox) -> None:
    """Each row is the run of one of them; what a killed one had in hand is run by the other, and nothing is left."""
    daemons.hold(True)
    first = daemons.start()
    inbox.put(*map(str, range(2)))
    eventually(lambda: len(daemons.noted()) == 2)
    second = daemons.start()
    inbox.put(*map(str, range(2, 4)))
    eventually(lambda: len(daemons.noted()) == 4)
    assert Counter(pid for pid, _ in daemons.noted()) == {first: 2, second: 2}
    assert inbox.free() == 0
    daemons.kill(first)
    eventually(lambda: inbox.free() == 2)
    inbox.put(*map(str, range(4, 40)))
    daemons.hold(False)
    eventually(lambda: inbox.left() == 0)
    daemons.stop()
    done = Counter(number for pid, number in daemons.noted() if pid != first)
    assert done == dict.fromkeys(range(40), 1)
    assert {number for pid, number in daemons.noted() if pid == first} == {0, 1}
