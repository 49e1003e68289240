"""Priorities with ageing, delayed starts, and the order in which a single reader takes what there is."""

from __future__ import annotations

from iocflow import ProcessContext
from tests.integration.durable.house import House, Ledger


class Numbered(ProcessContext):
    """The context of one message."""

    seed_data: int = 0


def readers(house: House) -> Ledger:
    """Wire a processor that notes its seed; return where."""
    ledger = Ledger()
    house.sequence(lambda context: ledger.note(context, context.seed_data), context=Numbered)
    return ledger


def test_q5(house: House) -> None:
    """Q5: one reader takes all of priority 8 before those of priority 1 that came earlier."""
    ledger = readers(house)
    for priority in (1, 8):
        for i in range(100):
            house.submit(seed=priority * 1000 + i, group=f"g{priority}-{i}", priority=priority)
    house.work(threads=1)
    assert ledger.whats == [8000 + i for i in range(100)] + [1000 + i for i in range(100)]


def test_q5_in_a_group(house: House) -> None:
    """Q5: inside of one group the order is that of submission, whatever the priorities."""
    ledger = readers(house)
    for i, priority in enumerate((1, 9, 0, 5)):
        house.submit(seed=i, group="G", priority=priority)
    house.work()
    assert ledger.whats == [0, 1, 2, 3]


def test_q6(house: House) -> None:
    """Q6: a minute of waiting is worth one level: one message of priority 1 is served amid an endless flow of 8s."""
    served: list[int] = []

    def handle(context: Numbered) -> None:
        served.append(context.seed_data)
        if 1 not in served:
            house.kit.advance(30)
            house.submit(seed=8, priority=8)

    house.sequence(handle, context=Numbered)
    house.submit(seed=8, priority=8)
    house.submit(seed=1, priority=1)
    house.work(threads=1, window=1)
    assert served[-1] == 8
    assert 7 * 60 <= served.index(1) * 30 <= 8 * 60 + 30


def test_q7(house: House) -> None:
    """Q7: a message that is to start in an hour does not hold up the next one of its group."""
    ledger = readers(house)
    later = house.submit(seed=1, group="G", not_before="1h")
    now = house.submit(seed=2, group="G")
    house.work()
    assert [house.state(later), house.state(now)] == ["queued", "completed"]
    house.kit.advance(3601)
    house.work()
    assert house.state(later) == "completed"
    assert ledger.whats == [2, 1]
