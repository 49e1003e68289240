"""How the benchmarks measure: contestants in turn, round after round, and the median of each.

Interleaving spreads a slow moment of the machine over all of them, so that the ratios hold where the times do not.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping

Contestants = Mapping[str, Callable[[], object]]


def parser(description: str) -> argparse.ArgumentParser:
    """Return the command line that every benchmark has; it may add to it."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--rounds", type=int, default=7, help="turns of each contestant (default 7)")
    options.add_argument("--seconds", type=float, default=0.2, help="length of a turn (default 0.2)")
    return options


def arguments(description: str) -> argparse.Namespace:
    """Read what every benchmark's command line offers."""
    return parser(description).parse_args()


def turn(contestant: Callable[[], object], seconds: float) -> float:
    """Call `contestant` until `seconds` are over; return the seconds of one call."""
    contestant()
    calls = 0
    began = time.perf_counter()
    while (spent := time.perf_counter() - began) < seconds or not calls:
        contestant()
        calls += 1
    return spent / calls


def measure(contestants: Contestants, *, rounds: int, seconds: float) -> dict[str, float]:
    """Return the median seconds of one call for each contestant."""
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            taken[name].append(turn(contestant, seconds))
    return {name: statistics.median(times) for name, times in taken.items()}


def report(medians: Mapping[str, float], *, base: str) -> None:
    """Print the medians in microseconds, and as multiples of `base`."""
    for name, seconds in medians.items():
        print(f"{name:44} {seconds * 1e6:10.2f} us  x{seconds / medians[base]:.2f}")
