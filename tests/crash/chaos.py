"""Workers over one store that are killed, stopped for longer than their lease, and replaced, for as long as one likes.

`python -m tests.crash.chaos --seconds 3600` runs it by hand; the tests run it for a minute on each store.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from iocflow.durable.client import Client
from tests import postgres_server
from tests.crash.benches import opened
from tests.crash.ledger import Ledger
from tests.crash.nursery import Nursery, nursery
from tests.crash.order import STEPS, Purchase, order_job

LEASE, TICK = 2.0, 0.5
HOUR = 3600.0
ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to happen; times are seconds.

    Attributes:
        seed: Of the random numbers: who is killed or stopped, and when.
        lasts: How long workers are killed; then those that are left finish the work.
        runs: How many orders are submitted meanwhile.
        groups: How many groups they are of.
        workers: How many processes there are at any time.
        every: Between two workers that are killed or stopped, on average.
        stopped: The share of those that are stopped.
        takes: Of a step, at most.
        patience: To finish the work in the end.
    """

    seed: int
    lasts: float = 60.0
    runs: int = 1000
    groups: int = 50
    workers: int = 8
    every: float = 0.3
    stopped: float = 0.1
    takes: float = 0.2
    patience: float = 120.0


class Chaos:
    """One run of it.

    Attributes:
        killed: How many workers were killed.
        stopped: How many were stopped for longer than their lease, and went on.
    """

    def __init__(self, plan: Plan, url: str, nursery: Nursery, folder: Path) -> None:
        """Open the store, and the foreign system."""
        self.plan, self.url, self.killed, self.stopped = plan, url, 0, 0
        self.ledger = Ledger(folder / "ledger.db")
        self.store = opened(url)
        self._client = Client(self.store, {"order": order_job("leased", self.ledger, "")})
        self._nursery = nursery
        self._random = random.Random(plan.seed)
        self._workers: list[int] = []
        self._timers: list[threading.Timer] = []
        self._submitted = 0

    def run(self) -> None:
        """Do all of it, and let what is left of the workers end in good order.

        Raises:
            TimeoutError: The work was not finished in time.
        """
        try:
            began = strike = time.monotonic()
            self._workers = [self._start() for _ in range(self.plan.workers)]
            while (past := time.monotonic() - began) < self.plan.lasts:
                self._submit(int(self.plan.runs * past / self.plan.lasts))
                if time.monotonic() >= strike:
                    strike += self._random.expovariate(1 / self.plan.every)
                    self._strike(self._random.randrange(len(self._workers)))
                time.sleep(0.01)
            self._submit(self.plan.runs)
            self._finish()
        finally:
            for timer in self._timers:
                timer.cancel()

    def faults(self) -> list[str]:
        """Return what is not as it should be; nothing, it is hoped."""
        counts, effects, runs = self.store.counts(), self.ledger.all_effects(), self.plan.runs
        steps, expected = self._steps(), len(STEPS) * self.plan.runs
        found = [f"{one.invariant}: {one.what}" for one in self.store.doctor()]
        if counts.get("completed") != runs:
            found.append(f"not {runs} runs completed: {counts}")
        if len(effects) != expected:
            found.append(f"{len(effects)} effects, not {expected}")
        if steps != expected:
            found.append(f"{steps} steps done, not {expected}")
        of_group: defaultdict[str, list[int]] = defaultdict(list)
        for customer, _ in effects:
            group, number = customer.split()
            of_group[group].append(int(number))
        found += [f"{group} out of order: {order}" for group, order in of_group.items() if order != sorted(order)]
        return found

    def _steps(self) -> int:
        """Return how many steps are recorded as done."""
        after = steps = 0
        while page := self.store.runs(after=after, limit=500):
            steps += sum(one.steps for one in page)
            after = page[-1].id
        return steps

    def _start(self) -> int:
        """Start a worker, whose own clock goes an hour wrong, or does not."""
        return self._nursery.start(
            "tests.crash.child:live",
            url=self.url,
            program="order",
            options={"ledger": str(self.ledger.path), "takes": self.plan.takes},
            settings={"threads": 2, "lease": LEASE, "tick": TICK, "deliveries": 50},
            clock=self._random.choice([-HOUR, 0.0, HOUR]),
        )

    def _submit(self, upto: int) -> None:
        """Submit orders until there are `upto`."""
        for number in range(self._submitted, upto):
            group = f"group-{self._random.randrange(self.plan.groups)}"
            self._client.submit("order", Purchase(group, str(number)), group=group)
        self._submitted = upto

    def _strike(self, which: int) -> None:
        """Kill a worker, or stop it for longer than its lease; in its place a new one starts."""
        pid = self._workers[which]
        if self._nursery.ended(pid):
            raise AssertionError(f"worker {pid} ended by itself:\n{self._nursery.said(pid)}")
        if self._random.random() >= self.plan.stopped:
            self._nursery.kill(pid)
            self.killed += 1
            self._workers[which] = self._start()
            return
        os.kill(pid, signal.SIGSTOP)
        self.stopped += 1
        # By a thread: whatever this one does next may wait for a lock that the one that is stopped has.
        timer = threading.Timer(LEASE * self._random.uniform(1.1, 2.0), self._wake, [pid])
        self._timers.append(timer)
        timer.start()

    @staticmethod
    def _wake(pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):  # it was killed meanwhile
            os.kill(pid, signal.SIGCONT)

    def _finish(self) -> None:
        """Wait for the end of the work, then of the workers."""
        until = time.monotonic() + self.plan.patience
        while (counts := self.store.counts()).get("completed") != self.plan.runs:
            if time.monotonic() > until:
                said = "\n".join(self._nursery.said(pid) for pid in self._workers)
                raise TimeoutError(f"not finished in {self.plan.patience} s: {counts}\n{said}")
            time.sleep(0.05)
        for timer in self._timers:
            timer.join()
        for pid in self._workers:
            os.kill(pid, signal.SIGTERM)
        for pid in self._workers:
            code = self._nursery.wait(pid)
            assert code == 0, f"worker {pid} ended with {code}:\n{self._nursery.said(pid)}"

    def told(self) -> str:
        """Return what happened, in a line."""
        calls, runs = self.ledger.all_calls(), self.plan.runs
        lost = sum(one.deliveries for one in self.store.runs(limit=runs))
        return (
            f"seed {self.plan.seed}: {runs} runs, {self.killed} workers killed, {self.stopped} stopped,"
            f" {lost} runs lost with one, {calls} calls for {len(self.ledger.all_effects())} effects"
        )


def main() -> None:
    """Run it by hand."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--store", default="sqlite", help="sqlite, postgres, or the URL of a database of yours")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long workers are killed (default 60)")
    parser.add_argument("--runs", type=int, help="how many orders (default 1,000 a minute)")
    parser.add_argument("--workers", type=int, default=8, help="how many processes (default 8)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="of the chance")
    given = parser.parse_args()
    runs = given.runs or max(1, int(1000 * given.seconds / 60))
    plan = Plan(seed=given.seed, lasts=given.seconds, runs=runs, workers=given.workers, groups=max(50, runs // 20))
    print(f"seed {plan.seed}", flush=True)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-")))
        url = given.store
        if url == "sqlite":
            url = f"sqlite:///{folder}/store.db"
        elif url == "postgres":
            server = os.environ.get("IOCFLOW_TEST_POSTGRES")
            server = server or stack.enter_context(postgres_server.borrowed(folder / "postgres"))
            url = stack.enter_context(postgres_server.schema(server))
        chaos = Chaos(plan, url, stack.enter_context(nursery(folder, ROOT)), folder)
        stack.callback(chaos.store.close)
        chaos.run()
        print(chaos.told())
        faults = chaos.faults()
    print("\n".join(faults) or "nothing is wrong")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
