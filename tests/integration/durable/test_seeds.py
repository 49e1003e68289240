"""Runs without a seed: refused at submit where the context has to have one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from iocflow import ProcessContext
from iocflow.durable.errors import SubmitError
from tests.integration.durable.house import House


@dataclass(frozen=True)
class Order:
    """A seed."""

    customer: str
    po: str


class Work(ProcessContext):
    """A context with an order."""

    seed_data: Order


@dataclass
class Data(Work):
    """A dataclass."""

    total: int = 0


class Optional(Work):
    """The type of its seed has None in it."""

    seed_data: Order | None  # type: ignore[assignment]


class Defaulted(Work):
    """Its seed has a default."""

    seed_data: Order = Order("nobody", "0")


class Made(Work):
    """It makes a seed itself."""

    def __init__(self) -> None:
        self.seed_data = Order("nobody", "0")


@dataclass
class Generated(Work):
    """Its seed has a default that is made anew."""

    seed_data: Order = field(default_factory=lambda: Order("nobody", "0"))


class Seedless(ProcessContext):
    """There is no seed."""

    seed_data: None


def nothing(context: Any) -> None:
    pass


@pytest.mark.parametrize("context", [Work, Data])
def test_a_seed_that_is_missing_is_refused(house: House, context: Any) -> None:
    """A run whose activities would find no seed is refused where it is submitted, alone and among others."""
    house.sequence(nothing, context=context)
    with pytest.raises(SubmitError, match="job needs a seed"):
        house.submit()
    report = house.client.submit_many("job", [Order("ACME", "1"), None])
    assert (report.new, [one.index for one in report.refused]) == (1, [1])
    assert len(house.client.runs()) == 1


@pytest.mark.parametrize("context", [Optional, Defaulted, Made, Generated, Seedless])
def test_a_seed_that_may_be_missing(house: House, context: Any) -> None:
    """A context that can do without a seed, or may have one of its own, is no reason to refuse a run."""
    house.sequence(nothing, context=context)
    run = house.submit()
    house.work()
    assert house.state(run) == "completed"


def test_a_launcher_needs_no_seed(house: House) -> None:
    """What a launcher submits has none where an activity is to find it, as one that polls a table does."""

    def find(context: Work) -> None:
        context.set_seed_data({"customer": "ACME", "po": "1"})

    house.sequence(find, context=Work)
    run = house.client.launch("job", None, None).id
    house.work()
    assert house.context(run).seed_data == Order("ACME", "1")


def test_a_launcher_s_key_of_any_kind(house: House) -> None:
    """An event's id may be longer than a number, or have what no store keeps: the same one is the same run."""
    house.sequence(nothing, context=Work)
    keys = ["k", "k" * 255, "k" * 256, "k" * 3_000, "k" * 3_001, "a\0b", "a?b", "a\ud800"]
    tickets = [house.client.launch("job", Order("ACME", "1"), key) for key in keys]
    assert len({ticket.id for ticket in tickets}) == len(keys)
    assert [ticket.number for ticket in tickets[:2]] == keys[:2]
    for key, ticket in zip(keys, tickets, strict=True):
        again = house.client.launch("job", Order("ACME", "1"), key)
        assert (again.id, again.new) == (ticket.id, False)
        assert house.client.status("job", ticket.number).id == ticket.id
