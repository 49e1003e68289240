"""Claiming: what a worker is given, of which group, and with what to go on from."""

from __future__ import annotations

from iocflow.store.contract import Saved, Signal, Store
from tests.contract.store.stores import Kit
from tests.contract.store.work import Work, record, submission


def test_a_claimed_run_is_what_was_submitted(kit: Kit, work: Work) -> None:
    """A claim gives the seed, the identity and the limits of a run that was not begun."""
    deadline = work.store.now() + 1000
    run = work.submit("17", body='{"name":"Ærø \\"x\\""}'.encode(), deadline=deadline, start_by=deadline - 1)
    (claimed,) = work.claim()
    assert (claimed.id, claimed.key, claimed.processor) == (run, None, "order")
    assert (claimed.body, claimed.submitter, claimed.number) == ('{"name":"Ærø \\"x\\""}'.encode(), "ACME", "17")
    assert abs((claimed.deadline or 0) - deadline) < 1e-4
    assert abs((claimed.start_by or 0) - deadline + 1) < 1e-4
    assert abs(claimed.submitted - work.store.now()) < 60
    assert (claimed.deliveries, claimed.suspect, claimed.ask, claimed.n) == (0, False, None, 0)
    assert (claimed.threads, claimed.signals, claimed.state) == ([], [], None)
    assert work.state(run) == "running"


def test_a_group_has_one_holder(store: Store, work: Work) -> None:
    """What one worker holds another cannot claim, nor it itself again, until it is released."""
    other = Work(store)
    runs = [work.submit(group="g") for _ in range(2)]
    (first, _) = work.claim()
    assert (other.ids(), work.ids()) == ([], [])
    work.release(first)
    assert other.ids() == runs


def test_runs_of_a_group_come_in_order_and_sixteen_at_a_time(work: Work) -> None:
    """A claim takes the first sixteen ready runs of a group, and the next claim those after them."""
    runs = [one.id for one in work.store.submit([submission(group="g") for _ in range(40)])]
    for slice in (runs[:16], runs[16:32], runs[32:]):
        claimed = work.claim()
        assert [run.id for run in claimed] == slice
        work.end(*claimed)
    assert work.ids() == []


def test_a_claim_takes_as_many_groups_as_asked(work: Work) -> None:
    """A claim of three groups gives three, says that more are left, and in the end that none are."""
    for i in range(5):
        work.submit(group=f"g{i}")
        work.submit(group=f"g{i}")
    first = work.commit(claim=3)
    assert len({run.group for run in first.claimed}) == 3
    assert len(first.claimed) == 6
    assert first.more
    last = work.commit(claim=3)
    assert len(last.claimed) == 4
    assert not last.more


def test_a_commit_without_a_claim_says_whether_there_is_more(work: Work) -> None:
    """`more` tells also who claims nothing that there is something to claim."""
    assert not work.commit().more
    work.submit()
    assert work.commit().more


def test_a_released_group_goes_back_with_its_next_run(kit: Kit, work: Work) -> None:
    """After each slice a group stands where its next run belongs, behind older ones of other groups."""
    first = work.submit(group="g")
    (held,) = work.claim()
    kit.advance(10)
    other = work.submit()
    kit.advance(10)
    second = work.submit(group="g")
    work.end(held)
    assert held.id == first
    assert [work.ids(1), work.ids(1)] == [[other], [second]]


def test_a_run_in_progress_comes_first(kit: Kit, work: Work) -> None:
    """A run that was left in the middle goes before the others of its group, also before one that woke meanwhile."""
    early = work.submit(group="g", not_before=work.store.now() + 5)
    begun, next_ = work.submit(group="g"), work.submit(group="g")
    claimed = work.claim()
    assert [run.id for run in claimed] == [begun, next_]
    work.step(claimed[0])
    kit.advance(10)
    work.release(*claimed)
    assert work.ids() == [begun, early, next_]


def test_a_delayed_run_does_not_hold_up_its_group(kit: Kit, work: Work) -> None:
    """A run that may not start for an hour lets those behind it in its group go first, and starts when it may."""
    late = work.submit(group="g", not_before=work.store.now() + 3600)
    now = work.submit(group="g")
    assert work.state(late) == "queued"
    claimed = work.claim()
    assert [run.id for run in claimed] == [now]
    assert abs((work.end(*claimed).wake or 0) - work.store.now() - 3600) < 60
    assert work.ids() == []
    kit.advance(3601)
    assert work.ids() == [late]


def test_a_run_that_was_begun_goes_on_from_its_last_place(work: Work) -> None:
    """A claim gives the last row with a position, and how many rows there are."""
    work.submit()
    (run,) = work.claim()
    work.step(run, 2)
    work.commit(records=[record(run.id, 3, pos=None, ctx=None, outcome="error")])
    work.release(run)
    (again,) = work.claim()
    assert again.n == 3
    assert again.threads == [Saved("", 2, "step", 0, '{"at":2}', b'{"n":2}')]


