"""Signals: they wake who waits, wait for who does not, and are never lost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from iocflow.store.contract import Batch, Ending, Rest, Store
from tests.contract.store.stores import Kit
from tests.contract.store.work import LEASE, Work

RACES = 300


def test_a_signal_wakes_the_run_that_waits(work: Work) -> None:
    """A run that waits for a signal costs nothing until it comes, and has it then."""
    run = work.submit()
    (claimed,) = work.claim()
    work.step(claimed)
    work.rest(claimed, waits=True)
    assert (work.state(run), work.ids()) == ("waiting", [])
    assert work.store.signal(run, "approved", b'{"by":"me"}')
    (again,) = work.claim()
    assert [(one.name, one.data) for one in again.signals] == [("approved", b'{"by":"me"}')]
    assert again.n == 1
    assert work.kinds(run) == ["submitted", "step", "signal"]
    assert work.store.history(run)[-1].name == "approved"


def test_signals_to_a_run_in_hand_can_be_asked_for(work: Work) -> None:
    """What came for runs since they were claimed is told in order, without what was consumed."""
    first, second = work.submit(), work.submit()
    claimed = work.claim()
    for name in ("a", "b", "c"):
        work.store.signal(first, name, b"1")
    told = work.store.signals([first, second])
    assert [(one.name, one.data) for one in told.pop(first)] == [("a", b"1"), ("b", b"1"), ("c", b"1")]
    assert told == {}
    work.commit(taken=[work.store.signals([first])[first][0].id], endings=[])
    assert [one.name for one in work.store.signals([first])[first]] == ["b", "c"]
    work.end(*claimed)
    assert work.store.signals([first]) == {}


def test_a_wait_may_end_without_a_signal(kit: Kit, work: Work) -> None:
    """A run that waits for a signal until a time goes on at that time."""
    run = work.submit()
    (claimed,) = work.claim()
    receipt = work.rest(claimed, work.store.now() + 100, waits=True)
    assert abs((receipt.wake or 0) - work.store.now() - 100) < 60
    kit.advance(101)
    (again,) = work.claim()
    assert (again.id, again.signals) == (run, [])


def test_a_signal_does_not_wake_who_waits_for_a_time_only(kit: Kit, work: Work) -> None:
    """A run in a retry delay sleeps on, and has the signal when it wakes."""
    run = work.submit()
    (claimed,) = work.claim()
    work.rest(claimed, work.store.now() + 100)
    assert work.store.signal(run, "early", b"1")
    assert work.ids() == []
    kit.advance(101)
    assert [one.name for one in work.claim()[0].signals] == ["early"]


def test_a_signal_that_came_before_the_rest_is_noticed(work: Work) -> None:
    """A run does not fall asleep over a signal that its worker did not know of, only over those that it knew."""
    run = work.submit()
    work.store.signal(run, "other", b"1")
    (claimed,) = work.claim()
    (known,) = claimed.signals
    work.store.signal(run, "approved", b"2")
    work.rest(claimed, waits=True, seen=known.id)
    (again,) = work.claim()
    assert [one.name for one in again.signals] == ["other", "approved"]
    work.rest(again, waits=True, seen=again.signals[-1].id)
    assert (work.state(run), work.ids()) == ("queued", [])


def test_a_signal_that_is_taken_with_the_rest_does_not_count(work: Work) -> None:
    """A run that consumed what came and waits for more falls asleep."""
    run = work.submit()
    work.store.signal(run, "first", b"1")
    (claimed,) = work.claim()
    rest = Rest(run, claimed.group, None, waits=True)
    work.commit(taken=[claimed.signals[0].id], rests=[rest], released=[claimed.group])
    assert work.ids() == []
    work.store.signal(run, "second", b"2")
    assert [one.name for one in work.claim()[0].signals] == ["second"]


def test_a_signal_to_a_closed_run_is_kept_as_dead(kit: Kit, work: Work) -> None:
    """A signal that comes too late is answered so, and is in the run's journal."""
    run = work.submit()
    work.end(*work.claim())
    assert not work.store.signal(run, "late", b"1")
    assert work.kinds(run) == ["submitted", "ended", "signal"]
    assert work.store.history(run)[-1].outcome == "run_ended"
    assert [tuple(row) for row in kit.sql("select name, fate from signal")] == [("late", "run_ended")]


