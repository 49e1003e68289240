"""Workers: leases, death and take-over, blame and suspicion, and what a fenced one can no longer do."""

from __future__ import annotations

import pytest

from iocflow.store.contract import Batch, Ending, Store, Swept
from iocflow.store.errors import FencedError
from tests.contract.store.stores import Kit
from tests.contract.store.work import LEASE, Work, record


def die(kit: Kit, store: Store) -> Swept:
    """Let all workers' leases run out, and sweep."""
    kit.advance(LEASE + 1)
    return store.sweep(deliveries=5)


def test_ids_of_workers_rise(kit: Kit, store: Store) -> None:
    """A worker's id is higher than that of every worker before, also when these are gone."""
    first = store.register(LEASE, "host", 1)
    second = store.register(LEASE, "host", 1)
    store.retire(second)
    store.retire(first)
    assert first < second < kit.open().register(LEASE, "host", 1)


def test_a_beat_extends_the_lease(kit: Kit, store: Store, work: Work) -> None:
    """A worker that shows life is not taken for dead."""
    for _ in range(4):
        kit.advance(LEASE * 0.7)
        assert store.beat(work.id, lease=LEASE) == frozenset()
    assert store.sweep(deliveries=5).workers == 0


def test_what_a_dead_worker_held_is_taken_over(kit: Kit, store: Store, work: Work) -> None:
    """A run whose worker died goes on at another from its last row; the death counts, and is in the journal."""
    run = work.submit()
    (claimed,) = work.claim()
    work.step(claimed)
    assert die(kit, store) == (1, 1, 0, 0)
    assert work.state(run) == "queued"
    (again,) = Work(store).claim()
    assert (again.id, again.n, again.deliveries, again.suspect) == (run, 1, 1, True)
    assert work.kinds(run) == ["submitted", "step", "lost"]
    assert store.sweep(deliveries=5) == (0, 0, 0, 0)


def test_a_fenced_worker_writes_nothing(kit: Kit, store: Store, work: Work) -> None:
    """A worker that was stopped for longer than its lease loses its commit as a whole, and beats no more."""
    run = work.submit(group="g")
    (late,) = work.claim()
    die(kit, store)
    other = Work(store)
    (claimed,) = other.claim()
    other.step(claimed)
    with pytest.raises(FencedError):
        work.step(late)
    with pytest.raises(FencedError):
        store.commit(work.id, Batch(records=[record(run, 1)], states={"g": b"1"}, claim=1), lease=LEASE)
    with pytest.raises(FencedError):
        store.beat(work.id, lease=LEASE)
    with pytest.raises(FencedError), store.begin(work.id, lease=LEASE):
        pytest.fail("a fenced worker began a step")
    assert work.kinds(run) == ["submitted", "lost", "step"]
    other.end(claimed)
    assert work.state(run) == "completed"


def test_what_a_worker_dropped_by_itself_is_told(kit: Kit, store: Store, work: Work) -> None:
    """A worker that knows that a run was taken from it, and drops its result, says so; others go on undisturbed."""
    run, other = work.submit(), work.submit()
    work.claim(2)
    die(kit, store)
    heir = Work(store)
    (again,) = heir.claim(1)
    store.fenced_out(work.id, {run: "credit, stock", other: ""})
    heir.step(again)
    assert work.kinds(run) == ["submitted", "lost", "fenced_out", "step"]
    assert work.kinds(other) == ["submitted", "lost", "fenced_out"]


def test_a_late_worker_that_was_not_swept_goes_on(kit: Kit, store: Store, work: Work) -> None:
    """A lease that has run out costs nothing until somebody sweeps."""
    work.submit()
    (claimed,) = work.claim()
    kit.advance(LEASE * 3)
    work.step(claimed)
    assert store.sweep(deliveries=5) == (0, 0, 0, 0)


def test_the_first_unfinished_run_of_each_group_is_blamed(kit: Kit, store: Store, work: Work) -> None:
    """Of each group that a dead worker held one run is to blame: the one in progress, else the first."""
    first = [work.submit(group="a") for _ in range(3)]
    second = [work.submit(group="b") for _ in range(3)]
    claimed = {run.id: run for run in work.claim(2)}
    work.end(claimed[first[0]])
    again = work.claim()
    work.step(again[0])
    assert [run.id for run in again] == first[1:]
    assert die(kit, store) == (1, 2, 0, 0)
    blamed = [run.id for run in store.runs() if run.deliveries]
    assert blamed == [first[1], second[0]]


def test_a_dead_worker_with_nothing_in_hand_is_just_gone(kit: Kit, store: Store, work: Work) -> None:
    """Nobody is blamed for a group whose runs had all ended."""
    work.submit(group="g")
    (run,) = work.claim()
    work.end(run)
    assert die(kit, store) == (1, 0, 0, 0)


