"""Time limits: deadlines, `start_by` and timers, and how a run is taken from its worker."""

from __future__ import annotations

import pytest

from iocflow.store.contract import Batch, Ending, Rest, Store
from tests.contract.store.stores import Kit
from tests.contract.store.work import LONG, Work, record


def status(store: Store, run: int) -> tuple[str, str, str]:
    """Return state, outcome and reason of a run."""
    found = store.status(run)
    assert found is not None
    return found.state, found.outcome, found.reason


@pytest.mark.parametrize("swept", [True, False])
def test_a_run_that_was_never_started_times_out(kit: Kit, store: Store, swept: bool) -> None:
    """When nobody worked until the deadline, the first claim or sweep closes the run; it is never given to anybody."""
    work = Work(store)
    run, other = work.submit(deadline=store.now() + 600), work.submit()
    kit.advance(3600)
    later = Work(store)
    if swept:
        assert store.sweep(deliveries=5).timeouts == 1
    assert later.ids() == [other]
    assert status(store, run) == ("failed", "timeout", "the deadline has passed")
    assert later.kinds(run) == ["submitted", "ended"]


@pytest.mark.parametrize("swept", [True, False])
def test_a_run_that_was_not_started_in_time_expires(kit: Kit, store: Store, swept: bool) -> None:
    """A run that nobody started by its `start_by` is closed as expired, also one that may not start before."""
    work = Work(store)
    soon = store.now() + 100
    runs = [work.submit(start_by=soon), work.submit(start_by=soon, not_before=soon + 100)]
    kit.advance(101)
    later = Work(store)
    if swept:
        assert store.sweep(deliveries=5).timeouts == 2
    assert later.ids() == []
    assert [status(store, run)[:2] for run in runs] == [("failed", "expired")] * 2


def test_a_run_that_was_started_does_not_expire(kit: Kit, store: Store) -> None:
    """`start_by` is nothing to a run that was begun; its deadline still is."""
    work = Work(store, LONG)
    run = work.submit(start_by=store.now() + 100, deadline=store.now() + 1000)
    (claimed,) = work.claim()
    work.step(claimed)
    kit.advance(101)
    assert store.sweep(deliveries=5).timeouts == 0
    assert work.state(run) == "running"
    kit.advance(1000)
    assert work.commit().dropped == frozenset()
    assert store.sweep(deliveries=5).timeouts == 1


def test_a_run_in_hand_is_its_workers_to_expire(kit: Kit, store: Store, work: Work) -> None:
    """What a worker has in hand may be in its first step: the store does not close it."""
    run = work.submit(start_by=store.now() + 10)
    (claimed,) = work.claim()
    kit.advance(11)
    work.commit(claim=1)
    assert store.sweep(deliveries=5).timeouts == 0
    work.end(claimed, state="failed", outcome="expired")
    assert status(store, run)[:2] == ("failed", "expired")


def test_a_run_past_its_deadline_is_taken_from_its_worker(kit: Kit, store: Store, work: Work) -> None:
    """At the deadline the group is taken from its worker: late results are dropped, and another ends the run."""
    runs = [work.submit(group="g", deadline=store.now() + 20), work.submit(group="g")]
    (claimed, _) = work.claim()
    work.step(claimed)
    kit.advance(21)
    assert store.sweep(deliveries=5).timeouts == 1
    assert store.beat(work.id, lease=30) == frozenset(runs)
    assert work.states(runs) == ["queued", "queued"]
    other = Work(store)
    again = other.claim()
    assert [(run.id, run.ask, run.n) for run in again] == [(runs[0], "timeout", 1), (runs[1], None, 0)]
    ending = Ending(runs[0], claimed.group, "completed", "ok")
    receipt = work.commit(records=[record(runs[0], 2)], endings=[ending], released=[claimed.group], claim=5)
    assert (receipt.dropped, receipt.claimed) == (frozenset(runs), [])
    assert work.commit().dropped == frozenset()
    other.end(again[0], state="failed", outcome="timeout")
    assert status(store, runs[0]) == ("failed", "timeout", "the deadline has passed")
    assert work.kinds(runs[0]) == ["submitted", "step", "timeout", "fenced_out", "ended"]


def test_an_ask_counts_until_the_run_has_moved(kit: Kit, store: Store, work: Work) -> None:
    """Whoever claims an asked run is told until it has recorded something; then it is on its way."""
    run = work.submit(deadline=store.now() + 10)
    (claimed,) = work.claim()
    work.step(claimed)
    kit.advance(11)
    store.sweep(deliveries=5)
    for _ in range(2):
        (again,) = work.claim()
        assert (again.id, again.ask) == (run, "timeout")
        work.release(again)
    (again,) = work.claim()
    work.step(again)
    work.release(again)
    assert work.claim()[0].ask is None
    kit.advance(100)
    assert store.sweep(deliveries=5).timeouts == 0


