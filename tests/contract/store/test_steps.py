"""The transaction of one step in mode `transactional`: user code and record commit or roll back together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iocflow.store.contract import Batch, Ending, StepTransaction, Store
from iocflow.store.errors import FencedError, StoreError, TransactionError
from tests.contract.store.stores import Kit
from tests.contract.store.work import LEASE, LONG, Work, record, submission


@pytest.fixture
def run(kit: Kit, work: Work) -> int:
    """Return a run in hand, beside a table of the user's own."""
    kit.sql("create table seat(no integer)")
    run = work.submit(group="g")
    work.claim()
    return run


def seats(kit: Kit) -> list[int]:
    """Return what is in the user's table."""
    return [no for (no,) in kit.sql("select no from seat order by no")]


def take(step: StepTransaction, seat: int) -> None:
    """Do what an activity does."""
    step.connection.execute(f"insert into seat values ({seat})")


def attempt(work: Work, *acts: Callable[[StepTransaction], object]) -> None:
    """Begin a step, and do these things in it."""
    with work.store.begin(work.id, lease=LEASE) as step:
        for act in acts:
            act(step)


def test_a_step_commits_with_its_record(kit: Kit, store: Store, work: Work, run: int) -> None:
    """What the activity wrote and the step's record are there together."""
    with store.begin(work.id, lease=LEASE) as step:
        take(step, 4)
        receipt = step.commit(Batch(records=[record(run, 1)]))
    assert receipt.dropped == frozenset()
    assert seats(kit) == [4]
    assert work.kinds(run) == ["submitted", "step"]


def test_a_step_that_is_not_committed_leaves_nothing(kit: Kit, store: Store, work: Work, run: int) -> None:
    """Leaving without a commit, or by an exception of any kind, rolls back; the exception is the activity's own."""
    with store.begin(work.id, lease=LEASE) as step:
        take(step, 1)
    with store.begin(work.id, lease=LEASE) as step:
        take(step, 2)
        step.rollback()
    for error in (OSError("the activity's own"), KeyboardInterrupt()):

        def fail(step: StepTransaction, error: BaseException = error) -> None:
            take(step, 3)
            raise error

        with pytest.raises(type(error)) as raised:
            attempt(work, fail)
        assert raised.value is error
    assert seats(kit) == []
    assert work.kinds(run) == ["submitted"]
    work.commit(records=[record(run, 1)])


def test_what_the_activity_did_can_be_undone(kit: Kit, store: Store, work: Work, run: int) -> None:
    """Undoing takes back what the activity did, not what its handler does after that; it can be done again."""
    with store.begin(work.id, lease=LEASE) as step:
        take(step, 1)
        step.undo()
        take(step, 2)
        step.undo()
        take(step, 3)
        step.commit(Batch(records=[record(run, 1, outcome="handled")]))
    assert seats(kit) == [3]


def test_a_failed_statement_can_be_undone(kit: Kit, store: Store, work: Work, run: int) -> None:
    """After a statement that the database refused, the step can be undone and recorded."""
    with store.begin(work.id, lease=LEASE) as step:
        take(step, 1)
        with pytest.raises(Exception, match="nowhere"):
            step.connection.execute("insert into nowhere values (1)")
        step.undo()
        step.commit(Batch(records=[record(run, 1, outcome="error")]))
    assert seats(kit) == []
    assert work.kinds(run) == ["submitted", "step"]


def test_the_last_step_ends_the_run_and_claims(kit: Kit, store: Store, work: Work, run: int) -> None:
    """A step's commit may end the run, release its group and claim the next, as any commit."""
    next_ = work.submit()
    (group,) = [group for (group,) in kit.sql("select id from grp where owner is not null")]
    batch = Batch(
        records=[record(run, 1)],
        endings=[Ending(run, group, "completed", "ok")],
        released=[group],
        states={"g": b"1"},
        claim=1,
    )
    with store.begin(work.id, lease=LEASE) as step:
        take(step, 1)
        receipt = step.commit(batch)
    assert [one.id for one in receipt.claimed] == [next_]
    assert work.states([run, next_]) == ["completed", "running"]


