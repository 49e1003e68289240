"""Workers and submitters that die at one kind of place each, on the store's clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tests.crash.child import LEASE
from tests.crash.order import STEPS, Mode
from tests.crash.scene import Scene

MakeScene = Callable[[Mode], Scene]


def claim_of(places: list[str]) -> tuple[int, int]:
    """Return the places before the commit of the first claim, and after it."""
    after = places.index("after commit") + 1
    before = max(i for i in range(1, after) if not places[i - 1].startswith("before the reply"))
    return before, after


def around_the_third_step(places: list[str]) -> range:
    """Return the places from the record of the second step to that of the third, with the third's `begun` between."""
    commits = [place for place, name in enumerate(places, start=1) if name == "after commit"]
    claim_and_rows = 1 + 2 * len(STEPS)
    assert len(commits) == claim_and_rows
    return range(commits[4], commits[6] + 1)


def test_killed_before_the_claim_is_committed(scene: MakeScene) -> None:
    """K4: a run that was nearly claimed is free at once, and nobody counts a crash."""
    stage = scene("leased")
    stage.submit("N1")
    before, _ = claim_of(stage.work())
    run = stage.submit("N2")
    stage.work(before)
    assert stage.client.status(run).state == "queued"
    stage.work()
    assert stage.client.status(run).state == "completed"
    assert stage.client.status(run).deliveries == 0


def test_killed_between_the_claim_and_the_activity(scene: MakeScene) -> None:
    """K5: a run that was claimed is free when the lease has run out, and the crash is counted when it is taken over."""
    stage = scene("leased")
    stage.submit("N1")
    _, after = claim_of(stage.work())
    run = stage.submit("N2")
    stage.work(after)
    stage.shift += LEASE - 1
    stage.work()
    assert (stage.client.status(run).state, stage.client.status(run).deliveries) == ("running", 0)
    stage.shift += 2
    stage.work()
    assert (stage.client.status(run).state, stage.client.status(run).deliveries) == ("completed", 1)
    assert stage.kinds(run) == ["submitted", "lost", *["step"] * 4, "ended"]
    assert len(stage.ledger.calls("ACME N2")) == 4


@pytest.mark.parametrize("done", [False, True], ids=["retry", "done"])
def test_killed_in_a_step_that_must_not_be_repeated(scene: MakeScene, done: bool) -> None:
    """K6: such a step is not called again unasked: the run is suspended, in doubt, and an operator answers."""
    stage = scene("incident")
    calm = stage.submit("N0000")
    places = stage.work()
    undisturbed = stage.end(calm)
    doubted = []
    for place in around_the_third_step(places):
        name = places[place - 1]
        run, customer = stage.submit(f"N{place:04}"), f"ACME N{place:04}"
        stage.work(place)
        *_, last = stage.store.history(run)
        stage.takeover()
        effects, repeated = list(STEPS), 0
        if last.kind == "begun":
            doubted.append(last.name)
            calls = [call for call in stage.ledger.calls(customer) if call.what == last.name]
            assert len(calls) <= 1, name
            status = stage.client.status(run)
            assert (status.state, status.deliveries) == ("suspended", 1), name
            assert f"{last.name} was under way (key {customer.replace(' ', '/')}/{last.name}#" in status.reason
            assert last.began is not None
            assert datetime.fromtimestamp(last.began, UTC).isoformat(timespec="seconds") in status.reason
            assert stage.client.retry(run, who="operator", why="asked by phone", done=done)
            stage.work()
            if done and not calls:
                effects.remove(last.name)  # the operator was wrong, and was believed
            repeated = 0 if done else len(calls)
        end = stage.end(run)
        assert end.trail == undisturbed.trail, name
        assert list(end.effects) == effects, name
        assert len(stage.ledger.calls(customer)) == len(effects) + repeated, name
    assert set(doubted) == {STEPS[2]}


def test_killed_while_submitting(scene: MakeScene) -> None:
    """K11: a submitter that dies at any place, and submits the same again, has one run of each."""
    stage = scene("leased")
    many = [f"N{i}" for i in range(4)]
    places = stage.child("submit", numbers=many)
    for place, name in enumerate(places, start=1):
        numbers = [f"{place}-{number}" for number in many]
        stage.child("submit", place, numbers=numbers)
        stage.child("submit", numbers=numbers)
        runs = [stage.client.id_of("ACME", number) for number in numbers]
        assert len(set(runs)) == len(numbers), name
    assert stage.store.counts()["queued"] == len(many) * (len(places) + 1)
    stage.work()
    assert stage.store.counts()["completed"] == len(many) * (len(places) + 1)
