"""The memory source: a queue in the process, with a bound, and nothing lost in it."""

from __future__ import annotations

import threading
import time

import pytest

from iocflow.events.memory import MemorySource, QueueFullError
from iocflow.events.source import Reason


def test_events_come_in_order() -> None:
    """What is put in comes out in that order, with running ids unless they are given."""
    source = MemorySource("orders")
    source.put("a")
    source.put("b", id="mine", type="t", subject="s")
    first, second = source.receive(5, 0)
    assert (first.event.id, first.event.source, first.event.data) == ("1", "memory:orders", "a")
    assert (second.event.id, second.event.type, second.event.subject) == ("mine", "t", "s")


def test_no_more_than_asked_for() -> None:
    """A receiver gets what it has room for."""
    source = MemorySource("orders")
    for data in "abc":
        source.put(data)
    assert [one.event.data for one in source.receive(2, 0)] == ["a", "b"]


def test_given_back_comes_first() -> None:
    """What is given back is brought again before what came later."""
    source = MemorySource("orders")
    source.put("a")
    (taken,) = source.receive(1, 0)
    source.put("b")
    source.give_back(taken)
    assert [one.event.data for one in source.receive(2, 0)] == ["a", "b"]


def test_dead_letters_are_kept() -> None:
    """A failed event is kept with the reason."""
    source = MemorySource("orders")
    event = source.put("a")
    (taken,) = source.receive(1, 0)
    reason = Reason("no", "x", "p")
    source.dead_letter(taken, reason)
    assert list(source.dead) == [(event, reason)]


def test_a_full_queue_refuses() -> None:
    """What is not dealt with is bounded, what is in hand counted."""
    source = MemorySource("orders", limit=2)
    source.put("a")
    source.put("b")
    (taken,) = source.receive(1, 0)
    with pytest.raises(QueueFullError, match="memory:orders holds 2 events"):
        source.put("c")
    source.acknowledge(taken)
    source.put("c")


def test_join_waits_for_what_is_in_hand() -> None:
    """Joining ends when everything is settled, and not before."""
    source = MemorySource("orders")
    assert source.join(0)
    source.put("a")
    assert not source.join(0.01)
    (taken,) = source.receive(1, 0)
    assert not source.join(0.01)
    threading.Timer(0.05, source.acknowledge, [taken]).start()
    assert source.join(5)


def test_waking_ends_a_wait() -> None:
    """A receiver that waits returns empty-handed when it is woken, also when that came just before."""
    source = MemorySource("orders")
    began = time.perf_counter()
    threading.Timer(0.05, source.wake).start()
    assert source.receive(1, 10) == []
    source.wake()
    assert source.receive(1, 10) == []
    assert time.perf_counter() - began < 5