def test_the_activity_may_not_end_the_transaction(kit: Kit, store: Store, work: Work, run: int) -> None:
    """A commit or roll back by the activity is refused or found out; the step is then not recorded, the next one is."""
    for statement in ("commit", "rollback"):

        def end(step: StepTransaction, statement: str = statement) -> None:
            step.connection.execute(statement)

        with pytest.raises(TransactionError):
            attempt(work, end, lambda step: step.commit(Batch(records=[record(run, 1)])))
        with pytest.raises(TransactionError):
            attempt(work, end, lambda step: step.undo())
    assert work.kinds(run) == ["submitted"]
    with store.begin(work.id, lease=LEASE) as step:
        take(step, 7)
        step.commit(Batch(records=[record(run, 1)]))
    assert (seats(kit), work.kinds(run)) == ([7], ["submitted", "step"])


@pytest.mark.parametrize("call", ["commit", "rollback"])
def test_the_connections_own_methods_end_nothing(kit: Kit, store: Store, work: Work, run: int, call: str) -> None:
    """The activity's own `commit` or `rollback` raises at once, or is found out at the latest at the step's commit."""
    batch = Batch(records=[record(run, 1)])
    with pytest.raises(StoreError):
        attempt(work, lambda step: getattr(step.connection, call)(), lambda step: step.commit(batch))
    assert work.kinds(run) == ["submitted"]


def test_an_activity_that_closes_the_connection_is_found_out(kit: Kit, work: Work, run: int) -> None:
    """A closed connection ends the transaction; the step is not recorded, the next one is."""
    with pytest.raises(StoreError):
        attempt(
            work,
            lambda step: take(step, 1),
            lambda step: step.connection.close(),
            lambda step: step.commit(Batch(records=[record(run, 1)])),
        )
    assert (seats(kit), work.kinds(run)) == ([], ["submitted"])
    attempt(work, lambda step: take(step, 2), lambda step: step.commit(Batch(records=[record(run, 1)])))
    assert (seats(kit), work.kinds(run)) == ([2], ["submitted", "step"])


def test_a_fenced_worker_cannot_begin_a_step(kit: Kit, store: Store, work: Work, run: int) -> None:
    """Who was taken for dead does nothing more, not even the activity."""
    kit.advance(LEASE + 1)
    store.sweep(deliveries=5)
    with pytest.raises(FencedError):
        attempt(work, lambda step: take(step, 1))
    assert seats(kit) == []


def test_a_run_that_was_taken_away_is_not_committed(kit: Kit, store: Store) -> None:
    """When its run was cancelled before, nothing of a step is committed; the receipt says so, and the next commit."""
    kit.sql("create table seat(no integer)")
    work = Work(store, LONG)
    run = work.submit()
    (claimed,) = work.claim()
    work.step(claimed)
    store.cancel(run, who="me", why="no")
    with store.begin(work.id, lease=LONG) as step:
        take(step, 1)
        receipt = step.commit(Batch(records=[record(run, 2)]))
    assert receipt.dropped == frozenset({run})
    assert seats(kit) == []
    assert work.kinds(run) == ["submitted", "step", "cancel", "fenced_out"]
    assert work.commit().dropped == frozenset({run})


def test_another_run_that_was_taken_away_does_not_matter(kit: Kit, store: Store, work: Work, run: int) -> None:
    """A step is committed though another run of its worker was cancelled, and says so; so does the next commit."""
    other = work.submit()
    (claimed,) = work.claim()
    work.step(claimed)
    store.cancel(other, who="me", why="no")
    with store.begin(work.id, lease=LEASE) as step:
        take(step, 1)
        receipt = step.commit(Batch(records=[record(run, 1)], claim=1))
    assert (receipt.dropped, receipt.claimed) == (frozenset({other}), [])
    assert seats(kit) == [1]
    assert work.commit().dropped == frozenset({other})


def test_a_step_can_submit(kit: Kit, store: Store, work: Work, run: int) -> None:
    """Runs that a step submits in its own transaction are there with its record, or not at all."""
    for rolled_back in (True, False):
        with store.begin(work.id, lease=LEASE) as step:
            (accepted,) = store.submit([submission("next")], transaction=step.connection)
            if rolled_back:
                continue
            step.commit(Batch(records=[record(run, 1)]))
    assert accepted.what == "new"
    assert store.counts()["queued"] == 1
    assert store.find("ACME", "next") == accepted.id
