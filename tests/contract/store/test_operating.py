"""Operators: cancel, retry, drop and purge, each journalled with who and why."""

from __future__ import annotations

from typing import Any

import pytest

from iocflow.store.contract import Saved, Store
from tests.contract.store.stores import Kit
from tests.contract.store.work import LONG, Work, record

OPERATOR: Any = {"who": "anna", "why": "wrong price"}


def last(store: Store, run: int, kind: str) -> tuple[str, str]:
    """Return who and why of the last entry of that kind."""
    entry = [entry for entry in store.history(run) if entry.kind == kind][-1]
    return entry.who, entry.why


def test_a_queued_run_is_cancelled_at_once(store: Store, work: Work) -> None:
    """A run that was not begun is closed as cancelled, and never given to anybody."""
    run, other = work.submit(group="g"), work.submit(group="g")
    assert store.cancel(run, **OPERATOR)
    status = store.status(run)
    assert status is not None
    assert (status.state, status.outcome, status.reason) == ("cancelled", "cancelled", "wrong price")
    assert last(store, run, "cancel") == ("anna", "wrong price")
    assert work.kinds(run) == ["submitted", "cancel", "ended"]
    assert work.ids() == [other]


def test_a_closed_run_cannot_be_cancelled(store: Store, work: Work) -> None:
    """To cancel what has ended, or does not exist, changes nothing, and is answered with False."""
    run = work.submit()
    work.end(*work.claim())
    assert not store.cancel(run, **OPERATOR)
    assert not store.cancel(4711, **OPERATOR)
    assert work.kinds(run) == ["submitted", "ended"]


def test_a_run_in_progress_is_asked_to_end(store: Store, work: Work) -> None:
    """A begun run is taken from its worker, and whoever claims it is told; a second cancel changes nothing."""
    runs = [work.submit(group="g") for _ in range(2)]
    claimed = work.claim()
    work.step(claimed[0])
    assert store.cancel(runs[0], **OPERATOR)
    assert store.cancel(runs[0], **OPERATOR)
    receipt = work.commit(records=[record(runs[0], 2)], released=[claimed[0].group], claim=1)
    assert receipt.dropped == frozenset(runs)
    (again, behind) = receipt.claimed
    assert (again.id, again.ask, again.n, behind.id) == (runs[0], "cancel", 1, runs[1])
    work.step(again)
    work.end(again, state="cancelled", outcome="cancelled")
    assert work.kinds(runs[0]) == ["submitted", "step", "cancel", "fenced_out", "step", "ended"]


def test_only_the_cancelled_run_is_taken_when_it_is_not_its_turn(store: Store, work: Work) -> None:
    """A run that waits in a worker's hands behind another is closed at once; the worker keeps the others."""
    runs = [work.submit(group="g") for _ in range(3)]
    claimed = work.claim()
    work.step(claimed[0])
    assert store.cancel(runs[1], **OPERATOR)
    assert work.state(runs[1]) == "cancelled"
    assert work.step(claimed[0]).dropped == frozenset({runs[1]})
    work.end(claimed[0])
    assert work.ids() == [runs[2]]
    assert work.kinds(runs[0]) == ["submitted", "step", "step", "ended"]


def test_a_woken_run_is_not_mistaken_for_the_one_in_hand(kit: Kit, store: Store, work: Work) -> None:
    """A run in its first step is asked to end, and not closed, also when one that comes before it woke meanwhile."""
    early = work.submit(group="g", not_before=store.now() + 10)
    run = work.submit(group="g")
    (claimed,) = work.claim()
    kit.advance(11)
    work.commit(claim=1)
    assert store.cancel(run, **OPERATOR)
    assert work.state(run) == "queued"
    assert work.commit(records=[record(run, 1)]).dropped == frozenset({run})
    again = work.claim()
    assert {one.id: one.ask for one in again} == {early: None, run: "cancel"}
    assert claimed.id == run


@pytest.mark.parametrize("keep", [True, False])
def test_a_sleeping_run_is_woken_to_end(store: Store, work: Work, keep: bool) -> None:
    """A run that was begun and sleeps is made ready, and told."""
    run = work.submit(group="g")
    (claimed,) = work.claim()
    work.step(claimed)
    work.rest(claimed, store.now() + 1000, keep=keep)
    assert store.cancel(run, **OPERATOR)
    assert [(one.id, one.ask) for one in work.claim()] == [(run, "cancel")]


