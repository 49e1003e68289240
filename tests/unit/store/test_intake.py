"""Threads that submit at the same time share a transaction; each gets its own answers, or its own error."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from iocflow.store.contract import Accepted, Submission
from iocflow.store.errors import StoreFullError
from iocflow.store.sqlite.intake import MOST, Intake
from tests.contract.store.work import submission


class Table:
    """What is written to; the first transaction waits until it may go on."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.began, self.go = threading.Event(), threading.Event()
        self.fails: list[BaseException] = []

    def add(self, runs: Sequence[Submission]) -> list[Accepted]:
        """Write."""
        self.batches.append([run.number for run in runs])
        first = not self.began.is_set()
        self.began.set()
        assert not first or self.go.wait(20)
        if not first and self.fails:
            raise self.fails.pop(0)
        return [Accepted(int(run.number), "new") for run in runs]


def ids(accepted: list[Accepted]) -> list[int]:
    """Return the ids."""
    return [one.id for one in accepted]


def waiting(intake: Intake, number: int) -> None:
    """Wait until so many wait."""
    while len(intake._waiting) < number:
        threading.Event().wait(0.001)


def test_who_waits_shares_the_next_transaction() -> None:
    """Those who come while one is written are written together, in their order, each with its own answers."""
    intake, table = Intake(), Table()
    with ThreadPoolExecutor(12) as pool:
        first = pool.submit(intake.submit, [submission("0")], table.add)
        table.began.wait(20)
        others = []
        for n in range(1, 11):
            others.append(pool.submit(intake.submit, [submission(str(n)), submission(str(n + 100))], table.add))
            waiting(intake, n)
        table.go.set()
        assert ids(first.result()) == [0]
        assert [ids(one.result()) for one in others] == [[n, n + 100] for n in range(1, 11)]
    assert table.batches == [["0"], [str(n + more) for n in range(1, 11) for more in (0, 100)]]


def test_a_transaction_has_a_bound() -> None:
    """Large submissions are not put together, and one that is larger than the bound is not taken apart."""
    intake, table = Intake(), Table()
    large = [submission(str(n)) for n in range(MOST + 1)]
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(intake.submit, [submission("0")], table.add)
        table.began.wait(20)
        others = []
        for n in range(2):
            others.append(pool.submit(intake.submit, large, table.add))
            waiting(intake, n + 1)
        table.go.set()
        first.result()
        assert [len(one.result()) for one in others] == [MOST + 1] * 2
    assert [len(batch) for batch in table.batches] == [1, MOST + 1, MOST + 1]


def test_who_shares_a_transaction_shares_its_failure() -> None:
    """When the store is full all hear of it at once, each with an error of its own; what comes later is written."""
    intake, table = Intake(), Table()
    table.fails = [StoreFullError("no room")]
    with ThreadPoolExecutor(4) as pool:
        pool.submit(intake.submit, [submission("0")], table.add)
        table.began.wait(20)
        others = []
        for n in (1, 2, 3):
            others.append(pool.submit(intake.submit, [submission(str(n))], table.add))
            waiting(intake, n)
        table.go.set()
        errors = [one.exception() for one in others]
    assert [str(error) for error in errors] == ["no room"] * 3
    assert len({id(error) for error in errors}) == 3
    assert ids(intake.submit([submission("4")], table.add)) == [4]


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), ValueError("a fault of ours")], ids=lambda one: type(one).__name__
)
def test_who_is_interrupted_takes_nobody_along(error: BaseException) -> None:
    """When the one that writes for others is interrupted, they write for themselves."""
    intake, table = Intake(), Table()
    table.fails = [error]
    with ThreadPoolExecutor(4) as pool:
        pool.submit(intake.submit, [submission("0")], table.add)
        table.began.wait(20)
        others = []
        for n in (1, 2, 3):
            others.append(pool.submit(intake.submit, [submission(str(n))], table.add))
            waiting(intake, n)
        table.go.set()
        ended = [one.exception() for one in others]
    assert [one for one in ended if one is not None] == [error]
    assert not intake._waiting
    written = Counter(itertools.chain.from_iterable(table.batches))
    assert sorted(written[str(n)] for n in (1, 2, 3)) == [1, 2, 2]
