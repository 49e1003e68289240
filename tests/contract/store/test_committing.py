"""Committing: rows, ends, rests, states and releases in one transaction, and what the journal says of them."""

from __future__ import annotations

import json

import pytest

from iocflow.store.contract import Batch, Ending, Rest, Store
from iocflow.store.errors import StoreError
from tests.contract.store.stores import Kit
from tests.contract.store.work import LEASE, Work, record, submission

ERROR = {"type": "ValueError", "names": ["ValueError"], "message": "no"}


def test_steps_are_the_trail(work: Work) -> None:
    """Rows of steps are the entries of the journal, with all that they say."""
    run = work.submit()
    (claimed,) = work.claim()
    rows = [
        record(run, 1, name="a", attempts=2, result="next"),
        record(run, 2, name="b", kind="attempt", outcome="retry", error=json.dumps(ERROR)),
        record(run, 3, name="b", kind="mark"),
    ]
    work.commit(records=rows)
    first, *steps = work.store.history(run)
    assert (first.number, first.kind, first.name, first.who) == (1, "submitted", "order", "ACME")
    assert [(one.number, one.kind, one.name, one.outcome, one.attempts) for one in steps] == [
        (2, "step", "a", "ok", 2),
        (3, "attempt", "b", "retry", 1),
        (4, "mark", "b", "ok", 1),
    ]
    assert [(one.began, one.at, one.result) for one in steps[:1]] == [(11.0, 11.5, "next")]
    assert steps[1].error == ERROR
    status = work.store.status(run)
    assert status is not None
    assert (status.started, status.activity, status.steps) == (11.0, "b", 1)
    assert claimed.n == 0


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("completed", "ok"),
        ("completed", "stopped"),
        ("failed", "error"),
        ("failed", "timeout"),
        ("cancelled", "cancelled"),
    ],
)
def test_a_run_ends(work: Work, state: str, outcome: str) -> None:
    """A run that ended is closed with its outcome, reason and error, and its group is gone."""
    run = work.submit(group="g")
    (claimed,) = work.claim()
    work.step(claimed)
    work.end(claimed, state=state, outcome=outcome, reason="so", error=json.dumps(ERROR))
    status = work.store.status(run)
    assert status is not None
    assert (status.state, status.outcome, status.reason, status.error) == (state, outcome, "so", ERROR)
    assert status.ended is not None
    assert abs(status.ended - work.store.now()) < 60
    assert status.spent == pytest.approx(status.ended - status.submitted)
    assert work.kinds(run) == ["submitted", "step", "ended"]
    assert work.store.history(run)[-1].outcome == outcome
    assert work.ids() == []


def test_a_thousand_runs_are_committed_at_once(work: Work) -> None:
    """One commit takes the rows and ends of a thousand runs."""
    work.store.submit([submission() for _ in range(1000)])
    claimed = work.claim(1000)
    assert len(claimed) == 1000
    rows = [record(run.id, n) for run in claimed for n in (1, 2, 3)]
    endings = [Ending(run.id, run.group, "completed", "ok") for run in claimed]
    work.commit(records=rows, endings=endings, released=[run.group for run in claimed])
    counts = work.store.counts()
    assert (counts["completed"], counts["queued"], counts["running"]) == (1000, 0, 0)
    assert [status.steps for status in work.store.runs(limit=1000)] == [3] * 1000


def test_one_step_is_recorded_once(work: Work) -> None:
    """A second row of one number is refused, and all that was to be written with it."""
    run, other = work.submit(), work.submit()
    work.claim(2)
    work.commit(records=[record(run, 1)])
    with pytest.raises(StoreError):
        work.commit(records=[record(other, 1), record(run, 1)])
    assert work.kinds(other) == ["submitted"]


def test_a_commit_extends_the_lease_when_a_third_has_passed(kit: Kit, work: Work) -> None:
    """A worker that commits now and then lives on; one that does not is dead when its lease has passed."""
    for _ in range(4):
        kit.advance(LEASE * 0.7)
        work.commit()
    assert work.store.sweep(deliveries=5).workers == 0
    kit.advance(LEASE * 0.3)
    work.commit()
    kit.advance(LEASE + 1)
    assert work.store.sweep(deliveries=5).workers == 1


def test_who_sweeps_lives(kit: Kit, work: Work) -> None:
    """A worker that could not show life in time does not take over from itself; another one does."""
    run = work.submit()
    work.claim()
    kit.advance(LEASE + 1)
    assert work.store.sweep(deliveries=1, by=work.id).workers == 0
    assert work.state(run) == "running"
    assert work.store.sweep(deliveries=1, by=work.id + 1).workers == 1


def test_a_receipt_has_the_stores_time(kit: Kit, work: Work) -> None:
    """A commit tells the time on the store's clock."""
    kit.advance(10_000)
    assert abs(work.commit().now - work.store.now()) < 60