@pytest.mark.parametrize("how", ["ended", "cancelled"])
def test_the_journal_tells_the_signals_that_nobody_took(kit: Kit, work: Work, how: str) -> None:
    """Of signals of one name, those that a run had not consumed when it ended are told of, before its end."""
    run, other = work.submit(), work.submit()
    for name in ("go", "go", "stop", "go"):
        work.store.signal(run, name, b"1")
    work.store.signal(other, "go", b"1")
    if how == "cancelled":
        assert work.store.cancel(run, who="ann", why="no")
        unheard = ["go", "go", "stop", "go"]
    else:
        claimed = {one.id: one for one in work.claim(2)}
        work.commit(taken=[one.id for one in claimed[run].signals[:2]])
        work.end(claimed[run])
        unheard = ["stop", "go"]
    entries = work.store.history(run)
    told = ["unheard"] * len(unheard)
    assert [entry.kind for entry in entries[-1 - len(told) :]] == [*told, "ended"]
    assert [entry.name for entry in entries if entry.kind == "unheard"] == unheard
    assert work.kinds(other) == ["submitted", "signal"]
    assert kit.sql("select count(*) from signal where fate is null")[0][0] == 1


def test_a_signal_to_nobody_is_refused(store: Store) -> None:
    """There is nothing to keep for a run that does not exist."""
    assert not store.signal(4711, "hello", b"1")


def test_a_suspended_run_keeps_its_signals(work: Work) -> None:
    """A signal to a suspended run waits until an operator lets it go on."""
    run = work.submit()
    (claimed,) = work.claim()
    work.end(claimed, state="suspended", outcome="error")
    assert work.store.signal(run, "approved", b"1")
    assert work.ids() == []
    work.store.retry(run, who="me", why="fixed")
    assert [one.name for one in work.claim()[0].signals] == ["approved"]


def test_a_waiting_run_holds_nobody_up(work: Work) -> None:
    """While a run waits, those behind it in its group go on; woken, it goes on after the one in progress."""
    runs = [work.submit(group="g") for _ in range(3)]
    claimed = work.claim()
    work.step(claimed[0])
    work.rest(claimed[0], waits=True)
    claimed = work.claim()
    assert [run.id for run in claimed] == runs[1:]
    work.step(claimed[0])
    work.store.signal(runs[0], "go", b"1")
    assert work.states(runs) == ["queued", "running", "queued"]
    work.release(*claimed)
    assert work.ids() == [runs[1], runs[0], runs[2]]


def test_no_signal_is_lost_to_an_end(kit: Kit, store: Store, work: Work) -> None:
    """Of signals that race with the end of their runs each is taken, or dead as `run_ended`; the answer says which."""
    runs = [work.submit() for _ in range(RACES)]
    claimed = {run.id: run for run in work.claim(RACES)}
    other = kit.open()
    turn = threading.Barrier(2)
    answers: dict[int, bool] = {}

    def send() -> None:
        for run in runs:
            turn.wait()
            answers[run] = other.signal(run, "race", b"1")

    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send)
        for run in runs:
            turn.wait()
            group = claimed[run].group
            batch = Batch(endings=[Ending(run, group, "completed", "ok")], released=[group])
            store.commit(work.id, batch, lease=LEASE)
        sending.result()
    fates = [fate for (fate,) in kit.sql("select fate from signal order by run")]
    assert fates == ["run_ended"] * RACES
    assert store.counts()["completed"] == RACES
    assert set(answers) == set(runs)


def test_no_signal_is_lost_to_a_rest(kit: Kit, store: Store, work: Work) -> None:
    """Of signals that race with the rest of their runs each wakes its run, or is there when it would fall asleep."""
    runs = [work.submit() for _ in range(RACES)]
    claimed = {run.id: run for run in work.claim(RACES)}
    other = kit.open()
    turn = threading.Barrier(2)

    def send() -> None:
        for run in runs:
            turn.wait()
            assert other.signal(run, "race", b"1")

    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send)
        for run in runs:
            turn.wait()
            group = claimed[run].group
            store.commit(work.id, Batch(rests=[Rest(run, group, None, waits=True)], released=[group]), lease=LEASE)
        sending.result()
    again = work.claim(RACES)
    assert sorted(run.id for run in again) == runs
    assert all(len(run.signals) == 1 for run in again)