def test_a_suspended_run_is_cancelled_at_once(store: Store, work: Work) -> None:
    """A cancelled suspension lets the group go on."""
    run, behind = work.submit(group="g"), work.submit(group="g")
    claimed = work.claim()
    work.step(claimed[0])
    work.end(claimed[0], state="suspended", outcome="error")
    assert store.cancel(run, **OPERATOR)
    assert work.state(run) == "cancelled"
    assert work.ids() == [behind]


def test_a_cancelled_worker_hears_of_it_early(store: Store, work: Work) -> None:
    """A beat tells what was taken, as often as it is asked, until a commit did."""
    run = work.submit()
    (claimed,) = work.claim()
    work.step(claimed)
    store.cancel(run, **OPERATOR)
    assert [store.beat(work.id, lease=30) for _ in range(2)] == [frozenset({run})] * 2
    assert work.commit().dropped == frozenset({run})
    assert store.beat(work.id, lease=30) == frozenset()


def test_the_worker_may_claim_again_what_was_taken(store: Store, work: Work) -> None:
    """Once told, a worker may get the run again, and what it then records counts."""
    run = work.submit()
    (claimed,) = work.claim()
    work.step(claimed)
    store.cancel(run, **OPERATOR)
    receipt = work.commit(records=[record(run, 2, name="late")], claim=1)
    (again,) = receipt.claimed
    work.step(again, name="undo")
    work.end(again, state="cancelled", outcome="cancelled")
    assert [entry.name for entry in store.history(run) if entry.kind == "step"] == ["step1", "undo"]


def test_nothing_of_a_run_that_was_taken_away_is_kept(kit: Kit, store: Store, work: Work) -> None:
    """What was taken away leaves no group state, and its signals are there still, in the commit that hears of it."""
    run = work.submit(group="g")
    store.signal(run, "s", b"1")
    (claimed,) = work.claim()
    work.step(claimed)
    store.cancel(run, **OPERATOR)
    taken = [signal.id for signal in claimed.signals]
    work.commit(records=[record(run, 2)], states={"g": b"1"}, taken=taken, released=[claimed.group])
    (again,) = work.claim()
    assert (again.n, again.state, [signal.id for signal in again.signals]) == (1, None, taken)


def test_a_suspended_run_goes_on_from_the_step_that_failed(store: Store, work: Work) -> None:
    """A retry repeats the last place that allows it, with its context, asks for the step again, and opens the group."""
    run, behind = work.submit(group="g"), work.submit(group="g")
    claimed = work.claim()
    work.step(claimed[0], 2)
    work.commit(records=[record(run, 3, pos='"finally"', retry=False, outcome="ok")])
    claimed[0].n = 3
    work.end(claimed[0], state="suspended", outcome="error", reason="failed")
    assert store.retry(run, who="anna", why="fixed")
    again = work.claim()
    assert [one.id for one in again] == [run, behind]
    assert (again[0].ask, again[0].n, again[0].deliveries) == ("again", 4, 0)
    assert again[0].threads == [Saved("", 4, "mark", 0, '{"at":2}', b'{"n":2}')]
    assert last(store, run, "retry") == ("anna", "fixed")
    assert work.kinds(run) == ["submitted", "step", "step", "step", "suspended", "retry", "mark"]
    status = store.status(run)
    assert status is not None
    assert (status.reason, status.error) == ("", None)


def test_a_step_in_doubt_may_be_taken_as_done(store: Store, work: Work) -> None:
    """An operator who knows that a step took place lets its run go on behind it; there has to be one in doubt."""
    run = work.submit()
    (claimed,) = work.claim()
    work.commit(records=[record(run, 1), record(run, 2, kind="begun", pos=None, ctx=None)])
    claimed.n = 2
    work.end(claimed, state="suspended", outcome="in_doubt", reason="in doubt")
    assert store.retry(run, who="anna", why="it was booked", done=True)
    (again,) = work.claim()
    assert (again.ask, again.n) == ("done", 3)
    work.end(again, state="failed", outcome="error")
    assert not store.retry(run, who="anna", why="it was not", done=True)


