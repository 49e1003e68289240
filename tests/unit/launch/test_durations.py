"""The histogram of how long runs took."""

from __future__ import annotations

from iocflow.launch.durations import BOUNDS, Durations


def test_each_duration_has_its_bucket() -> None:
    """A duration counts in the first bucket whose bound it does not pass; processors are told apart."""
    durations = Durations()
    for seconds in (0.0, BOUNDS[0], BOUNDS[0] + 1e-9, BOUNDS[-1], BOUNDS[-1] + 1):
        durations.add("a", seconds)
    durations.add("b", 1.5)
    found = durations.histograms()
    assert found["a"].counts == (2, 1, *[0] * (len(BOUNDS) - 3), 1, 1)
    assert (sum(found["b"].counts), found["b"].total) == (1, 1.5)
