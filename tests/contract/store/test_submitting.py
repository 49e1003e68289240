"""Submitting: identity, all or none, and the order in which runs are served."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from iocflow.store.contract import AGEING, Accepted, Store
from tests.contract.store.stores import Kit
from tests.contract.store.work import Work, submission


def test_a_new_run_is_queued(store: Store) -> None:
    """A submission becomes a run in state queued that says what was submitted."""
    one = submission("PO-17", group="order-17", priority=5, deadline=9e9, processor="order", body=b'{"po":17}')
    (accepted,) = store.submit([one])
    assert accepted.what == "new"
    status = store.status(accepted.id)
    assert status is not None
    assert (status.submitter, status.number, status.processor) == ("ACME", "PO-17", "order")
    assert (status.state, status.outcome, status.reason, status.error) == ("queued", "", "", None)
    assert (status.group, status.priority, status.deadline, status.deliveries) == ("order-17", 5, 9e9, 0)
    assert (status.started, status.ended, status.activity, status.steps) == (None, None, "", 0)
    assert abs(status.submitted - store.now()) < 60
    assert 0 <= status.spent < 60


def test_a_known_identity_gives_the_same_run(store: Store) -> None:
    """The same submitter and number with the same digest is known, with another a conflict; both tell the run's id."""
    first, other = store.submit([submission("17"), submission("18")])
    assert store.submit([submission("17")]) == [Accepted(first.id, "known")]
    assert store.submit([submission("18", digest="another")]) == [Accepted(other.id, "conflict")]
    assert store.submit([submission("17", submitter="BETA")])[0].what == "new"


def test_an_identity_is_known_within_one_batch(store: Store) -> None:
    """Of two submissions of one identity in a batch the first is new, the second known or a conflict."""
    first, again, other = store.submit([submission("17"), submission("17"), submission("17", digest="another")])
    assert (first.what, again, other) == ("new", Accepted(first.id, "known"), Accepted(first.id, "conflict"))


def test_an_identity_is_known_for_ever(work: Work) -> None:
    """A run that has ended keeps its identity."""
    run = work.submit("17")
    work.end(*work.claim())
    assert work.store.submit([submission("17")]) == [Accepted(run, "known")]
    assert work.store.find("ACME", "17") == run


def test_nothing_submitted_is_nothing_done(store: Store) -> None:
    """An empty batch is accepted as such."""
    assert store.submit([]) == []


def test_ids_rise_in_order_of_submission(store: Store) -> None:
    """Runs of one batch and of later ones have rising ids, whichever of them were known before."""
    first = store.submit([submission("a"), submission("b")])
    later = store.submit([submission("c"), submission("a"), submission("d")])
    new = [one.id for one in (*first, *later) if one.what == "new"]
    assert new == sorted(set(new))
    assert len(new) == 4


def test_twenty_threads_submit_one_identity(kit: Kit, store: Store) -> None:
    """One of twenty threads that submit the same at once makes the run; all get the same id."""
    stores = [kit.open() for _ in range(4)]
    barrier = threading.Barrier(20)

    def submit(i: int) -> Accepted:
        barrier.wait()
        return stores[i % 4].submit([submission("PO-17")])[0]

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(submit, range(20)))
    assert len({answer.id for answer in answers}) == 1
    assert sorted(answer.what for answer in answers) == ["known"] * 19 + ["new"]
    assert store.submit([submission("PO-17", digest="another")])[0].what == "conflict"
    assert store.submit([submission("PO-17", submitter="BETA")])[0].what == "new"


def test_a_large_batch_can_be_sent_again(store: Store) -> None:
    """Of 10,000 submissions of which 6,000 are there, 4,000 are new, and all keep their places."""
    batch = [submission(str(i), group=f"g{i % 700}") for i in range(10_000)]
    first = store.submit(batch[:6000])
    again = store.submit(batch)
    assert [one.id for one in again[:6000]] == [one.id for one in first]
    assert [one.what for one in again] == ["known"] * 6000 + ["new"] * 4000
    assert len({one.id for one in again}) == 10_000
    assert store.counts()["queued"] == 10_000


def test_a_batch_is_added_whole_or_not(kit: Kit, store: Store) -> None:
    """A batch in which one submission cannot be stored adds none of them."""
    wrong = submission("b", body=None)
    object.__setattr__(wrong, "digest", None)
    with pytest.raises(Exception, match=r"(?i)null"):
        store.submit([submission("a"), wrong])
    assert store.counts()["queued"] == 0
    assert store.submit([submission("a")])[0].what == "new"


def test_the_higher_priority_goes_first(work: Work) -> None:
    """Of groups that were submitted together those of the higher priority are claimed first, else the older ones."""
    low = [work.submit(priority=1) for _ in range(5)]
    high = [work.submit(priority=8) for _ in range(5)]
    assert [work.ids(1) for _ in range(10)] == [[run] for run in high + low]


def test_priority_does_not_change_the_order_in_a_group(work: Work) -> None:
    """Runs of one group go in order of submission, whatever their priorities."""
    runs = [work.submit(group="g", priority=priority) for priority in (1, 9, 5)]
    assert work.ids() == runs


def test_a_group_waits_for_its_first_run_whatever_comes_behind_it(store: Store, work: Work) -> None:
    """Of a batch into one group the first run says how long the group waits, not the most urgent one."""
    store.submit([submission("first", group="g"), submission("urgent", group="g", priority=9)])
    other = work.submit(priority=1)
    assert [run.id for run in work.claim(1)] == [other]
    assert list(store.doctor()) == []


def test_waiting_is_worth_priority(kit: Kit, work: Work) -> None:
    """A run that has waited a minute for each level of difference goes before one of a higher priority."""
    old = work.submit(priority=1)
    kit.advance(6 * AGEING)
    before = work.submit(priority=8)
    kit.advance(2 * AGEING)
    after = work.submit(priority=8)
    assert [work.ids(1) for _ in range(3)] == [[before], [old], [after]]


def test_no_flow_of_higher_priority_starves_a_run(kit: Kit, work: Work) -> None:
    """In an endless flow of priority 8, a run of priority 1 is served within eight times the ageing."""
    low = work.submit(priority=1)
    served: list[list[int]] = []
    while low not in (served[-1] if served else ()):
        work.submit(priority=8)
        work.submit(priority=8)
        served.append(work.ids(2))
        kit.advance(AGEING)
    assert len(served) - 1 <= 8
