"""A minute of chaos on each store; IOCFLOW_CHAOS_SECONDS makes it longer, IOCFLOW_CHAOS_SEED repeats its chance."""

from __future__ import annotations

import os
import random
from pathlib import Path

from tests.crash.benches import Bench
from tests.crash.chaos import Chaos, Plan
from tests.crash.nursery import Nursery


def test_chaos(bench: Bench, nursery: Nursery, tmp_path: Path) -> None:
    """K3, C8, C9: workers are killed and stopped, with clocks an hour wrong: every order is done, each step once."""
    lasts = float(os.environ.get("IOCFLOW_CHAOS_SECONDS") or 60)
    seed = int(os.environ.get("IOCFLOW_CHAOS_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"IOCFLOW_CHAOS_SEED={seed}")
    chaos = Chaos(Plan(seed=seed, lasts=lasts, runs=max(1000, int(lasts * 1000 / 60))), bench.url, nursery, tmp_path)
    try:
        chaos.run()
        print(chaos.told())
        assert chaos.faults() == []
    finally:
        chaos.store.close()
