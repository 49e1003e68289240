"""The order program that is killed: check credit, reserve stock, bill, ship."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from iocflow import Activity, Durable, ProcessContext, Processor, SequenceProcessor, activity
from iocflow.durable.job import Job
from tests.crash.ledger import Ledger

STEPS = ("check-credit", "reserve-stock", "bill", "ship")

Mode = Literal["leased", "transactional", "incident"]
"""How the steps are done: each by a call of a foreign system, repeated when a worker died meanwhile; each by a row in
the store's own database; each by a call that is not repeated unasked."""


@dataclass
class Purchase:
    """What a customer wants."""

    customer: str
    number: str


class Order(ProcessContext):
    """What is known of an order.

    Attributes:
        done: The steps that are done, with what was answered or written.
    """

    seed_data: Purchase
    done: tuple[str, ...] = ()


class Ask(Activity[Order]):
    """Calls a foreign system, and keeps its answer."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        """Take the step's name and the system."""
        self.name = name
        self._ledger = ledger

    def execute(self, context: Order) -> None:
        """Call it with the step's own key."""
        order = context.seed_data
        number = self._ledger.call(context.step.idempotency_key, f"{order.customer} {order.number}", self.name)
        context.done += (f"{self.name} {number}",)


class Write(Activity[Order]):
    """Writes a row of the domain, in the transaction of the step."""

    def __init__(self, name: str, insert: str) -> None:
        """Take the step's name and the statement, whose parameters are the order and the step."""
        self.name = name
        self._insert = insert

    def execute(self, context: Order) -> None:
        """Write it."""
        context.step.transaction.execute(self._insert, (context.seed_data.number, self.name))
        context.done += (self.name,)


def order(mode: Mode, ledger: Ledger, insert: str) -> Processor[Order]:
    """Return the processor."""
    if mode == "transactional":
        steps = [activity(Write(name, insert), mode="transactional") for name in STEPS]
    else:
        on_lost: Literal["retry", "incident"] = "incident" if mode == "incident" else "retry"
        steps = [activity(Ask(name, ledger), on_lost=on_lost) for name in STEPS]
    return SequenceProcessor(steps, context=Order, name="order")


def order_job(mode: Mode, ledger: Ledger, insert: str) -> Job:
    """Return the processor as a durable one."""
    return Job(order(mode, ledger, insert), Durable(submitter="customer", number="number"))