def test_suspects_are_run_alone(kit: Kit, store: Store, work: Work) -> None:
    """A suspect is given as one run to a worker with nothing else in hand; nothing is given past it before."""
    runs = [work.submit(group="g") for _ in range(3)]
    work.claim()
    kit.advance(1)
    later = work.submit()
    die(kit, store)
    other = Work(store)
    receipt = other.commit(claim=5, alone=False)
    assert (receipt.claimed, receipt.more) == ([], False)
    receipt = other.commit(claim=5, alone=True)
    assert ([run.id for run in receipt.claimed], receipt.more) == ([runs[0]], False)
    assert receipt.claimed[0].suspect
    third = Work(store)
    assert third.ids() == [later]
    other.end(*receipt.claimed)
    claimed = other.claim()
    assert [(run.id, run.suspect) for run in claimed] == [(run, False) for run in runs[1:]]


def test_nothing_is_given_past_a_suspect(kit: Kit, store: Store, work: Work) -> None:
    """Innocent groups before a suspect are given without it, those behind it wait for it."""
    suspect = work.submit(priority=1)
    work.claim()
    before, after = work.submit(priority=9), work.submit(priority=0)
    die(kit, store)
    other = Work(store)
    receipt = other.commit(claim=5, alone=True)
    assert ([run.id for run in receipt.claimed], receipt.more) == ([before], False)
    other.end(*receipt.claimed)
    (claimed,) = other.claim()
    assert (claimed.id, claimed.suspect) == (suspect, True)
    other.end(claimed)
    assert other.ids() == [after]


def test_a_suspect_that_rests_is_cleared(kit: Kit, store: Store, work: Work) -> None:
    """A run that came to a rest did not kill its worker."""
    run = work.submit()
    work.claim()
    die(kit, store)
    other = Work(store)
    (claimed,) = other.claim()
    assert claimed.suspect
    other.step(claimed)
    other.rest(claimed, store.now() - 1)
    (again,) = other.claim()
    assert (again.id, again.suspect, again.deliveries) == (run, False, 1)


def test_poison_is_suspended_with_its_group(kit: Kit, store: Store, work: Work) -> None:
    """At the fifth worker that died with it a run is suspended as poison; its group is held up, others finish."""
    poison, behind = work.submit(group="g"), work.submit(group="g")
    for death in range(1, 6):
        worker = Work(store)
        assert [run.id for run in worker.claim()][:1] == [poison]
        swept = die(kit, store)
        assert (swept.lost, swept.poisoned) == (1, 1 if death == 5 else 0)
    status = store.status(poison)
    assert status is not None
    assert (status.state, status.reason, status.deliveries) == ("suspended", "poison", 5)
    other = Work(store)
    assert other.ids() == []
    fine = work.submit()
    assert other.ids() == [fine]
    assert work.state(behind) == "queued"
    assert work.kinds(poison) == ["submitted"] + ["lost"] * 5 + ["suspended"]


def test_a_worker_that_retires_gives_back(store: Store, work: Work) -> None:
    """What a worker held when it retired is free at once, nobody is blamed, and the run in progress goes first."""
    runs = [work.submit(group="g") for _ in range(2)]
    first, _ = work.claim()
    work.step(first)
    store.retire(work.id)
    other = Work(store)
    claimed = other.claim()
    assert [(run.id, run.n, run.deliveries, run.suspect) for run in claimed] == [
        (runs[0], 1, 0, False),
        (runs[1], 0, 0, False),
    ]
    with pytest.raises(FencedError):
        work.commit()


def test_a_suspect_that_is_given_back_stays_one(kit: Kit, store: Store, work: Work) -> None:
    """Suspicion outlives a worker that retires with the suspect in hand."""
    work.submit()
    work.claim()
    die(kit, store)
    other = Work(store)
    assert other.claim()[0].suspect
    store.retire(other.id)
    assert Work(store).claim()[0].suspect


def test_nobody_is_blamed_for_a_run_that_had_ended(kit: Kit, store: Store, work: Work) -> None:
    """A group whose runs had all ended, and which its worker did not release, is gone with the worker."""
    run = work.submit(group="g")
    (claimed,) = work.claim()
    work.commit(endings=[Ending(run, claimed.group, "completed", "ok")])
    assert die(kit, store) == (1, 0, 0, 0)
    assert work.state(run) == "completed"


def test_nobody_is_blamed_for_what_was_not_in_hand(kit: Kit, store: Store, work: Work) -> None:
    """A run that woke after the claim was in no worker's hands, though it comes before the one that was."""
    sleeper = work.submit(group="g", not_before=store.now() + 10)
    run = work.submit(group="g")
    assert work.ids() == [run]
    kit.advance(11)
    work.commit(claim=1)
    assert work.states([sleeper, run]) == ["queued", "running"]
    die(kit, store)
    assert [one.deliveries for one in store.runs()] == [0, 1]
