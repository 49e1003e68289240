"""Submits a queue of orders, kills the worker in the middle, starts another, and shows that each was done once."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import iocflow
from samples.order.activities import Bank
from samples.order.queue import ORDERS

FILE = Path(__file__).parents[2] / "config" / "order.yaml"


def main() -> int:
    """Tell the story in a folder of its own; return 0 if it went well."""
    with tempfile.TemporaryDirectory() as folder:
        store, books = f"sqlite:///{folder}/orders.db", f"{folder}/bank.db"
        options = ["--set", f"store={store}", "--set", f"books={books}"]
        with iocflow.client(FILE, values={"store": store, "books": books}) as client:
            report = client.submit_many("order", ORDERS)
            again = client.submit_many("order", ORDERS[:5])
            print(f"submitted: {report.new} orders of two customers; {again.known} sent twice are known again")

            worker = start(options)
            while worker.poll() is None and len(client.runs(states=["completed"])) < len(ORDERS) // 4:
                time.sleep(0.01)
            worker.kill()
            worker.wait()
            print(f"killed the worker in the middle: {told(client)}")

            another = start(options)
            for order in ORDERS:
                client.wait(order.customer, order.number, timeout=60)
            another.terminate()
            another.wait()
            print(f"another one carried on: {told(client)}")
            charges, finished = Bank(books).charges(), client.runs(states=["completed"])
            billed = [run for run in finished if run.outcome == "ok"]
            print(f"the bank was asked for {charges} charges, for {len(billed)} orders that were billed")
            print(f"ACME's PO-2: {client.status('ACME', 'PO-2').state}, by these steps:")
            for entry in client.history("ACME", "PO-2"):
                print(f"  {entry.number:2}. {entry.kind:9} {entry.name:14} {entry.outcome}")
    return 0 if len(finished) == len(ORDERS) and charges == len(billed) else 1


def start(options: list[str]) -> subprocess.Popen[bytes]:
    """Start a worker in a process of its own."""
    return subprocess.Popen([sys.executable, "-m", "iocflow.cli", "worker", str(FILE), *options])


def told(client: iocflow.Client) -> str:
    """Return how many orders are in which state."""
    counts = Counter(run.state for run in client.runs(limit=len(ORDERS)))
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))


if __name__ == "__main__":
    sys.exit(main())
