"""The outgoing events of runs: written with a step's record, sent by one relay, in the order of each run."""

from __future__ import annotations

import pytest

from iocflow.store.contract import Store
from iocflow.store.errors import FencedError
from tests.contract.store.stores import Kit
from tests.contract.store.work import LEASE, Work, record


def publish(run: int, n: int, text: str) -> object:
    """Return the row of an outgoing event."""
    return record(run, n, kind="publish", pos=None, ctx=None, outcome="", attempts=0, result=text)


def pending(store: Store, after: int = 0, limit: int = 100) -> list[tuple[int, int, str]]:
    """Return what is to be sent."""
    return [(one.run, one.n, one.text) for one in store.outbox.pending(after, limit)]


def test_an_event_waits_until_it_is_sent(store: Store, work: Work) -> None:
    """The oldest of each run is offered, then the next; the journal tells of both, also before they are sent."""
    runs = [work.submit() for _ in range(3)]
    for claimed in work.claim(3):
        rows = [publish(claimed.id, 1, "a"), publish(claimed.id, 2, "b"), record(claimed.id, 3)]
        work.commit(records=rows)
    assert pending(store) == [(run, 1, "a") for run in runs]
    assert pending(store, limit=2) == [(run, 1, "a") for run in runs[:2]]
    assert pending(store, after=runs[0]) == [(run, 1, "a") for run in runs[1:]]
    store.outbox.sent([(runs[0], 1), (runs[1], 1)])
    store.outbox.sent([(runs[0], 1)])
    assert pending(store) == [(runs[0], 2, "b"), (runs[1], 2, "b"), (runs[2], 1, "a")]
    assert work.kinds(runs[0]) == ["submitted", "published", "publish", "step"]


def test_a_refusal_is_told(store: Store, work: Work) -> None:
    """Why an event was refused stands in the journal until it is sent."""
    run = work.submit()
    work.claim()
    work.commit(records=[publish(run, 1, "a"), record(run, 2)])
    store.outbox.refused(run, 1, "{}")
    (one,) = store.outbox.pending(0, 10)
    assert (one.error, one.activity) == ("{}", "step1")
    store.outbox.sent([(run, 1)])
    store.outbox.refused(run, 1, "{}")
    assert store.outbox.pending(0, 10) == []
    (entry,) = [entry for entry in store.history(run) if entry.kind == "published"]
    assert entry.error is None


def test_what_was_taken_away_publishes_nothing(kit: Kit, store: Store, work: Work) -> None:
    """An event of a worker that was taken for dead is not written, as its step is not."""
    run = work.submit()
    work.claim()
    kit.advance(LEASE + 1)
    store.sweep(deliveries=5)
    with pytest.raises(FencedError):
        work.commit(records=[publish(run, 1, "a"), record(run, 2)])
    assert pending(store) == []


def test_a_purge_leaves_what_is_to_be_sent(store: Store, work: Work) -> None:
    """The data of events that were sent is purged with the run, that of others stays until they are."""
    run = work.submit()
    (claimed,) = work.claim()
    work.commit(records=[publish(run, 1, "a"), publish(run, 2, "b"), record(run, 3)])
    work.end(claimed)
    store.outbox.sent([(run, 1)])
    assert store.purge(store.now() + 1) == 1
    assert pending(store) == [(run, 2, "b")]
    assert [entry.result for entry in store.history(run) if entry.kind.startswith("publish")] == [None, "b"]


def test_one_relay_at_a_time(kit: Kit, store: Store) -> None:
    """Of many relays one sends; another can when that one has let go, or its store is closed."""
    other, third = kit.open(), kit.open()
    assert store.outbox.hold()
    assert store.outbox.hold()
    assert not other.outbox.hold()
    store.outbox.release()
    assert other.outbox.hold()
    assert not store.outbox.hold()
    other.close()
    assert third.outbox.hold()
    third.outbox.release()
