"""Groups: order and exclusion, the state of a group, arrival in any order, several readers."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import defaultdict

from iocflow import ProcessContext
from tests.integration.durable.house import House


class Message(ProcessContext):
    """The context of one message: `part` is its number in its group, `counted` what the group had counted by then."""

    seed_data: tuple[str, int]
    counted: int = 0


class Part(ProcessContext):
    """The context of one part of an order: `what` is `header`, or a line."""

    seed_data: tuple[str, str]
    order: list[str]


def count(context: Message) -> None:
    group = context.step.group
    group.state = (group.state or 0) + 1
    context.counted = group.state


def states(house: House) -> dict[str, object]:
    """Return the state of each group, as it is stored."""
    return {key: json.loads(bytes(state)) for key, state in house.kit.sql("select key, state from group_state")}


def test_c2(house: House) -> None:
    """C2: 200 groups of 50 messages, 16 readers: in order, one at a time in each group, many groups at once."""
    groups, messages = [f"g{i}" for i in range(200)], range(50)
    handled: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
    begun, twelve = itertools.count(1), threading.Event()

    def handle(context: Message) -> None:
        group, number = context.seed_data
        began = time.monotonic()
        count(context)
        time.sleep(0.001)
        if next(begun) >= 12:
            twelve.set()
        twelve.wait(20)  # the first ones, until there are so many at once
        handled[group].append((number, began, time.monotonic()))

    house.sequence(handle, context=Message)
    seeds = [(group, number) for number in messages for group in groups]
    assert house.client.submit_many("job", seeds, group=lambda seed: seed[0]).new == 10_000
    workers = [house.worker(threads=4) for _ in range(4)]
    house.eventually(lambda: house.store.counts().get("completed", 0) == 10_000)
    assert all(worker.stop(5) for worker in workers)

    for group in groups:
        numbers, begins, ends = zip(*handled[group], strict=True)
        assert list(numbers) == list(messages)
        assert all(end <= begin for end, begin in zip(ends, begins[1:], strict=False))
    assert states(house) == dict.fromkeys(groups, 50)
    changes = sorted(
        (at, change) for ran in handled.values() for _, began, ended in ran for at, change in ((began, 1), (ended, -1))
    )
    assert max(itertools.accumulate(change for _, change in changes)) >= 12


def test_c3(house: House) -> None:
    """C3: a slow message holds up its own group only, and a reader that is added gets work with nothing changed."""
    release, slow = threading.Event(), threading.Event()
    threads: dict[str, set[int]] = defaultdict(set)

    def handle(context: Message) -> None:
        group, number = context.seed_data
        if group == "slow" and number == 0:
            slow.set()
            release.wait(20)
        time.sleep(0.002)
        threads[group].add(threading.get_ident())

    house.sequence(handle, context=Message)
    first, second = [house.submit(seed=("slow", i), group="slow") for i in range(2)]
    others = [house.submit(seed=(f"g{i}", 0), group=f"g{i}") for i in range(199)]
    house.worker(threads=4)
    slow.wait(20)
    fifth = house.worker(threads=1)
    assert house.wait_all(others) == ["completed"] * 199
    assert [house.state(first), house.state(second)] == ["running", "queued"]
    (reader,) = [thread.ident for thread in fifth._threads if thread.name.startswith("iocflow-worker")]
    assert any(reader in used for used in threads.values())
    release.set()
    assert house.wait_all([first, second]) == ["completed"] * 2


def test_c4(house: House) -> None:
    """C4: what one worker left as the state of a group is what the next one reads, when the first is long gone."""
    seats: list[int | None] = []

    def seat(context: Message) -> None:
        seats.append(context.step.group.state)
        context.step.group.state = 4 if context.step.group.state is None else 47

    house.sequence(seat, context=Message)
    for i in range(2):
        run = house.submit(seed=("row", i), group="row")
        house.work()
        assert house.state(run) == "completed"
        house.kit.advance(10)
    assert seats == [None, 4]
    assert states(house) == {"row": 47}


def test_a_failed_step_saves_the_state_of_its_group_too(house: House) -> None:
    """The state of a group is saved with the run's record, also when that says that the activity failed."""

    def handle(context: Message) -> None:
        count(context)
        raise ValueError("no")

    house.sequence(handle, context=Message)
    for i in range(2):
        house.submit(seed=("g", i), group="g")
    house.work()
    assert states(house) == {"g": 2}


