"""The exhaustive kill: a worker dies at every write, before and after it, and a fresh one carries on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.crash.order import STEPS, Mode
from tests.crash.scene import Scene

DONE = [f"{name} DONE x1" for name in STEPS]


@pytest.mark.parametrize("mode", ["transactional", "leased"])
def test_killed_at_every_write(scene: Callable[[Mode], Scene], mode: Mode) -> None:
    """K1, K2: wherever the worker dies, the order ends as if it had not; each step took effect once."""
    stage = scene(mode)
    calm = stage.submit("N0000")
    places = stage.work()
    undisturbed = stage.end(calm)
    assert list(undisturbed.trail) == DONE
    assert list(undisturbed.domain if mode == "transactional" else undisturbed.effects) == list(STEPS)
    failures = []
    for place, name in enumerate(places, start=1):
        run = stage.submit(f"N{place:04}")
        stage.work(place)
        stage.takeover()
        if (end := stage.end(run)) != undisturbed:
            failures.append(f"killed {name} (place {place}): {end}")
        kinds = stage.kinds(run)
        assert kinds.count("lost") == stage.client.status(run).deliveries <= 1, name
        assert [kind for kind in kinds if kind != "lost"] == stage.kinds(calm), name
        calls = stage.ledger.calls(f"ACME N{place:04}")
        assert len(calls) <= (5 if mode == "leased" else 0), name
        assert len({call.key for call in calls}) == (4 if mode == "leased" else 0), name
    assert not failures, "\n".join(failures)
