"""What the nursery's children do: each function is a whole program, killed by others any time, or by itself at a place.

No product code knows of it: statements of SQLite are seen by the driver's own trace, messages to PostgreSQL on the
wire, and returns from the store's methods by an object in front of it.
"""

from __future__ import annotations

import json
import logging
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from iocflow.durable.client import Client
from iocflow.durable.settings import WorkerSettings
from iocflow.durable.worker.idling import run_until_idle
from iocflow.durable.worker.worker import Worker
from iocflow.store import open_store
from tests.crash.benches import now, opened
from tests.crash.ledger import Ledger
from tests.crash.order import Mode, Purchase, order_job
from tests.crash.points import Points
from tests.crash.programs import PROGRAMS
from tests.crash.stage import Stage
from tests.crash.wire import Wire

LEASE = 300.0
"""Seconds on the store's clock, which tests move: nothing that a worker does as time passes happens by itself."""

DELIVERIES = 5
"""How many workers may die with a run."""

ALONE = WorkerSettings(threads=1, window=1, lease=LEASE, tick=LEASE)
"""A worker that does one thing after the other, so that its writes are the same each time."""

_TURN = 0.5
"""Seconds after which the main thread looks whether a signal came that did not wake it."""


@contextmanager
def staged(url: str, shift: float, points: Points, folder: str) -> Iterator[Stage]:
    """Open a store with a place at each of its writes, before and after."""
    connect = sqlite3.connect

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(reach)
        return connection

    def reach(sql: str) -> None:
        if not sql.startswith(("pragma", "select")):
            points.reach(f"before {' '.join(sql.split())[:60]}")

    if url.startswith("sqlite:"):
        sqlite3.connect = traced  # type: ignore[assignment]
    else:
        url = Wire(url, Path(folder), points).url
    store = opened(url, lambda: shift)
    try:
        yield Stage(store, points)
    finally:
        points.deadly = None
        store.close()


def work(
    url: str, shift: float, mode: Mode, ledger: str, insert: str, folder: str, report: str, deadly: int | None
) -> None:
    """Take over from the dead, then work on orders until there is nothing to do; `report` gets the places' names."""
    logging.basicConfig(level=logging.WARNING)
    points = Points()
    jobs = {"order": order_job(mode, Ledger(Path(ledger)), insert)}
    with staged(url, shift, points, folder) as stage:
        stage.tick(DELIVERIES)
        points.begin(deadly)
        run_until_idle(Worker(stage, jobs, ALONE))
        Path(report).write_text(json.dumps(points.names), encoding="utf-8")


def submit(
    url: str, shift: float, ledger: str, numbers: list[str], folder: str, report: str, deadly: int | None
) -> None:
    """Submit orders as one customer does, the first by itself and the others together."""
    points = Points()
    jobs = {"order": order_job("leased", Ledger(Path(ledger)), "")}
    with staged(url, shift, points, folder) as stage:
        points.begin(deadly)
        client = Client(stage, jobs)
        client.submit("order", Purchase("ACME", numbers[0]))
        client.submit_many("order", [Purchase("ACME", number) for number in numbers[1:]])
        Path(report).write_text(json.dumps(points.names), encoding="utf-8")


def live(url: str, program: str, options: dict[str, Any], settings: dict[str, Any], clock: float = 0.0) -> None:
    """Be a worker as users have them, until it is asked to end; this machine's clock is `clock` seconds ahead for it.

    Its store's clock is not: on SQLite that is the machine's real one.
    """
    logging.basicConfig(level=logging.WARNING)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    time.time = lambda: now() + clock
    store = open_store(url)
    worker = Worker(store, PROGRAMS[program](**options), WorkerSettings(**settings))
    worker.start()
    # In turns: just behind SIGCONT the kernel may give SIGTERM to another thread, and does not wake this one then.
    while not ended.wait(_TURN):
        pass
    worker.stop()
    store.close()
