"""Many timers of one second each: how late their ticks begin, and how much of a processor that takes.

    python tests/benchmarks/timers.py --launchers 1000 --seconds 10

Beside them, in turn, APScheduler's own background scheduler with the same jobs, which keeps nothing, and a daemon whose
timers are kept in a SQLite file: each tick is asked for there before it begins, and written when it has ended.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from apscheduler.schedulers.background import BackgroundScheduler  # type: ignore[import-untyped]

from iocflow import App, ProcessContext, SequenceProcessor
from iocflow.launch.daemon import Daemon
from iocflow.launch.settings import DaemonSettings
from iocflow.schedule import every
from iocflow.store.sqlite.store import SqliteStore

STEP = 1.0


class Late:
    """How late ticks began, in seconds."""

    def __init__(self) -> None:
        self.by: list[float] = []

    def note(self, moment: datetime) -> None:
        """Note a tick that begins now and was due then."""
        self.by.append((datetime.now(UTC) - moment).total_seconds())


@contextmanager
def daemon(launchers: int, late: Late, store: SqliteStore | None = None) -> Iterator[None]:
    """Run a daemon."""

    def tick(context: ProcessContext) -> None:
        late.note(datetime.fromisoformat(context.step.idempotency_key.partition("@")[2].partition("/")[0]))

    processor = SequenceProcessor([tick], context=ProcessContext, name="tick")
    timers = [every(timedelta(seconds=STEP), processor, name=f"timer-{n}") for n in range(launchers)]
    app = App(processor, launchers=timers)
    served = Daemon(app, settings=DaemonSettings(), book=store.launchers if store else None)
    thread = threading.Thread(target=served.run)
    thread.start()
    try:
        yield
    finally:
        served.stop()
        thread.join()


@contextmanager
def apscheduler(launchers: int, late: Late) -> Iterator[None]:
    """Run APScheduler's own scheduler, with as many threads as the daemon has."""
    scheduler = BackgroundScheduler(
        executors={"default": {"type": "threadpool", "max_workers": DaemonSettings().pool}},
        job_defaults={"misfire_grace_time": 30},
        timezone=UTC,
    )
    began = datetime.now(UTC) + timedelta(seconds=STEP)

    def tick() -> None:
        passed = (datetime.now(UTC) - began).total_seconds() % STEP
        late.by.append(passed)

    for _ in range(launchers):
        scheduler.add_job(tick, "interval", seconds=int(STEP), next_run_time=began)
    scheduler.start()
    try:
        yield
    finally:
        scheduler.shutdown()


def measured(run: Callable[[Late], Any], seconds: float) -> str:
    """Return the figures of one contestant in a line, after a second or more to warm up."""
    late = Late()
    with run(late):
        time.sleep(min(3.0, seconds))
        late.by.clear()
        spent, began = time.process_time(), time.monotonic()
        time.sleep(seconds)
        share, took = time.process_time() - spent, time.monotonic() - began
        by = sorted(late.by) or [float("nan")]
    p50, p99 = statistics.median(by), by[min(len(by) - 1, int(len(by) * 0.99))]
    figures = f"{len(late.by) / took:8.1f} ticks/s  late p50 {p50 * 1e3:7.1f} ms  p99 {p99 * 1e3:7.1f} ms"
    return f"{figures}  {share / took:5.2f} of a processor"


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--launchers", type=int, default=1000, help="how many timers (default 1000)")
    options.add_argument("--rounds", type=int, default=1, help="turns of each contestant (default 1)")
    options.add_argument("--seconds", type=float, default=10.0, help="length of a turn (default 10)")
    given = options.parse_args()
    logging.disable(logging.CRITICAL)
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory() as folder:
            store = SqliteStore(Path(folder) / "store.db")
            contestants: dict[str, Callable[[Late], Any]] = {
                "APScheduler alone": lambda late: apscheduler(given.launchers, late),
                "daemon": lambda late: daemon(given.launchers, late),
                "daemon over SQLite": lambda late: daemon(given.launchers, late, store),  # noqa: B023
            }
            for name, run in contestants.items():
                print(f"{name:20} {measured(run, given.seconds)}")
            store.close()


if __name__ == "__main__":
    main()
