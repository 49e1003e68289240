"""A file of durable processors, and its module."""

from __future__ import annotations

MODULE = """
from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from iocflow import App, ProcessContext, SequenceProcessor


@dataclass
class Order:
    po: str
    customer: str
    takes: float = 0.0
    fails: bool = False


class Shop(ProcessContext):
    seed_data: Order
    answer: dict[str, str]


def check(context: Shop) -> None:
    print("checking", context.seed_data.po, file=sys.stderr, flush=True)
    time.sleep(context.seed_data.takes)
    if context.seed_data.fails:
        raise ValueError("no money")


def ask(context: Shop) -> None:
    context.answer = context.step.wait_for("approved")


def ship(context: Shop) -> None:
    pass


app = App(SequenceProcessor([check], context=Shop, name="order"), store="sqlite:///python.db")
"""

CONTAINER = """\
iocflow: 1
package: orders
store: sqlite:///${db}
values: {db: orders.db, token: "${secret:no-such-token:}"}
worker: {threads: 2, lease: 5s, tick: 200ms}
beans: {check: {call: .check}, ask: {call: .ask}, ship: {call: .ship}}
processors:
  order:
    context: .Shop
    sequence: [check, ship]
    durable: {submitter: customer, number: po, group: customer}
  careful:
    context: .Shop
    sequence: [check, ship]
    durable: {submitter: customer, number: po, group: customer}
    on-failure: incident
  asking: {context: .Shop, sequence: [ask], durable: {submitter: customer, number: po}}
launchers:
  dropped: {processor: order, source: "folder:inbox?interval=20ms"}
daemon: {grace: 10s}
"""
FILE = "orders.yaml"