def test_a_first_step_that_may_run_is_asked_to_end(kit: Kit, store: Store, work: Work) -> None:
    """A run in hand without rows may be in its first step at the deadline: it is asked, those behind are closed."""
    deadline = store.now() + 10
    first, second = (work.submit(group="g", deadline=deadline) for _ in range(2))
    work.claim()
    kit.advance(11)
    assert store.sweep(deliveries=5).timeouts == 2
    assert status(store, second) == ("failed", "timeout", "the deadline has passed")
    assert work.commit(records=[record(first, 1)]).dropped == frozenset({first, second})
    (again,) = work.claim()
    assert (again.id, again.ask, again.n) == (first, "timeout", 0)


@pytest.mark.parametrize("keep", [True, False])
def test_a_sleeping_run_is_woken_at_its_deadline(kit: Kit, store: Store, work: Work, keep: bool) -> None:
    """A run that sleeps past its deadline, with its group or without, is made ready to end."""
    run, behind = work.submit(group="g", deadline=store.now() + 10), work.submit(group="g")
    claimed = work.claim()
    work.step(claimed[0])
    work.commit(rests=[Rest(run, claimed[0].group, store.now() + 1000, keep=keep)], released=[claimed[0].group])
    kit.advance(11)
    assert [(one.id, one.ask) for one in work.claim()] == [(run, "timeout"), (behind, None)]


def test_a_suspended_run_times_out_when_it_goes_on(kit: Kit, store: Store) -> None:
    """At its deadline a suspended run stays so; let go on, it is asked to end."""
    work = Work(store, LONG)
    run = work.submit(deadline=store.now() + 1800)
    (claimed,) = work.claim()
    work.step(claimed)
    work.end(claimed, state="suspended", outcome="error", reason="undo failed")
    kit.advance(3600)
    assert store.sweep(deliveries=5).timeouts == 1
    assert status(store, run) == ("suspended", "", "undo failed")
    assert store.retry(run, who="me", why="fixed")
    (again,) = work.claim()
    assert (again.id, again.ask) == (run, "timeout")


def test_a_late_retry_of_a_suspended_run_times_out_unswept(kit: Kit, store: Store, work: Work) -> None:
    """The same holds when nobody swept since the deadline."""
    run = work.submit(deadline=store.now() + 100)
    (claimed,) = work.claim()
    work.end(claimed, state="suspended", outcome="error")
    kit.advance(101)
    assert store.retry(run, who="me", why="fixed")
    assert work.claim()[0].ask == "timeout"


def test_timers_fire_once_each(kit: Kit, work: Work) -> None:
    """A run wakes once for each rest, at the last time that was set."""
    work.submit()
    (claimed,) = work.claim()
    work.rest(claimed, work.store.now() + 60)
    kit.advance(30)
    assert work.ids() == []
    kit.advance(31)
    (claimed,) = work.claim()
    work.rest(claimed, work.store.now() + 60)
    kit.advance(59)
    assert work.ids() == []
    kit.advance(2)
    assert len(work.claim()) == 1
    work.commit(claim=5)
    assert work.ids() == []


def test_a_sweep_wakes_the_sleeping(kit: Kit, store: Store, work: Work) -> None:
    """A sweep opens the groups of runs whose time has come, for whoever looks."""
    work.submit(not_before=store.now() + 10)
    kit.advance(11)
    store.sweep(deliveries=5)
    assert work.commit().more


def test_many_sleepers_wake_at_once(kit: Kit, store: Store, work: Work) -> None:
    """More runs than one call wakes are all awake after a few."""
    early = store.now() + 10
    runs = [work.submit(not_before=early) for _ in range(1200)]
    kit.advance(11)
    got: list[int] = []
    for _ in range(4):
        got += work.ids(1200)
    assert sorted(got) == runs


def test_what_was_dropped_is_told(kit: Kit, store: Store, work: Work) -> None:
    """What is told of as dropped has the steps that it was, of each run; places alone and ends have no name."""
    runs = [work.submit(deadline=store.now() + 20) for _ in range(3)]
    claimed = work.claim(3)
    kit.advance(21)
    assert store.sweep(deliveries=5).timeouts == 3
    rows = [
        record(runs[0], 1, name="outer/credit"),
        record(runs[0], 2, name="outer", kind="attempt"),
        record(runs[0], 3, name="outer/credit"),
        record(runs[1], 1, name="bill", kind="mark"),
    ]
    ending = Ending(runs[2], claimed[2].group, "completed", "ok")
    assert work.commit(records=rows, endings=[ending]).dropped == frozenset(runs)
    found = [[entry.name for entry in store.history(run) if entry.kind == "fenced_out"] for run in runs]
    assert found == [["outer/credit, outer"], [""], [""]]


def test_what_a_step_dropped_is_told(kit: Kit, store: Store, work: Work) -> None:
    """A step in a transaction of its own is told of likewise."""
    run = work.submit(deadline=store.now() + 20)
    work.claim()
    kit.advance(21)
    assert store.sweep(deliveries=5).timeouts == 1
    with store.begin(work.id, lease=LONG) as step:
        assert step.commit(Batch(records=[record(run, 1, name="bill")])).dropped == frozenset({run})
    assert [entry.name for entry in store.history(run) if entry.kind == "fenced_out"] == ["bill"]
