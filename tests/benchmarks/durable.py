"""Durable runs against the raw limit of the same database: five-step runs, each step on record before the next begins.

    python tests/benchmarks/durable.py                         SQLite, in a new file
    python tests/benchmarks/durable.py --store postgresql://…  in a new schema of that database
    python tests/benchmarks/durable.py --only latency
    python tests/benchmarks/durable.py --only claim --waiting 1000 --waiting 100000 --waiting 1000000

Ratios are steps a second over raw commits a second, both measured in turn in one sitting; `--folder` says where the
SQLite file lies (a disk, not a memory file system, or the flush costs nothing).
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from durable_raw import raw_commits

from iocflow import ProcessContext, SequenceProcessor
from iocflow.durable.engine import DurableEngine
from iocflow.durable.job import Job
from iocflow.durable.settings import WorkerSettings
from iocflow.durable.worker.worker import Worker
from iocflow.store import open_store
from iocflow.store.contract import Batch, Store


class Small(ProcessContext):
    """A context of a few bytes."""

    seed_data: int
    n: int = 0


class Large(Small):
    """A context of about 1 KB."""

    text: str = "x" * 1000


def step(context: Small) -> None:
    """Change the context, so that each record carries it."""
    context.n += 1


SHAPES = [
    ("1 in flight", 1, 1, Small),
    ("8 in flight, 8 threads", 8, 8, Small),
    ("64 in flight, 1 thread", 1, 64, Small),
    ("adaptive, 1 thread", 1, 1024, Small),
    ("adaptive, 8 threads", 8, 1024, Small),
    ("adaptive, 32 threads", 32, 1024, Small),
    ("adaptive, 1 KB context", 8, 1024, Large),
]


def engine(store: Store, context: type[Small], settings: WorkerSettings | None = None) -> DurableEngine:
    """Return an engine with one processor of five steps."""
    processor = SequenceProcessor([step] * 5, context=context, name="five")
    return DurableEngine(store, {"five": Job(processor)}, settings)


def rate(store: Store, threads: int, window: int, context: type[Small], seconds: float) -> float:
    """Return steps a second, of a backlog that lasts about as long as is asked."""
    durable = engine(store, context, WorkerSettings(threads=threads, window=window))
    runs, spent = 20, 0.0
    while spent < seconds / 2:
        durable.client.submit_many("five", range(runs))
        worker = Worker(store, durable.jobs, durable.settings)
        began = time.perf_counter()
        worker.start()
        while not worker.idle():
            time.sleep(0.0005)
        spent = time.perf_counter() - began
        worker.stop()
        done, runs = runs, min(int(runs * max(2.0, min(20.0, seconds / max(spent, 1e-3)))), 200_000)
    return 5 * done / spent


def throughput(url: Callable[[], str], rounds: int, seconds: float) -> None:
    """Print steps a second and their ratio to raw commits, for each shape."""
    found: dict[str, list[tuple[float, float]]] = {}
    for _ in range(rounds):
        for name, threads, window, context in SHAPES:
            place = url()
            raw = raw_commits(place, seconds / 2)
            with contextlib.closing(open_store(place)) as store:
                found.setdefault(name, []).append((rate(store, threads, window, context, seconds), raw))
    for name, pairs in found.items():
        steps, raw = (statistics.median(values) for values in zip(*pairs, strict=True))
        ratio = statistics.median(one / other for one, other in pairs)
        print(f"{name:26} {steps:9.0f} steps/s {steps / 5:8.0f} runs/s   raw {raw:7.0f} commits/s   x{ratio:.2f}")


def latency(url: Callable[[], str], times: int) -> None:
    """Print how long it takes from a submission to the first activity, on an idle system."""
    began: list[float] = []

    def note(context: Small) -> None:
        began.append(time.perf_counter())

    with contextlib.closing(open_store(url())) as store:
        processor = SequenceProcessor([note], context=Small, name="one")
        durable = DurableEngine(store, {"one": Job(processor)})
        worker = Worker(store, durable.jobs, WorkerSettings(threads=2))
        worker.start()
        taken = []
        for i in range(times):
            time.sleep(0.02)
            sent = time.perf_counter()
            ticket = durable.client.submit("one", i)
            durable.client.wait(ticket.id, timeout=30)
            taken.append((began[-1] - sent) * 1000)
        worker.stop()
    p50, p99 = statistics.median(taken), statistics.quantiles(taken, n=100)[98]
    print(f"submit to first activity   p50 {p50:.1f} ms  p99 {p99:.1f} ms  ({times} times)")


def claim(url: Callable[[], str], waiting: int, finished: int) -> None:
    """Print what it costs to claim a group, with so many runs waiting and finished, and what waiting ones hold here."""
    with contextlib.closing(open_store(url())) as store:
        durable = engine(store, Small)
        if finished:
            durable.client.submit_many("five", range(finished))
            worker = Worker(store, durable.jobs, WorkerSettings(threads=2))
            worker.start()
            while not worker.idle():
                time.sleep(0.05)
            worker.stop()
        began = time.perf_counter()
        durable.client.submit_many("five", range(waiting - waiting // 10))
        submitted = (time.perf_counter() - began) / (waiting - waiting // 10)
        tracemalloc.start()
        durable.client.submit_many("five", range(waiting // 10))
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        id = store.register(30, "benchmark", 1)
        taken = []
        for _ in range(20):
            began = time.perf_counter()
            claimed = store.commit(id, Batch(claim=20), lease=30).claimed
            taken.append((time.perf_counter() - began) / 20)
            store.commit(id, Batch(released=[one.group for one in claimed]), lease=30)
        store.retire(id)
    cost = statistics.median(taken) * 1e6
    print(
        f"{waiting:9} waiting, {finished:9} finished: claim {cost:6.0f} us a group, submit {1 / submitted:8.0f}/s,",
        end=" ",
    )
    print(f"{held / (waiting // 10):.1f} B of memory a waiting run")


@contextlib.contextmanager
def places(store: str, folder: Path | None) -> Iterator[Callable[[], str]]:
    """Give a function that returns the URL of a new store."""
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        if store == "sqlite":
            yield lambda: f"sqlite:///{temporary}/{uuid.uuid4().hex}.db"
        else:
            mark = "&" if "?" in store else "?"
            yield lambda: f"{store}{mark}schema=bench_{uuid.uuid4().hex[:12]}"


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", default="sqlite", help="sqlite, or the URL of a PostgreSQL database")
    parser.add_argument("--folder", type=Path, help="where SQLite files lie (default: the temporary folder)")
    parser.add_argument("--only", choices=["throughput", "latency", "claim"], help="one part")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each shape (default 3)")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a turn (default 2)")
    parser.add_argument("--waiting", type=int, action="append", help="waiting runs for `claim`; may be repeated")
    parser.add_argument("--finished", type=int, default=0, help="finished runs for `claim`")
    given = parser.parse_args()
    with places(given.store, given.folder) as url:
        if given.only in (None, "throughput"):
            throughput(url, given.rounds, given.seconds)
        if given.only in (None, "latency"):
            latency(url, max(20, int(100 * given.seconds)))
        if given.only in (None, "claim"):
            for waiting in given.waiting or [1000, 20_000]:
                claim(url, waiting, given.finished)


if __name__ == "__main__":
    main()
