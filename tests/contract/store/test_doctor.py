"""The doctor: a store that is well gives nothing, and each planted violation is found by its name."""

from __future__ import annotations

import pytest

from iocflow.store.contract import Ending, Rest, Store
from tests.contract.store.stores import Kit
from tests.contract.store.work import Work, record

HELD = "a group is held by a worker that lives"
PROGRESS = "one run of a group is in progress at most"
OPEN = "an open run has a group, and a free group an open run"
GATE = "a free group says what its runs are"
QUARANTINE = "a suspended run quarantines its group"
STATE = "a run is in one of its states"
CLOSED = "a closed run has no timer, signal or hold"
NUMBERS = "rows are numbered from 1 without gaps"
ORPHANS = "what is told of a run is told of one that there is"
JOURNAL = "nothing changes without its row in the journal"
REVOKED = "a run is taken only from a worker that lives"

READY, HELD_RUN, ASLEEP, CLOSED_RUN, SUSPENDED = (f"(select id from run where number = '{i}')" for i in range(5))

PLANTED = [
    (HELD, f"update grp set owner = 4711 where id = (select grp from run where id = {HELD_RUN})"),
    (PROGRESS, f"update run set grp = (select grp from run where id = {HELD_RUN}), key = null where id = {READY}"),
    (OPEN, f"delete from grp where id = (select grp from run where id = {READY})"),
    (OPEN, f"update run set key = 'another' where id = {READY}"),
    (OPEN, "insert into grp(id, due) values (4711, 1.0)"),
    (GATE, f"update grp set gate = 1 where id = (select grp from run where id = {READY})"),
    (GATE, f"update grp set gate = 0 where id = (select grp from run where id = {ASLEEP})"),
    (GATE, f"update grp set gate = 2, keeper = {READY} where id = (select grp from run where id = {READY})"),
    (GATE, f"update grp set due = due + 1 where id = (select grp from run where id = {READY})"),
    (GATE, f"update grp set gate = 7 where id = (select grp from run where id = {READY})"),
    (QUARANTINE, f"update grp set gate = 3, keeper = {READY} where id = (select grp from run where id = {READY})"),
    (QUARANTINE, f"update grp set gate = 1 where id = (select grp from run where id = {SUSPENDED})"),
    (QUARANTINE, f"update grp set owner = 1 where id = (select grp from run where id = {SUSPENDED})"),
    (STATE, f"update run set state = 7 where id = {READY}"),
    (STATE, f"update run set closed = null where id = {CLOSED_RUN}"),
    (STATE, f"update run set ended = 1.0 where id = {READY}"),
    (STATE, f"update run set wake = null, waits = 0 where id = {ASLEEP}"),
    (STATE, f"update run set wake = 1.0 where id = {READY}"),
    (STATE, f"update run set body = null where id = {READY}"),
    (CLOSED, f"update run set expiry = 1.0 where id = {CLOSED_RUN}"),
    (CLOSED, f"update signal set fate = null where run = {CLOSED_RUN}"),
    (CLOSED, f"update run set deadline = 1.0 where id = {READY}"),
    (NUMBERS, f"update step set n = 7 where run = {CLOSED_RUN} and n = 2"),
    (NUMBERS, f"delete from step where run = {CLOSED_RUN} and n = 1"),
    (ORPHANS, f"update step set run = 4711 where run = {CLOSED_RUN}"),
    (ORPHANS, f"update event set run = 4711 where run = {SUSPENDED}"),
    (ORPHANS, f"update signal set run = 4711 where run = {CLOSED_RUN}"),
    (ORPHANS, f"update step set plan = 4711 where run = {CLOSED_RUN}"),
    (JOURNAL, f"delete from event where run = {SUSPENDED}"),
    (JOURNAL, f"update run set ask = 'cancel' where id = {ASLEEP}"),
    (JOURNAL, f"update run set ask = 'again' where id = {READY}"),
    (JOURNAL, f"update run set deliveries = 1 where id = {READY}"),
    (JOURNAL, f"delete from event where run = {CLOSED_RUN} and kind = 'signal'"),
    (REVOKED, "insert into revoked(worker, run, grp) values (4711, 1, 1)"),
]


@pytest.fixture
def some_of_each(store: Store, work: Work) -> None:
    """Leave a run that is ready, held, asleep, closed and suspended, with the numbers 0 to 4."""
    ids = [work.submit(str(i), group=f"g{i}") for i in range(5)]
    claimed = {run.id: run for run in work.claim(5)}
    for run in claimed.values():
        work.step(run, 2)
    ready, _, asleep, closed, suspended = (claimed[id] for id in ids)
    store.signal(closed.id, "s", b"1")
    work.commit(rests=[Rest(asleep.id, asleep.group, 9e9)], released=[ready.group, asleep.group])
    work.commit(endings=[Ending(closed.id, closed.group, "completed", "ok")], released=[closed.group])
    work.commit(endings=[Ending(suspended.id, suspended.group, "suspended", "error", "why")])


@pytest.mark.usefixtures("some_of_each")
def test_a_healthy_store_has_no_violations(store: Store) -> None:
    """Runs in every state, properly made, violate nothing."""
    assert list(store.doctor()) == []
    assert {state: count for state, count in store.counts().items() if count} == {
        "queued": 1,
        "running": 1,
        "waiting": 1,
        "completed": 1,
        "suspended": 1,
    }


@pytest.mark.usefixtures("some_of_each")
@pytest.mark.parametrize(("invariant", "sql"), PLANTED)
def test_a_planted_violation_is_found(kit: Kit, store: Store, invariant: str, sql: str) -> None:
    """What no store would do to its tables is told by the name of the invariant that it violates, with evidence."""
    kit.healthy = False
    kit.sql(sql)
    found = {violation.invariant: violation.what for violation in store.doctor()}
    assert invariant in found
    assert any(word.isdigit() for word in found[invariant].replace(",", "").split())


def test_a_gap_that_a_worker_left_is_found(kit: Kit, store: Store, work: Work) -> None:
    """A worker that leaves out a number is found out."""
    kit.healthy = False
    run = work.submit()
    work.claim()
    work.commit(records=[record(run, 2)])
    assert [violation.invariant for violation in store.doctor()] == [NUMBERS]
