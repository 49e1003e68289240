"""Many at once: claimers in many processes, and everybody at everything."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from iocflow.store.contract import Batch, Claimed, Ending, Rest, Store
from iocflow.store.errors import FencedError
from tests.contract.store.stores import Kit
from tests.contract.store.work import LEASE, record, submission

SHORT = 0.5
"""The lease of workers of whom some are to die."""

PROGRAM = Path(__file__).with_name("claimers.py")


def drain(url: str, processes: int, threads: int, groups: int) -> list[list[int]]:
    """Let claimers in several processes begin at once; return what each of them got."""
    command = [sys.executable, str(PROGRAM), url, str(threads), str(groups)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    try:
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        outputs = [process.communicate(timeout=120)[0] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    return [got for output in outputs for got in json.loads(output)]


def test_every_run_is_claimed_once(kit: Kit, store: Store) -> None:
    """Of 10,000 runs without groups each is claimed once, by 32 claimers in 4 processes; no error reaches them."""
    store.submit([submission() for _ in range(10_000)])
    got = drain(kit.url, processes=4, threads=8, groups=16)
    assert len(got) == 32
    assert Counter(itertools.chain.from_iterable(got)) == Counter(one.id for one in store.runs(limit=20_000))
    assert store.counts()["completed"] == 10_000


def test_groups_are_served_in_order_by_many(kit: Kit, store: Store) -> None:
    """Each of 100 groups of 30 runs is served in order by 16 claimers, and counts what was done in its state."""
    submissions = [submission(group=f"g{i % 100}") for i in range(3000)]
    accepted = store.submit(submissions)
    got = drain(kit.url, processes=4, threads=4, groups=2)
    assert sum(map(len, got)) == 3000
    group_of = {one.id: run.group for one, run in zip(accepted, submissions, strict=True)}
    for runs in got:
        for _, served in itertools.groupby(sorted(runs, key=lambda run: str(group_of[run])), key=group_of.get):
            ids = list(served)
            assert ids == sorted(ids)
    ends = kit.sql("select key, ended, id from run order by ended, id")
    for key, rows in itertools.groupby(sorted(ends, key=lambda row: str(row[0])), key=lambda row: row[0]):
        assert [row[2] for row in rows] == sorted(run for run, group in group_of.items() if group == key)
    assert {bytes(state) for (state,) in kit.sql("select state from group_state")} == {b"30"}


class Player:
    """One of many who do whatever they may at random; it holds runs as a worker does."""

    def __init__(self, store: Store, seed: int, sent: list[int]) -> None:
        """Register."""
        self.store = store
        self.random = random.Random(seed)
        self.sent = sent
        self.hand: dict[int, list[Claimed]] = {}
        self.worker = store.register(SHORT, "host", seed)

    def play(self, until: float) -> None:
        """Make moves until the time is over, and give back what is in hand."""
        moves = [self.submit, self.work, self.work, self.work, self.operate, self.sweep]
        while time.monotonic() < until:
            try:
                self.random.choice(moves)()
            except FencedError:
                self.hand.clear()
                self.worker = self.store.register(SHORT, "host", 1)
        self.store.retire(self.worker)

    def submit(self) -> None:
        """Send a few runs, some to groups, some delayed or with limits."""
        now, chance = self.store.now(), self.random.random
        for _ in range(self.random.randrange(1, 5)):
            one = submission(
                group=self.random.choice([None, "a", "b", "c"]),
                priority=self.random.randrange(10),
                not_before=now + chance() * 0.2 if chance() < 0.2 else None,
                deadline=now + chance() if chance() < 0.2 else None,
                start_by=now + chance() if chance() < 0.1 else None,
            )
            self.sent.append(self.store.submit([one])[0].id)

    def work(self) -> None:
        """Move each group in hand on by one thing, and claim more."""
        batch = Batch(claim=self.random.randrange(4), alone=not self.hand)
        for group, runs in list(self.hand.items()):
            self.move(batch, group, runs)
        receipt = self.store.commit(self.worker, batch, lease=SHORT)
        for group, runs in list(self.hand.items()):
            self.hand[group] = [run for run in runs if run.id not in receipt.dropped]
            if not self.hand[group]:
                del self.hand[group]
        for run in receipt.claimed:
            self.hand.setdefault(run.group, []).append(run)

    def move(self, batch: Batch, group: int, runs: list[Claimed]) -> None:
        """Record a step of the group's first run, or its end or rest; let go of the group when nothing is left."""
        run, what = runs[0], self.random.random()
        run.n += 1
        batch.records.append(record(run.id, run.n))
        if what < 0.3:
            batch.endings.append(Ending(run.id, group, *self.random.choice(ENDS)))
            if batch.endings[-1].state == "suspended":
                runs.clear()
        elif what < 0.5:
            keep = what < 0.4
            until = self.store.now() + self.random.random() * 0.1
            batch.rests.append(Rest(run.id, group, until, waits=what < 0.35 or what > 0.45, keep=keep))
            if keep:
                runs.clear()
        else:
            return
        del runs[:1]
        if not runs:
            batch.released.append(group)
            self.hand[group] = []

    def operate(self) -> None:
        """Do what an operator or a sender of signals does to any run."""
        if self.sent:
            run = self.random.choice(self.sent)
            act = self.random.randrange(6)
            if act == 0:
                self.store.cancel(run, who="me", why="chance")
            elif act == 1:
                self.store.retry(run, who="me", why="chance")
            elif act == 2:
                self.store.drop(run, who="me", why="chance")
            else:
                self.store.signal(run, "s", b"1")

    def sweep(self) -> None:
        """Sweep, and now and then die with everything in hand."""
        self.store.sweep(deliveries=3)
        if self.random.random() < 0.1:
            self.hand.clear()
            self.worker = self.store.register(SHORT, "host", 1)


ENDS: list[tuple[Any, str]] = [
    ("completed", "ok"),
    ("completed", "stopped"),
    ("failed", "error"),
    ("cancelled", "cancelled"),
    ("suspended", "error"),
]


def test_everybody_at_everything(kit: Kit, store: Store) -> None:
    """Six who submit, work, die, operate and sweep at random leave nothing that the doctor would find."""
    sent: list[int] = []
    stores = [store, kit.open(), kit.open()]
    until = time.monotonic() + 4.0
    with ThreadPoolExecutor(6) as pool:
        played = [pool.submit(Player(stores[i % 3], i, sent).play, until) for i in range(6)]
        for one in played:
            one.result()
    assert list(store.doctor()) == []
    assert sum(store.counts().values()) == len(sent) > 50
    kit.advance(LEASE + 1)
    while store.sweep(deliveries=3) != (0, 0, 0, 0):
        pass
    assert list(store.doctor()) == []