@pytest.mark.parametrize("done", [False, True])
def test_which_steps_are_in_doubt_is_known_after_a_retry(store: Store, work: Work, done: bool) -> None:
    """Of several threads of control, those whose steps are in doubt are told from those that began nothing."""
    run = work.submit()
    (claimed,) = work.claim()
    rows = [("step", "", "f"), ("begun", "0", "a"), ("mark", "1", "b"), ("begun", "2", "c"), ("step", "2", "d"),
            ("begun", "3", "e"), ("memo", "3", "g")]  # fmt: skip
    work.commit(records=[record(run, n, kind=k, thread=t, pos=p) for n, (k, t, p) in enumerate(rows, start=1)])
    claimed.n = len(rows)
    work.end(claimed, state="suspended", outcome="in_doubt", reason="in doubt")
    for _ in range(2):  # also the second time
        assert store.retry(run, **OPERATOR, done=done)
        (again,) = work.claim()
        assert [(one.thread, one.kind, one.pos) for one in again.threads] == [
            ("", "mark", "f"), ("0", "doubt", "a"), ("1", "mark", "b"), ("2", "mark", "d"),
            ("3", "doubt", "g"),
        ]  # fmt: skip
        work.end(again, state="suspended", outcome="in_doubt", reason="in doubt")
    assert work.kinds(run).count("begun") == 3


@pytest.mark.parametrize(("outcome", "place"), [("in_doubt", "end"), ("unreadable", "end"), ("error", "a")])
def test_only_a_failed_run_goes_back_behind_its_finally(store: Store, work: Work, outcome: str, place: str) -> None:
    """A retry of a run that failed does the failed step again; one that was only held up goes on where it is."""
    run = work.submit()
    (claimed,) = work.claim()
    work.commit(records=[record(run, 1, pos="a"), record(run, 2, pos="end", retry=False)])
    claimed.n = 2
    for _ in range(2):  # also the second time
        work.end(claimed, state="suspended", outcome=outcome, reason="why")
        assert store.retry(run, **OPERATOR)
        (claimed,) = work.claim()
        assert [one.pos for one in claimed.threads] == [place]


def test_a_failed_run_goes_on(store: Store, work: Work) -> None:
    """A failed run is opened again; its first end stays in the journal; it goes before later ones of its group."""
    run = work.submit(group="g")
    (claimed,) = work.claim()
    work.step(claimed)
    work.end(claimed, state="failed", outcome="error", error='{"message":"no"}')
    later = work.submit(group="g")
    assert store.retry(run, **OPERATOR)
    again = work.claim()
    assert [(one.id, one.ask) for one in again] == [(run, "again"), (later, None)]
    work.step(again[0])
    work.end(again[0])
    assert work.kinds(run) == ["submitted", "step", "ended", "retry", "mark", "step", "ended"]
    assert [entry.outcome for entry in store.history(run) if entry.kind == "ended"] == ["error", "ok"]
    status = store.status(run)
    assert status is not None
    assert (status.state, status.outcome, status.error) == ("completed", "ok", None)


def test_a_failed_run_waits_for_the_one_in_progress(store: Store, work: Work) -> None:
    """A run that is opened again goes after the one of its group that was begun meanwhile."""
    run = work.submit(group="g")
    (claimed,) = work.claim()
    work.step(claimed)
    work.end(claimed, state="failed", outcome="error")
    later = work.submit(group="g")
    (begun,) = work.claim()
    work.step(begun)
    assert store.retry(run, **OPERATOR)
    assert work.states([run, later]) == ["queued", "running"]
    assert work.ids() == []
    work.release(begun)
    assert work.ids() == [later, run]


def test_a_run_without_a_group_can_be_retried(store: Store, work: Work) -> None:
    """A run that was its own group has one again, and starts over when no place allows more."""
    run = work.submit()
    (claimed,) = work.claim()
    work.commit(records=[record(run, 1, retry=False)])
    work.end(claimed, state="failed", outcome="error")
    assert store.retry(run, **OPERATOR)
    (again,) = work.claim()
    assert (again.id, again.n, again.ask) == (run, 2, "again")
    assert again.threads == [Saved("", 2, "mark", 0, "0", None)]


def test_each_branch_goes_on_from_its_own_place(store: Store, work: Work) -> None:
    """A retry repeats the places of branches that had ended or failed, so that none runs again that need not."""
    run = work.submit()
    (claimed,) = work.claim()
    rows = [
        record(run, 1),
        record(run, 2, thread="0"),
        record(run, 3, thread="1"),
        record(run, 4, thread="0", ctx=None),
        record(run, 5, thread="1", pos=None, ctx=None, outcome="error"),
        record(run, 6, thread="", pos='"failing"', retry=False),
    ]
    work.commit(records=rows)
    work.end(claimed, state="failed", outcome="error")
    store.retry(run, **OPERATOR)
    (again,) = work.claim()
    assert sorted(again.threads, key=lambda place: place.n) == [
        Saved("", 7, "mark", 0, '{"at":1}', b'{"n":1}'),
        Saved("1", 8, "mark", 0, '{"at":3}', b'{"n":3}'),
        Saved("0", 9, "mark", 0, '{"at":4}', b'{"n":2}'),
    ]