def test_a_suspended_run_holds_its_group(store: Store, work: Work) -> None:
    """A suspension releases the group, which nobody gets, and leaves the runs behind it; other groups go on."""
    runs = [work.submit(group="g") for _ in range(3)]
    claimed = work.claim()
    work.step(claimed[0], pos=None, outcome="failed")
    ending = Ending(runs[0], claimed[0].group, "suspended", "error", "undo failed", json.dumps(ERROR))
    work.commit(endings=[ending])
    status = store.status(runs[0])
    assert status is not None
    assert (status.state, status.outcome, status.reason, status.error) == ("suspended", "", "undo failed", ERROR)
    assert status.ended is None
    assert (work.ids(), Work(store).ids()) == ([], [])
    other = work.submit()
    assert work.ids() == [other]
    assert work.states(runs) == ["suspended", "queued", "queued"]
    assert work.kinds(runs[0]) == ["submitted", "step", "suspended"]
    assert [(one.outcome, one.error, one.why) for one in store.history(runs[0])][-1] == ("error", ERROR, "undo failed")


def test_a_rest_lets_the_group_go_on(kit: Kit, work: Work) -> None:
    """While a run rests, the next one of its group goes on; when it wakes, it is ready again."""
    first, second = work.submit(group="g"), work.submit(group="g")
    claimed = work.claim()
    work.step(claimed[0])
    receipt = work.rest(claimed[0], work.store.now() + 100)
    assert receipt.wake is not None
    assert abs(receipt.wake - work.store.now() - 100) < 60
    assert work.states([first, second]) == ["waiting", "queued"]
    (next_,) = work.claim()
    assert next_.id == second
    kit.advance(101)
    assert work.ids() == []
    assert work.states([first, second]) == ["queued", "running"]
    work.end(next_)
    (again,) = work.claim()
    assert (again.id, again.n) == (first, 1)


def test_a_run_that_woke_waits_for_the_one_in_progress(kit: Kit, work: Work) -> None:
    """A run that wakes while another of its group is in progress goes after it, though it came first."""
    first, second, third = (work.submit(group="g") for _ in range(3))
    claimed = work.claim()
    work.step(claimed[0])
    work.rest(claimed[0], work.store.now() + 100)
    claimed = work.claim()
    work.step(claimed[0])
    kit.advance(101)
    work.commit(claim=1)
    work.release(claimed[0])
    assert work.ids() == [second, first, third]


def test_a_rest_may_keep_the_group(kit: Kit, work: Work) -> None:
    """A started run in a retry delay keeps its group: nobody gets it until the run wakes, and goes first."""
    early = work.submit(group="g", not_before=work.store.now() + 50)
    first, second = work.submit(group="g"), work.submit(group="g")
    (run, _) = work.claim()
    work.step(run)
    work.commit(rests=[Rest(run.id, run.group, work.store.now() + 100, keep=True)])
    assert work.states([first, second]) == ["waiting", "queued"]
    third = work.submit(group="g")
    kit.advance(51)
    assert work.ids() == []
    kit.advance(50)
    assert work.ids() == [first, early, second, third]


def test_a_rest_that_is_over_is_none(work: Work) -> None:
    """A run that rests until a time that has passed can be claimed at once."""
    run = work.submit()
    (claimed,) = work.claim()
    assert (work.rest(claimed, work.store.now() - 1).wake or 0) < work.store.now()
    assert work.ids() == [run]


def test_a_group_that_only_sleeps_is_opened_by_a_new_run(work: Work) -> None:
    """A run that is submitted to a group whose runs all sleep is claimed at once."""
    work.submit(group="g", not_before=work.store.now() + 1000)
    assert work.ids() == []
    run = work.submit(group="g")
    assert work.ids() == [run]


def test_a_held_group_takes_new_runs(work: Work) -> None:
    """What is submitted to a group in hand comes with the next claim."""
    work.submit(group="g")
    claimed = work.claim()
    later = work.submit(group="g")
    assert work.ids() == []
    work.end(*claimed)
    assert work.ids() == [later]


def test_everything_of_a_batch_is_one_transaction(store: Store, work: Work) -> None:
    """When a part of a batch is refused, nothing of it is done: no state, no end, no rest, no claim."""
    run, other, third = (work.submit(group=f"g{i}") for i in range(3))
    first, second = work.claim(2)
    work.step(first)
    batch = Batch(
        records=[record(run, 1)],
        endings=[Ending(other, second.group, "completed", "ok")],
        rests=[Rest(run, first.group, 9e9)],
        states={"g0": b"1"},
        released=[second.group],
        claim=1,
    )
    with pytest.raises(StoreError):
        store.commit(work.id, batch, lease=LEASE)
    assert work.states([run, other, third]) == ["running", "running", "queued"]
    assert Work(store).ids() == [third]
