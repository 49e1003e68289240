"""Where the order program is killed: its database, its foreign system, its processes, and what became of its orders."""

from __future__ import annotations

import json
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iocflow.durable.client import Client
from tests.crash.benches import Bench, opened
from tests.crash.child import LEASE
from tests.crash.ledger import Ledger
from tests.crash.nursery import Nursery
from tests.crash.order import Mode, Purchase, order_job


@dataclass(frozen=True)
class End:
    """What became of an order, without the times, and without its own number."""

    state: str
    outcome: str
    trail: tuple[str, ...]
    context: Any
    effects: tuple[str, ...]
    domain: tuple[str, ...]


class Scene:
    """One test's programs: workers are processes, everything else is done here.

    Attributes:
        shift: Seconds that the store's clock is ahead.
    """

    def __init__(self, bench: Bench, nursery: Nursery, folder: Path, mode: Mode) -> None:
        """Open the store."""
        self.bench, self.nursery, self.mode, self.shift = bench, nursery, mode, 0.0
        self.ledger = Ledger(folder / "ledger.db")
        self.store = opened(bench.url, lambda: self.shift)
        self.client = Client(self.store, {"order": order_job(mode, self.ledger, bench.insert)})
        self._report = folder / "places.json"
        self._wires = tempfile.TemporaryDirectory(prefix="wire-")  # a short path: that of a socket is limited

    def close(self) -> None:
        """Let the doctor look, and close."""
        found = list(self.store.doctor())
        self.store.close()
        self._wires.cleanup()
        assert found == []

    def submit(self, number: str) -> int:
        """Submit an order, and return the run."""
        return self.client.submit("order", Purchase("ACME", number)).id

    def child(self, do: str, deadly: int | None = None, **what: Any) -> list[str]:
        """Let a program of `tests.crash.child` run to its end, which is at a place; return those that it came by."""
        pid = self.nursery.start(
            f"tests.crash.child:{do}",
            url=self.bench.url,
            shift=self.shift,
            ledger=str(self.ledger.path),
            folder=tempfile.mkdtemp(dir=self._wires.name),
            report=str(self._report),
            deadly=deadly,
            **what,
        )
        code = self.nursery.wait(pid)
        expected = 0 if deadly is None else -signal.SIGKILL
        assert code == expected, f"{do} was to die at place {deadly}, ended with {code}:\n{self.nursery.said(pid)}"
        names: list[str] = json.loads(self._report.read_text(encoding="utf-8")) if deadly is None else []
        return names

    def work(self, deadly: int | None = None) -> list[str]:
        """Let a worker do all there is to do, or die at a place; return the places that it came by."""
        return self.child("work", deadly, mode=self.mode, insert=self.bench.insert)

    def takeover(self) -> list[str]:
        """Let the lease of the dead run out, and a fresh worker carry on."""
        self.shift += LEASE + 1
        return self.work()

    def end(self, run: int) -> End:
        """Return what became of a run."""
        status = self.client.status(run)
        steps = [one for one in self.store.history(run) if one.kind == "step"]
        stored = self.store.context(run)
        return End(
            status.state,
            status.outcome,
            tuple(f"{one.name} {one.outcome} x{one.attempts}" for one in steps),
            stored and json.loads(stored.decode().replace(status.number, "*")),
            tuple(self.ledger.effects(f"ACME {status.number}")),
            tuple(self.bench.domain(status.number)),
        )

    def kinds(self, run: int) -> list[str]:
        """Return the kinds of the entries of a run's journal, whose numbers have no gap."""
        journal = self.store.history(run)
        assert [one.number for one in journal] == list(range(1, len(journal) + 1))
        return [one.kind for one in journal]
