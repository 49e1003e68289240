"""Workers: stopping with runs in hand, sharing work, giving back, and taking over from the dead."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from iocflow import ProcessContext, activity
from iocflow.store.contract import Batch
from tests.integration.durable.house import House, Ledger


class Work(ProcessContext):
    """A context that counts."""

    seed_data: int = 0
    n: int = 0


def add(context: Work) -> None:
    context.n += 1


class Gate:
    """An activity that waits until it is let go."""

    def __init__(self) -> None:
        self.entered, self.go_on = threading.Event(), threading.Event()

    def __call__(self, context: Work) -> None:
        self.entered.set()
        self.go_on.wait(20)
        context.n += 100


@pytest.fixture
def gate() -> Gate:
    return Gate()


def test_a_graceful_stop(house: House, gate: Gate) -> None:
    """A worker that is stopped ends the activity under way and gives back the rest: others go on at once, uncounted."""
    ledger = Ledger()

    def note(context: Work) -> None:
        ledger.note(context, context.seed_data)

    def first(context: Work) -> None:
        if context.seed_data == 0:
            gate(context)

    house.sequence(note, first, add, context=Work)
    runs = [house.submit(seed=i, group=f"g{i % 3}") for i in range(9)]
    worker = house.worker(threads=1)
    gate.entered.wait(20)
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    time.sleep(0.02)
    assert stopping.is_alive()
    gate.go_on.set()
    stopping.join(20)
    assert house.kit.sql("select count(*) from worker") == [(0,)]
    assert house.trail(runs[0]) == "note, first"
    house.work()
    assert house.wait_all(runs) == ["completed"] * 9
    assert {house.client.status(run).deliveries for run in runs} == {0}
    assert Counter(ledger.whats) == Counter(range(9))
    assert house.trail(runs[0]) == "note, first, add"
    assert house.context(runs[0]).n == 101


def test_a_stop_without_patience(house: House, gate: Gate) -> None:
    """An activity that does not end in time is left alone: it is done again elsewhere, its late result is refused."""
    house.sequence(add, activity(gate, name="gate"), context=Work)
    run = house.submit()
    worker = house.worker(threads=1, lease=30.0, tick=1000.0)
    gate.entered.wait(20)
    assert not worker.stop(0.02)
    other = house.worker()
    time.sleep(0.05)
    assert house.state(run) == "running"
    house.kit.advance(31)
    house.eventually(lambda: house.client.status(run).deliveries)
    gate.go_on.set()
    assert house.wait(run).state == "completed"
    assert (house.trail(run), house.context(run).n) == ("add, gate", 101)
    assert worker.stop(20)
    assert other.stop(20)


def test_two_workers_share(house: House) -> None:
    """Two workers in one process share what there is; each run is done once."""
    ledger = Ledger()

    def note(context: Work) -> None:
        ledger.note(context, threading.get_ident())
        time.sleep(0.002)

    house.sequence(note, note, context=Work)
    house.client.submit_many("job", range(200))
    workers = [house.worker(threads=2) for _ in range(2)]
    house.eventually(lambda: house.store.counts()["completed"] == 200)
    assert len(ledger.calls) == 400 == ledger.effects
    used = set(ledger.whats)
    for worker in workers:
        assert used & {thread.ident for thread in worker._threads}


def test_what_is_not_begun_is_given_back(house: House, gate: Gate) -> None:
    """A worker whose threads are all busy for long gives back what it has not begun: another one does it."""

    def first(context: Work) -> None:
        if context.seed_data == 0:
            gate(context)

    house.sequence(first, add, context=Work)
    runs = [house.submit(seed=i, group=f"g{i}") for i in range(8)]
    house.worker(threads=1)
    gate.entered.wait(20)
    house.worker(threads=1)
    assert house.wait_all(runs[1:]) == ["completed"] * 7
    assert house.state(runs[0]) == "running"
    gate.go_on.set()
    assert house.wait(runs[0]).state == "completed"
    assert {house.client.status(run).deliveries for run in runs} == {0}


def test_taking_over(house: House) -> None:
    """K5: a worker died after it had claimed: its runs are swept when its lease has run out, counted, and done."""
    house.sequence(add, context=Work)
    runs = [house.submit(group=f"g{i}") for i in range(3)]
    dead = house.store.register(30.0, "elsewhere", 1)
    assert len(house.store.commit(dead, Batch(claim=10, alone=True), lease=30.0).claimed) == 3
    house.work()
    assert [house.state(run) for run in runs] == ["running"] * 3
    house.kit.advance(31)
    house.worker()
    assert house.wait_all(runs) == ["completed"] * 3
    assert [house.client.status(run).deliveries for run in runs] == [1] * 3
    assert house.kinds(runs[0]) == ["submitted", "lost", "step", "ended"]


def test_poison(house: House) -> None:
    """A run with which so many workers died is suspended as poison, with its group; others go on."""
    house.sequence(add, context=Work)
    poison, behind, other = house.submit(group="G"), house.submit(group="G"), house.submit(group="other")
    kill(house, 3)
    house.work()
    assert [house.state(run) for run in (poison, behind, other)] == ["suspended", "queued", "completed"]
    status = house.client.status(poison)
    assert (status.reason, status.deliveries) == ("poison", 3)
    assert house.client.retry(poison)
    house.work()
    assert house.wait_all([poison, behind]) == ["completed"] * 2


def kill(house: House, deaths: int) -> None:
    """Let workers die, one after the other, with the first run in hand, as soon as it is claimed."""
    for _ in range(deaths):
        dead = house.store.register(30.0, "elsewhere", 1)
        house.store.commit(dead, Batch(claim=1, alone=True), lease=30.0)
        house.kit.advance(31)
        house.store.sweep(deliveries=deaths)


def test_poison_tells_its_activity(house: House) -> None:
    """A run with which workers died in its first activity names it, where the worker knew its plan; others theirs."""
    house.sequence(activity(add, name="first"), add, context=Work)
    unknown = house.submit()
    kill(house, 3)
    assert [house.client.status(unknown).activity, house.state(unknown)] == ["", "suspended"]
    house.submit()
    house.work()  # a worker that lives stores the plan, as those do that die
    poison = house.submit()
    kill(house, 3)
    status = house.client.status(poison)
    assert (status.reason, status.activity, status.waits) == ("poison", "first", ())
    assert [run.activity for run in house.client.runs(states=["suspended"])] == ["first", "first"]


def test_a_suspect_is_alone(house: House) -> None:
    """A run that may have killed a worker is done alone, in order with all others, which are not held up for good."""
    together: list[int] = []
    inside: set[int] = set()

    def look(context: Work) -> None:
        inside.add(context.seed_data)
        time.sleep(0.005)
        if context.seed_data < 3:
            together.append(len(inside))
        inside.discard(context.seed_data)

    house.sequence(look, context=Work)
    suspects = [house.submit(seed=i, group=f"g{i}") for i in range(3)]
    dead = house.store.register(30.0, "elsewhere", 1)
    assert len(house.store.commit(dead, Batch(claim=10, alone=True), lease=30.0).claimed) == 3
    others = [house.submit(seed=10 + i, group=f"g{10 + i}") for i in range(20)]
    house.kit.advance(31)
    assert house.store.sweep(deliveries=5).lost == 3
    house.worker(threads=4)
    assert house.wait_all(suspects + others) == ["completed"] * 23
    assert together == [1, 1, 1]


def test_a_lone_run_does_not_wait(house: House) -> None:
    """On an idle system a run is done at once, long before the next tick."""
    house.sequence(add, add, add, context=Work)
    house.worker(tick=1000.0)
    run = house.submit()
    house.wait(run)
    time.sleep(0.1)
    began = time.monotonic()
    for _ in range(5):
        assert house.wait(house.submit()).state == "completed"
    assert time.monotonic() - began < 10


def test_a_stop_whose_grace_is_over_keeps_only_what_is_under_way(house: House, gate: Gate) -> None:
    """When an activity does not end in time, the runs beside it are given back at once, and what they did is kept."""

    def stick(context: Work) -> None:
        if context.seed_data == 0:
            gate(context)

    house.sequence(add, stick, add, context=Work)
    stuck, *others = [house.submit(seed=i) for i in range(6)]
    worker = house.unstarted(threads=1)
    worker._window.size = 8  # as when it has grown
    worker.start()
    assert gate.entered.wait(20)
    assert not worker.stop(0.05)
    house.work()
    assert house.wait_all(others) == ["completed"] * 5
    assert {house.context(run).n for run in others} == {2}
    assert house.state(stuck) == "running"
    gate.go_on.set()
    assert worker.stop(20)
    house.work()
    assert house.context(stuck).n == 102


def test_a_lone_worker_does_not_take_over_from_itself(house: House, gate: Gate) -> None:
    """A worker that could not show life for longer than its lease, as when the machine slept, goes on with its runs."""
    house.sequence(gate, add, context=Work)
    run = house.submit()
    house.worker(lease=30.0, deliveries=2)
    assert gate.entered.wait(20)
    for _ in range(4):
        house.kit.advance(31)
        time.sleep(0.1)
    gate.go_on.set()
    status = house.wait(run)
    assert (status.state, status.deliveries) == ("completed", 0)
    assert house.context(run).n == 101