@pytest.mark.parametrize("state", ["completed", "cancelled"])
def test_what_did_not_fail_cannot_be_retried(store: Store, work: Work, state: str) -> None:
    """Neither a run that ended well or was cancelled, nor an open one, nor none."""
    run, open_ = work.submit(), work.submit()
    claimed = {one.id: one for one in work.claim(2)}
    work.end(claimed[run], state=state)
    assert not store.retry(run, **OPERATOR)
    assert not store.retry(open_, **OPERATOR)
    assert not store.retry(4711, **OPERATOR)


def test_a_retry_after_the_deadline_has_none(kit: Kit, store: Store) -> None:
    """A run that failed, and is retried after its deadline, may take its time."""
    work = Work(store, LONG)
    run = work.submit(deadline=store.now() + 100)
    (claimed,) = work.claim()
    work.end(claimed, state="failed", outcome="error")
    kit.advance(101)
    assert store.retry(run, **OPERATOR)
    assert store.sweep(deliveries=5).timeouts == 0
    assert work.claim()[0].ask == "again"


def test_poison_that_is_retried_starts_with_no_deaths(kit: Kit, store: Store) -> None:
    """An operator's retry of poison gives it as many deliveries again, and the first place in its group."""
    run, behind = (Work(store).submit(group="g") for _ in range(2))
    worker = Work(store)
    worker.claim()
    kit.advance(31)
    assert store.sweep(deliveries=1).poisoned == 1
    assert store.retry(run, **OPERATOR)
    claimed = Work(store).claim()
    assert [(one.id, one.deliveries, one.suspect) for one in claimed] == [(run, 0, False), (behind, 0, False)]


def test_a_suspended_run_can_be_given_up(store: Store, work: Work) -> None:
    """A dropped run is failed, and its group goes on; only a suspended one can be dropped."""
    run, behind = work.submit(group="g"), work.submit(group="g")
    claimed = work.claim()
    assert not store.drop(run, **OPERATOR)
    work.end(claimed[0], state="suspended", outcome="error", error='{"message":"no"}')
    assert store.drop(run, **OPERATOR)
    assert not store.drop(run, **OPERATOR)
    assert not store.drop(4711, **OPERATOR)
    status = store.status(run)
    assert status is not None
    assert (status.state, status.outcome, status.reason) == ("failed", "error", "wrong price")
    assert status.error == {"message": "no"}
    assert last(store, run, "dropped") == ("anna", "wrong price")
    assert work.ids() == [behind]


def test_purging_keeps_the_trail(kit: Kit, store: Store, work: Work) -> None:
    """Bodies, contexts and signals of runs that ended long ago go, their journal stays; the others keep all."""
    old, failed, open_ = work.submit(group="gone"), work.submit(), work.submit(group="g")
    claimed = {one.id: one for one in work.claim(2)}
    for one in claimed.values():
        work.step(one)
    store.signal(old, "s", b'"secret"')
    work.commit(states={"gone": b"2"})
    work.end(claimed[old])
    work.end(claimed[failed], state="failed", outcome="error")
    kit.advance(100)
    recent = work.submit()
    later = {one.id: one for one in work.claim(2)}
    work.step(later[recent])
    work.commit(states={"g": b"1"})
    work.end(later[recent])
    kit.sql("update group_state set touched = 1.0")
    assert store.purge(store.now() - 50, limit=1) == 1
    assert store.purge(store.now() - 50) == 1
    assert store.purge(store.now() - 50) == 0
    assert [store.context(run) for run in (old, failed)] == [None, None]
    assert work.kinds(old) == ["submitted", "step", "signal", "unheard", "ended", "purged"]
    assert not store.retry(failed, **OPERATOR)
    assert store.context(recent) == b'{"n":1}'
    assert [tuple(row) for row in kit.sql("select data from signal")] == [(None,)]
    assert [tuple(row) for row in kit.sql("select key from group_state")] == [("g",)]
    assert work.state(open_) == "running"
