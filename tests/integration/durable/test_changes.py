"""Changes between submit and work: of the wiring, of the context's class; and contexts that cannot be stored."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar

import pytest

from iocflow import CONTINUE, ProcessContext, SequenceProcessor, activity
from iocflow.durable.errors import ContextTooLargeError, ContextTypeError
from iocflow.errors import SeedError
from tests.integration.durable.house import House, Ledger


class Order(ProcessContext):
    """A context that counts."""

    seed_data: int = 0
    n: int = 0
    total: Decimal = Decimal(0)
    text: str = ""


def add(context: Order) -> None:
    context.n += 1


def wait(context: Order) -> None:
    context.step.wait_for("approved")


def first(context: Order) -> None:
    context.n += 10


def last(context: Order) -> None:
    context.n += 100


# The wiring.


def test_an_open_run_keeps_the_plan_it_began_with(house: House) -> None:
    """A run that has begun goes on with its own order of activities; one that has not takes the new one."""
    house.sequence(add, wait, last, context=Order)
    begun, queued = house.submit(), house.submit(not_before="1h")
    house.work()
    assert house.state(begun) == "waiting"
    house.sequence(last, add, wait, first, context=Order)
    for run in (begun, queued):
        house.client.signal(run, "approved")
    house.kit.advance(3601)
    house.work()
    assert [house.trail(run) for run in (begun, queued)] == ["add, wait, last", "last, add, wait, first"]
    assert [house.context(run).n for run in (begun, queued)] == [101, 111]


def test_parts_that_are_gone(house: House) -> None:
    """A run whose activities are gone is suspended, and named; with the wiring mended, it goes on."""
    house.sequence(add, wait, last, context=Order)
    run, other = house.submit(group="G"), house.submit(group="other")
    house.work()
    house.sequence(add, wait, context=Order)
    house.client.signal(run, "approved")
    house.work()
    status = house.client.status(run)
    assert (status.state, status.reason) == (
        "suspended",
        "the run began with parts that are not wired any more: last",
    )
    house.sequence(add, last, wait, context=Order)
    assert house.client.retry(run)
    house.work()
    assert (house.state(run), house.trail(run)) == ("completed", "add, wait, last")
    assert house.state(other) == "waiting"


def test_a_processor_that_is_gone(house: House) -> None:
    """A run of a processor that no worker knows is suspended with that reason; the worker goes on."""
    house.sequence(add, context=Order)
    run = house.submit()
    del house.jobs["job"]
    house.sequence(add, context=Order, name="other")
    other = house.submit("other")
    house.work()
    assert house.state(other) == "completed"
    status = house.client.status(run)
    assert (status.state, status.reason) == ("suspended", "no durable processor 'job' is wired here")
    house.sequence(add, context=Order)
    assert house.client.retry(run)
    house.work()
    assert house.state(run) == "completed"


# The class of the context.


class Old(ProcessContext):
    """As it was when the run began."""

    seed_data: int = 0
    amount: str = "12 apples"


class Changed(ProcessContext):
    """As it is now: it cannot read what the old one wrote."""

    seed_data: int = 0
    amount: int = 0


class Upgraded(ProcessContext):
    """As it is now: it can read what older ones wrote."""

    version: ClassVar[int] = 1
    seed_data: int = 0
    amount: int = 0

    @classmethod
    def upgrade(cls, data: dict[str, Any], version: int) -> dict[str, Any]:
        """Take the number out of the text."""
        return {**data, "amount": int(data.get("amount", "0").split()[0])}


def test_a_context_that_the_class_cannot_read(house: House) -> None:
    """A stored context that the changed class cannot read suspends the run, till the class is mended; others go on."""

    def touch(context: Old) -> None:
        context.amount = "12 apples"

    house.sequence(touch, wait, context=Old)
    run = house.submit()
    house.work()
    house.client.signal(run, "approved")
    house.sequence(touch, wait, context=Changed)
    house.sequence(add, context=Order, name="other")
    other = house.submit("other")
    house.work()
    status = house.client.status(run)
    assert status.state == "suspended"
    assert [one.outcome for one in house.client.history(run) if one.kind == "suspended"] == ["unreadable"]
    assert "a stored Changed.amount: Expected `int`, got `str`" in status.reason
    assert house.state(other) == "completed"
    house.sequence(touch, wait, context=Upgraded)
    assert house.client.retry(run)
    house.work()
    assert (house.state(run), house.context(run).amount) == ("completed", 12)


def test_a_seed_that_the_class_cannot_read(house: House) -> None:
    """A stored seed that the changed class cannot read suspends the run before anything of it is done."""

    class Before(ProcessContext):
        seed_data: str

    house.sequence(add, context=Before)
    run = house.submit(seed="many")
    house.sequence(add, context=Order)
    house.work()
    status = house.client.status(run)
    assert status.state == "suspended"
    assert "seed_data" in status.reason
    assert house.trail(run) == ""


# What cannot be stored.


def test_a_field_that_no_run_can_store(house: House) -> None:
    """A class with a field that cannot be stored is refused when the processor is made durable, and the field named."""

    class Bad(ProcessContext):
        seed_data: int
        connection: object

    with pytest.raises(ContextTypeError, match="connection"):
        house.sequence(add, context=Bad)


def test_a_seed_that_cannot_be_stored(house: House) -> None:
    """Q4: a seed that does not fit, or a processor that is not known, is refused at the sender; nothing is stored."""
    house.sequence(add, context=Order)
    with pytest.raises(SeedError, match="seed"):
        house.submit(seed="many")
    with pytest.raises(ValueError, match=r"'nobody' is no durable processor here; known: job"):
        house.submit("nobody", 1)
    assert house.client.runs() == []


def test_a_value_that_cannot_be_stored(house: House) -> None:
    """A field that holds what would not come back is an error of the activity that left it; its handler is asked."""
    ledger = Ledger()

    def spoil(context: Order) -> None:
        context.n += 1
        context.text = 7  # type: ignore[assignment]

    class Mending:
        def handle_error(self, context: Any, error: Exception) -> Any:
            ledger.note(context, str(error))
            context.text = "mended"
            return CONTINUE

    house.sequence(activity(spoil, on_error=Mending()), add, context=Order)
    run = house.submit()
    house.work()
    assert (house.state(run), house.trail(run)) == ("completed", "spoil HANDLED, add")
    assert (house.context(run).text, house.context(run).n) == ("mended", 2)
    assert ledger.whats == ["Order.text: int 7 is not str"]


def test_a_value_that_cannot_be_stored_and_nobody_mends(house: House) -> None:
    """Without a handler the run has failed, with that error; its context is what was on record before the activity."""

    def spoil(context: Order) -> None:
        context.n += 1
        context.text = 7  # type: ignore[assignment]

    house.sequence(add, spoil, add, context=Order, finally_=[add])
    run = house.submit()
    house.work()
    status = house.client.status(run)
    assert status.state == "failed"
    assert "Order.text" in (status.error["message"] if status.error else status.reason)
    assert house.context(run).text == ""


def test_a_field_that_is_not_annotated(house: House) -> None:
    """A field that is set and was never annotated is refused by name, too."""

    def spoil(context: Any) -> None:
        context.surprise = 1

    house.sequence(spoil, context=Order)
    run = house.submit()
    house.work()
    status = house.client.status(run)
    assert status.state == "failed"
    assert "Order.surprise is set and cannot be stored" in (status.error["message"] if status.error else status.reason)


def test_a_body_of_50_mb(house: House) -> None:
    """A seed of 50 MB is refused at submit: the message names the limit and the field."""

    class Text(ProcessContext):
        seed_data: str

    house.sequence(add, context=Text)
    with pytest.raises(ContextTooLargeError, match="seed_data") as caught:
        house.submit(seed="x" * 50_000_000)
    assert caught.value.size > 50_000_000 > caught.value.limit
    assert house.client.runs() == []


def test_a_context_of_50_mb(house: House) -> None:
    """A context that grows to 50 MB is an error of the activity that let it grow; the worker goes on."""

    def grow(context: Order) -> None:
        context.text = "x" * 50_000_000

    def shrink(context: Any, error: Exception) -> Any:
        context.text = type(error).__name__
        return CONTINUE

    class Shrinking:
        handle_error = staticmethod(shrink)

    house.sequence(activity(grow, on_error=Shrinking()), add, context=Order)
    run = house.submit()
    house.work()
    assert (house.state(run), house.context(run).text) == ("completed", "ContextTooLargeError")


def test_values_come_back_as_they_are(house: House) -> None:
    """A run that was stored between two steps has the same values in the second: a decimal is a decimal."""

    def set_total(context: Order) -> None:
        context.total = Decimal("0.1") + Decimal("0.2")

    found: list[Any] = []

    def look(context: Order) -> None:
        context.step.wait_for("approved")
        found.append(context.total)

    house.wire(SequenceProcessor([set_total, look], context=Order, name="job"))
    run = house.submit()
    house.work()
    house.client.signal(run, "approved")
    house.work()
    assert found == [Decimal("0.3")]
