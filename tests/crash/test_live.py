"""Workers as users have them, in processes that are killed, stopped, and brought down by what they work on."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from iocflow.durable.client import Client
from tests.crash.benches import Bench, SqliteBench, opened
from tests.crash.ledger import Ledger
from tests.crash.nursery import LIMIT, Nursery
from tests.crash.order import STEPS, Purchase
from tests.crash.programs import PROGRAMS

LEASE = 0.5
QUICK = {"threads": 2, "lease": LEASE, "tick": 0.1}


DEFAULTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "gated": lambda folder: {"folder": str(folder), "insert": ""},
    "order": lambda folder: {"ledger": str(folder / "ledger.db"), "takes": 0.05},
    "poisonous": lambda folder: {},
}
"""The options of the programs."""


class Site:
    """A database with live workers on one program."""

    def __init__(self, bench: Bench, nursery: Nursery, folder: Path, program: str, options: dict[str, Any]) -> None:
        """Open the store."""
        self.folder, self.program = folder, program
        self._nursery = nursery
        self.options = {**DEFAULTS[program](folder), **options}
        self.open(bench.url)

    def open(self, url: str) -> None:
        """Open a store here, for a client, and for the workers that are started from now on."""
        self.url, self.store = url, opened(url)
        self.client = Client(self.store, PROGRAMS[self.program](**self.options))

    def start(self, **settings: Any) -> int:
        """Start a worker; return its pid."""
        return self._nursery.start(
            "tests.crash.child:live",
            url=self.url,
            program=self.program,
            options=self.options,
            settings={**QUICK, **settings},
        )

    def submit(self, seed: Any, group: str | None = None) -> int:
        """Submit a run."""
        return self.client.submit(self.program, seed, group=group).id


MakeSite = Callable[..., Site]


def until(done: Callable[[], object], what: str) -> None:
    """Wait until it is so."""
    end = time.monotonic() + LIMIT
    while not done():
        assert time.monotonic() < end, f"not in {LIMIT} s: {what}"
        time.sleep(0.01)


@pytest.fixture
def site(bench: Bench, nursery: Nursery, tmp_path: Path) -> Iterator[MakeSite]:
    """Return what makes a site; in the end, the doctor looks at its store."""
    sites: list[Site] = []

    def make(program: str, **options: Any) -> Site:
        sites.append(Site(bench, nursery, tmp_path, program, options))
        return sites[-1]

    yield make
    found = [one for site in sites for one in site.store.doctor()]
    for site in sites:
        site.store.close()
    assert found == []


def test_poison_kills_five_workers_and_is_put_aside(site: MakeSite, nursery: Nursery) -> None:
    """K12: input that brings its worker down does so five times; its group is quarantined, the 99 others finish."""
    one = site("poisonous")
    runs = {i: one.submit("poison" if i == 42 else "good", f"group {i}") for i in range(100)}
    behind = one.submit("good", "group 42")
    deaths = 0
    pid = one.start(deliveries=5)
    end = time.monotonic() + LIMIT
    while one.store.counts()["completed"] < 99 or one.client.status(runs[42]).state != "suspended":
        assert time.monotonic() < end, nursery.said(pid)
        if nursery.ended(pid):
            assert nursery.wait(pid) == -signal.SIGSEGV
            deaths += 1
            pid = one.start(deliveries=5)
        time.sleep(0.01)
    time.sleep(2 * LEASE)
    assert not nursery.ended(pid)
    assert deaths == 5
    status = one.client.status(runs[42])
    assert (status.state, status.reason, status.deliveries) == ("suspended", "poison", 5)
    assert status.activity == "crash"
    assert one.client.status(behind).state == "queued"
    assert [run for i, run in runs.items() if one.client.status(run).state != "completed"] == [runs[42]]


def test_a_stopped_worker_comes_back_too_late(site: MakeSite, nursery: Nursery) -> None:
    """C8: what a worker records that was stopped for longer than its lease is dropped: one record of each step."""
    one = site("gated")
    run = one.submit("order")
    zombie = one.start()
    until((one.folder / f"{zombie}.came").exists, "the first worker is in the step")
    os.kill(zombie, signal.SIGSTOP)
    heir = one.start()
    until((one.folder / f"{heir}.came").exists, "the second one took over")
    (one.folder / "open").touch()
    assert one.client.wait(run, timeout=LIMIT).state == "completed"
    os.kill(zombie, signal.SIGCONT)
    late = one.submit("late")
    nursery.kill(heir)
    assert one.client.wait(late, timeout=LIMIT).state == "completed"
    steps = [entry.name for entry in one.client.history(run) if entry.kind == "step"]
    assert steps == ["before", "gate", "after"]
    assert [entry.kind for entry in one.client.history(run)].count("fenced_out") == 1
    assert not nursery.ended(zombie)


def test_a_transaction_is_stopped(site: MakeSite, bench: Bench, nursery: Nursery) -> None:
    """C8: a worker stopped in a step's transaction: the step is done once, on PostgreSQL by its heir."""
    one = site("gated", insert=bench.insert)
    run = one.submit("order")
    zombie = one.start()
    until((one.folder / f"{zombie}.came").exists, "the first worker is in the step")
    os.kill(zombie, signal.SIGSTOP)
    heir = one.start()
    if isinstance(bench, SqliteBench):
        time.sleep(3 * LEASE)
    else:
        until((one.folder / f"{heir}.came").exists, "the second one took over")
    (one.folder / "open").touch()
    if not isinstance(bench, SqliteBench):
        assert one.client.wait(run, timeout=LIMIT).state == "completed"
    os.kill(zombie, signal.SIGCONT)
    assert one.client.wait(run, timeout=LIMIT).state == "completed"
    late = one.submit("late")
    nursery.kill(heir)
    assert one.client.wait(late, timeout=LIMIT).state == "completed"
    for seed, done in (("order", run), ("late", late)):
        assert [entry.name for entry in one.client.history(done) if entry.kind == "step"] == ["before", "gate", "after"]
        assert len(bench.domain(seed)) == 1
    assert not nursery.ended(zombie)


def test_the_whole_machine_is_off(site: MakeSite, bench: Bench, nursery: Nursery) -> None:
    """K13: all processes die at once; from what is on the disk, a standby goes on: all that was accepted is done."""
    one = site("order")
    runs = [one.submit(Purchase("ACME", f"N{i}")) for i in range(60)]
    pids = [one.start() for _ in range(3)]
    until(lambda: one.store.counts()["completed"] >= 20, "a third is done")
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        nursery.wait(pid)
    dead, url = one.store, bench.url
    if isinstance(bench, SqliteBench):
        standby = one.folder / "standby"
        standby.mkdir()
        for file in ("store.db", "store.db-wal"):
            shutil.copy(one.folder / file, standby)
        url = f"sqlite:///{standby}/store.db"
    one.open(url)
    dead.close()
    assert one.store.counts()["completed"] < len(runs)
    one.start()
    until(lambda: one.store.counts()["completed"] == len(runs), "all are done")
    effects = Ledger(one.folder / "ledger.db").all_effects()
    assert sorted(effects) == sorted((f"ACME N{i}", step) for i in range(60) for step in STEPS)