def test_a_context_that_did_not_change_is_found(work: Work) -> None:
    """The context of a place is the last one that was recorded at it or before it."""
    work.submit()
    (run,) = work.claim()
    work.commit(records=[record(run.id, 1), record(run.id, 2, ctx=None), record(run.id, 3, ctx=None, pos=None)])
    work.release(run)
    (again,) = work.claim()
    assert again.threads == [Saved("", 2, "step", 0, '{"at":2}', b'{"n":1}')]
    assert work.store.context(run.id) == b'{"n":1}'


def test_no_context_is_older_than_the_start(work: Work) -> None:
    """After a mark at the start the contexts before it do not count."""
    work.submit()
    (run,) = work.claim()
    start = record(run.id, 2, kind="mark", pos="0", ctx=None)
    work.commit(records=[record(run.id, 1), start])
    work.release(run)
    (again,) = work.claim()
    assert again.threads == [Saved("", 2, "mark", 0, "0", None)]
    assert work.store.context(run.id) is None
    work.commit(records=[record(run.id, 3, ctx=None)])
    work.release(again)
    assert work.claim()[0].threads == [Saved("", 3, "step", 0, '{"at":3}', None)]


def test_branches_go_on_from_their_own_places(work: Work) -> None:
    """Each branch that was forked since the outer thread's last row has its last place and its own last context."""
    work.submit()
    (run,) = work.claim()
    rows = [
        record(run.id, 1),
        record(run.id, 2, thread="0"),
        record(run.id, 3, thread="1"),
        record(run.id, 4, thread="0", ctx=None),
        record(run.id, 5, thread="1.0"),
        record(run.id, 6, thread="10", ctx=None),
    ]
    work.commit(records=rows)
    work.release(run)
    (again,) = work.claim()
    assert sorted(again.threads, key=lambda place: place.n) == [
        Saved("", 1, "step", 0, '{"at":1}', b'{"n":1}'),
        Saved("1", 3, "step", 0, '{"at":3}', b'{"n":3}'),
        Saved("0", 4, "step", 0, '{"at":4}', b'{"n":2}'),
        Saved("1.0", 5, "step", 0, '{"at":5}', b'{"n":5}'),
        Saved("10", 6, "step", 0, '{"at":6}', None),
    ]


def test_branches_that_were_joined_are_gone(work: Work) -> None:
    """What was forked before the last row of the thread that forked it is no place to go on from, nor its context."""
    work.submit()
    (run,) = work.claim()
    rows = [
        record(run.id, 1, thread="0"),
        record(run.id, 2),
        record(run.id, 3, thread="0.1"),
        record(run.id, 4, thread="0", ctx=None),
        record(run.id, 5, thread="0.1", ctx=None),
        record(run.id, 6, thread="0.2"),
        record(run.id, 7, thread="1.0"),
        record(run.id, 8, thread="1"),
    ]
    work.commit(records=rows)
    work.release(run)
    (again,) = work.claim()
    assert sorted(again.threads, key=lambda place: place.n) == [
        Saved("", 2, "step", 0, '{"at":2}', b'{"n":2}'),
        Saved("0", 4, "step", 0, '{"at":4}', None),
        Saved("0.1", 5, "step", 0, '{"at":5}', None),
        Saved("0.2", 6, "step", 0, '{"at":6}', b'{"n":6}'),
        Saved("1", 8, "step", 0, '{"at":8}', b'{"n":8}'),
    ]


def test_signals_come_along_in_order(work: Work) -> None:
    """A claim gives the signals that were not consumed yet, in order of arrival."""
    run = work.submit()
    for i in range(3):
        assert work.store.signal(run, f"s{i}", b'"%d"' % i)
    (claimed,) = work.claim()
    assert [signal.name for signal in claimed.signals] == ["s0", "s1", "s2"]
    work.commit(taken=[claimed.signals[1].id])
    work.release(claimed)
    (again,) = work.claim()
    assert again.signals == [Signal(one.id, one.name, one.data) for one in (claimed.signals[0], claimed.signals[2])]


def test_the_state_of_a_group_comes_along(store: Store, work: Work) -> None:
    """What a worker saved for a group is there for who claims it next, also when it had no runs in between."""
    work.submit(group="seat")
    (run,) = work.claim()
    assert run.state is None
    work.commit(states={"seat": b'{"row":4}'})
    work.end(run)
    work.submit(group="seat")
    other = Work(store)
    (next_,) = other.claim()
    assert next_.state == b'{"row":4}'
    other.commit(states={"seat": b'{"row":5}'})
    other.end(next_)
    work.submit(group="seat")
    assert work.claim()[0].state == b'{"row":5}'
