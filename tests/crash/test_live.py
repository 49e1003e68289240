"""Workers as users have them, in processes that are killed, stopped, and brought down by what they work on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from iocflow.durable.client import Client
from tests.crash.benches import Bench, opened
from tests.crash.nursery import LIMIT, Nursery
from tests.crash.programs import PROGRAMS

LEASE = 0.5
QUICK = {"threads": 2, "lease": LEASE, "tick": 0.1}


class Site:
    """A database with live workers on one program."""

    def __init__(self, bench: Bench, nursery: Nursery, folder: Path, program: str) -> None:
        """Open the store here, for a client."""
        self.url, self.folder, self.program = bench.url, folder, program
        self._nursery = nursery
        self.options = {"gated": {"folder": str(folder), "insert": ""}, "poisonous": {}}[program]
        self.store = opened(bench.url)
        self.client = Client(self.store, PROGRAMS[program](**self.options))

    def start(self, **settings: Any) -> int:
        """Start a worker; return its pid."""
        return self._nursery.start(
            "tests.crash.child:live",
            url=self.url,
            program=self.program,
            options=self.options,
            settings={**QUICK, **settings},
        )

    def submit(self, seed: str, group: str | None = None) -> int:
        """Submit a run."""
        return self.client.submit(self.program, seed, group=group).id


def until(done: Callable[[], object], what: str) -> None:
    """Wait until it is so."""
    end = time.monotonic() + LIMIT
    while not done():
        assert time.monotonic() < end, f"not in {LIMIT} s: {what}"
        time.sleep(0.01)


@pytest.fixture
def site(bench: Bench, nursery: Nursery, tmp_path: Path) -> Iterator[Callable[[str], Site]]:
    """Return what makes a site; in the end, the doctor looks at its store."""
    sites: list[Site] = []

    def make(program: str) -> Site:
        sites.append(Site(bench, nursery, tmp_path, program))
        return sites[-1]

    yield make
    found = [one for site in sites for one in site.store.doctor()]
    for site in sites:
        site.store.close()
    assert found == []


def test_poison_kills_five_workers_and_is_put_aside(site: Callable[[str], Site], nursery: Nursery) -> None:
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
    assert one.client.status(behind).state == "queued"
    assert [run for i, run in runs.items() if one.client.status(run).state != "completed"] == [runs[42]]


def test_a_stopped_worker_comes_back_too_late(site: Callable[[str], Site], nursery: Nursery) -> None:
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
