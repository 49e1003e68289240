"""Durable runs as a program uses them; a line with `expect` is wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import iocflow
from iocflow import App, Durable, ProcessContext, SequenceProcessor


class Order(ProcessContext):
    """A context."""

    seed_data: str
    total: int


def total(context: Order) -> None:
    """Set the total."""
    context.total = len(context.seed_data)


order = SequenceProcessor([total], context=Order, name="order")
app = App(order, store="sqlite:///orders.db", durable={"order": Durable(number="po", on_failure="incident")})
wrong = App(order, store="sqlite:///orders.db", durable={"order": Durable(on_failure="retry")})  # expect


def submit() -> int:
    """Submit in all ways."""
    ticket = app.submit("order", "lamp", submitter="ACME", priority=5, deadline="1h", not_before=timedelta(hours=1))
    app.submit("order", "lamp", start_by=datetime.now(UTC), group=None)
    app.submit("order", "lamp", priority="high")  # expect
    app.submit("order", "lamp", grup="a")  # expect
    report = app.submit_many("order", ["a", "b"], number=lambda seed: seed.upper(), progress=print)
    print(report.new + report.known, [refusal.error for refusal in report.refused])
    return ticket.id


def look() -> None:
    """Look, from the application and from outside."""
    status = app.status("ACME", "PO-17")
    if status.state == "complete":  # expect
        print(status.outcome.upper())
    print([run.number for run in app.runs(states=["failed", "suspended"])], app.wait(1, timeout=3).spent + 1)
    app.runs(states=["broken"])  # expect
    with iocflow.client("orders.yaml") as client:
        print(client.history(17)[0].kind, client.cancel(17, who="ann", why="not needed"), client.retry("ACME", "PO-17"))
        client.signal("ACME", "approved")  # expect
    app.run_until_idle(workers=4)
