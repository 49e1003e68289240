"""What a commit of the SQLite store costs beside a raw commit of the same database, in one sitting.

    python tests/benchmarks/store_commits.py [--rounds N] [--seconds S] [--folder DIR]

A raw commit writes one row of 200 bytes. The store's commits write step records with a context of 200 bytes; those of
whole runs also end runs of five steps, release their groups and claim as many again.
"""

from __future__ import annotations

import itertools
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

from measuring import measure, parser, report

from iocflow.store.contract import Batch, Claimed, Ending, Record, Submission
from iocflow.store.sqlite.store import SqliteStore

CONTEXT = b'{"text":"%s"}' % (b"x" * 188)
LEASE = 30.0
STEPS = 5


def raw(path: Path, rows: int) -> Callable[[], None]:
    """Return a function that commits so many rows by hand."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("create table t(run int, n int, data blob, primary key(run, n))")
    number = itertools.count(1)

    def commit() -> None:
        run = next(number)
        connection.execute("begin immediate")
        connection.executemany("insert into t values (?, ?, ?)", [(run, n, CONTEXT) for n in range(rows)])
        connection.execute("commit")

    return commit


def record(run: int, n: int) -> Record:
    """Return a step's record as a worker writes it."""
    return Record(run, n, "step", "", "order/reserve", 1.7e9, 1.7e9, "ok", 1, None, None, 1, f'{{"at":{n}}}', CONTEXT)


class Bench:
    """A store with many runs, and a worker."""

    def __init__(self, path: Path, runs: int) -> None:
        """Submit the runs."""
        self.store = SqliteStore(path)
        self.worker = self.store.register(LEASE, "host", 1)
        self.number = itertools.count()
        self.submit(runs)

    def submission(self) -> Submission:
        """Return a submission like a user's."""
        number = str(next(self.number))
        return Submission(processor="order", body=b'{"po":17}', digest="d", submitter="ACME", number=number)

    def submit(self, runs: int) -> None:
        """Submit runs in one batch."""
        self.store.submit([self.submission() for _ in range(runs)])

    def records(self, count: int) -> Callable[[], None]:
        """Return a function that commits records only, of as many runs."""
        claimed = self.store.commit(self.worker, Batch(claim=count, alone=True), lease=LEASE).claimed
        numbers = itertools.count(1)

        def commit() -> None:
            n = next(numbers)
            batch = Batch(records=[record(run.id, n) for run in claimed])
            self.store.commit(self.worker, batch, lease=LEASE)

        return commit

    def runs(self, flight: int) -> Callable[[], None]:
        """Return a function that moves so many runs on by one step; a fifth of them ends, and is replaced."""
        hand: dict[int, Claimed] = {}
        worker = self.store.register(LEASE, "host", 1)

        def commit() -> None:
            batch = Batch(alone=True)
            for run in list(hand.values()):
                run.n += 1
                batch.records.append(record(run.id, run.n))
                if run.n == STEPS:
                    batch.endings.append(Ending(run.id, run.group, "completed", "ok"))
                    batch.released.append(run.group)
                    del hand[run.id]
            batch.claim = flight - len(hand)
            claimed = self.store.commit(worker, batch, lease=LEASE).claimed
            if len(claimed) == flight > 1:  # the first time: let them not all end at once
                first = [(run, n) for i, run in enumerate(claimed) for n in range(1, i % STEPS + 1)]
                self.store.commit(worker, Batch(records=[record(run.id, n) for run, n in first]), lease=LEASE)
                for i, run in enumerate(claimed):
                    run.n = i % STEPS
            hand.update((run.id, run) for run in claimed)

        return commit

    def caller(self, path: Path, *, submits: bool) -> Callable[[], None]:
        """Return a function that commits a row of the caller's own, and perhaps a run with it."""
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("pragma synchronous = full")
        connection.execute("create table if not exists own(data blob)")

        def commit() -> None:
            connection.execute("begin immediate")
            connection.execute("insert into own values (?)", (CONTEXT,))
            if submits:
                self.store.submit([self.submission()], transaction=connection)
            connection.execute("commit")

        return commit

    def steps(self) -> Callable[[], None]:
        """Return a function that does a step in its own transaction, with a row of the activity's own."""
        (run,) = self.store.commit(self.worker, Batch(claim=1, alone=True), lease=LEASE).claimed
        numbers = itertools.count(1)

        def commit() -> None:
            with self.store.begin(self.worker, lease=LEASE) as step:
                step.connection.execute("insert into own values (?)", (CONTEXT,))
                step.commit(Batch(records=[record(run.id, next(numbers))]))

        return commit


def main() -> None:
    """Measure, and print times and ratios."""
    options = parser(__doc__ or "")
    options.add_argument("--folder", default=None, help="where the files are made (default: the temporary folder)")
    options.add_argument("--runs", type=int, default=50_000, help="how many runs wait (default 50,000)")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        bench = Bench(Path(folder) / "store.db", chosen.runs)
        contestants = {f"raw commit, {n} rows": raw(Path(folder) / f"raw{n}.db", n) for n in (1, 64, 1024)}
        contestants |= {f"store commit, {n} records": bench.records(n) for n in (1, 64, 1024)}
        contestants |= {f"store commit, {n} runs of 5 steps": bench.runs(n) for n in (1, 8, 64, 512)}
        contestants["a caller's commit"] = bench.caller(Path(folder) / "store.db", submits=False)
        contestants["the same with a submission"] = bench.caller(Path(folder) / "store.db", submits=True)
        contestants["a step in its own transaction"] = bench.steps()
        contestants |= {f"submit, {n} runs": lambda n=n: bench.submit(n) for n in (1, 1000)}
        report(measure(contestants, rounds=chosen.rounds, seconds=chosen.seconds), base="raw commit, 1 rows")


if __name__ == "__main__":
    main()