def test_c6(house: House) -> None:
    """C6: one thread or twenty workers: the same results, and nothing is changed for it."""
    results = []
    for name, workers in (("one", 1), ("twenty", 20)):

        def add(context: Message) -> None:
            context.counted += context.seed_data[1]

        house.sequence(count, add, add, context=Message, name=name)
        runs = [house.submit(name, (f"{name}{i % 7}", i), group=f"{name}{i % 7}") for i in range(100)]
        started = [house.worker(threads=1) for _ in range(workers)]
        house.wait_all(runs)
        for worker in started:
            worker.stop(5)
        results.append([(house.trail(run), house.context(run).counted) for run in runs])
    assert results[0] == results[1]
    assert results[0][99] == ("count, add, add", 15 + 2 * 99)


def test_c7(house: House) -> None:
    """C7: a header and five lines of one order, in all 720 orders of arrival: one reader, and always the same order."""
    parts = ["header", "line1", "line2", "line3", "line4", "line5"]
    inside: dict[str, int] = defaultdict(int)
    crowded: list[str] = []
    orders: dict[str, list[list[str]]] = defaultdict(list)

    def take(context: Part) -> None:
        order, part = context.seed_data
        inside[order] += 1
        if inside[order] != 1:
            crowded.append(order)
        group = context.step.group
        group.state = sorted([*(group.state or []), part])
        inside[order] -= 1
        context.order = group.state
        if len(group.state) == len(parts):
            orders[order].append(group.state)

    house.sequence(take, context=Part)
    arrivals = [[(f"order{i}", part) for part in parts] for i, parts in enumerate(itertools.permutations(parts))]
    mixed = [seed for place in zip(*arrivals, strict=True) for seed in place]
    assert house.client.submit_many("job", mixed, group=lambda seed: seed[0]).new == 720 * 6
    for _ in range(2):
        house.worker(threads=4)
    house.eventually(lambda: house.store.counts().get("completed", 0) == 720 * 6)
    assert crowded == []
    assert len(orders) == 720
    assert all(made == [parts] for made in orders.values())


def test_c10(house: House) -> None:
    """C10: two workers come to do the same step: it is on record once, and the one that lost goes on with others."""
    release, began = threading.Event(), threading.Event()
    attempts = itertools.count(1)

    def slow(context: Message) -> None:
        if next(attempts) == 1:
            began.set()
            release.wait(20)
        context.counted += 1

    house.sequence(slow, count, context=Message)
    run = house.submit(seed=("g", 0), group="g")
    loser = house.worker(threads=2, lease=30.0, tick=1000.0)
    began.wait(20)
    house.outlast(loser)
    winner = house.worker()
    assert house.wait(run).state == "completed"
    assert winner.stop(5)
    assert house.client.status(run).deliveries == 1
    other = house.submit(seed=("other", 0), group="other")
    release.set()
    assert house.wait(other).state == "completed"
    assert house.trail(run) == house.trail(other) == "slow, count"
    house.eventually(lambda: "fenced_out" in house.kinds(run))
    assert house.kinds(run) == ["submitted", "lost", "step", "step", "ended", "fenced_out"]
    assert house.context(run).counted == 1
    assert loser.stop(5)


def test_a_group_shows_itself(house: House) -> None:
    """A log line with `context.step.group` in it tells the key and the state."""
    shown: list[str] = []

    def look(context: Message) -> None:
        context.step.group.state = {"seen": 1}
        shown.append(repr(context.step.group))

    house.sequence(look, context=Message)
    house.submit(seed=("ACME", 1), group="ACME")
    house.work()
    assert shown == ["<group 'ACME', state {'seen': 1}>"]
