"""A process of claimers: threads that claim from one store until nothing is left, and say what they got.

python claimers.py URL THREADS GROUPS
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from iocflow.store import open_store
from iocflow.store.contract import Batch, Ending, Record, Store


def row(run: int, number: int, worker: int) -> Record:
    """Return a step's row that says who did it."""
    return Record(run, number, "step", "", f"w{worker}", 1.0, 2.0, "ok", 1, None, None, 0, f"{number}", b"{}")


def drain(store: Store, groups: int) -> list[int]:
    """Claim and end runs, a few groups at a time, until nothing is left; return them in order."""
    worker = store.register(60.0, "host", os.getpid())
    got: list[int] = []
    batch = Batch(claim=groups, alone=True)
    while True:
        claimed = store.commit(worker, batch, lease=60.0).claimed
        if not claimed:
            store.retire(worker)
            return got
        got += [run.id for run in claimed]
        states = {run.key: run.state for run in claimed if run.key}
        done = Counter(run.key for run in claimed if run.key)
        batch = Batch(
            records=[row(run.id, run.n + 1, worker) for run in claimed],
            endings=[Ending(run.id, run.group, "completed", "ok") for run in claimed],
            states={key: b"%d" % (int(states[key] or b"0") + count) for key, count in done.items()},
            released=sorted({run.group for run in claimed}),
            claim=groups,
            alone=True,
        )


def main(url: str, threads: int, groups: int) -> None:
    """Say when the store is open, wait for the word to begin, and print what each thread got."""
    store = open_store(url)
    print("ready", flush=True)
    sys.stdin.readline()
    with ThreadPoolExecutor(threads) as pool:
        print(json.dumps(list(pool.map(lambda _: drain(store, groups), range(threads)))))
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
