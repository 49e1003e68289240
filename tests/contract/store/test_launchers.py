"""What a store keeps of scheduled launchers: each firing is given to one daemon, and dealt with once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from iocflow.store.contract import Store
from iocflow.store.launchers import GIVEN_UP_AFTER, End, Firing, Standing, Told
from tests.contract.store.stores import Kit

LEASE = 30.0


def firing(moment: float, **options: float) -> Firing:
    """Return a firing of the launcher `poll` that is due so many seconds after the epoch."""
    return Firing("poll", moment, **options)  # type: ignore[arg-type]


def begin(store: Store, wanted: Firing, daemon: str) -> Told:
    """Ask for a firing."""
    _, (told,) = store.launchers.write([], [wanted], daemon, LEASE)
    return told


def settle(store: Store, ended: Firing, daemon: str, outcome: str, run: str) -> bool:
    """Deal with a firing that has ended."""
    (fine,), _ = store.launchers.write([End(ended, outcome, run)], [], daemon, LEASE)
    return fine


def standing(store: Store) -> Standing:
    """Return how the launcher `poll` stands."""
    (found,) = store.launchers.standings(["poll"])
    return found


@pytest.fixture(autouse=True)
def _served(store: Store) -> None:
    """Let a daemon serve it."""
    store.launchers.serve({"poll": "every 60s"}, "a", LEASE)


def test_a_launcher_is_known_once_it_is_served(store: Store) -> None:
    """It stands as it was served last, and nothing before that was missed."""
    now = store.now()
    store.launchers.serve({"poll": "every 30s", "other": "@daily"}, "b", LEASE)
    other, poll = store.launchers.standings()
    assert (other.name, poll.name, poll.timing) == ("other", "poll", "every 30s")
    assert (poll.upto, poll.fired, poll.missed, poll.began, poll.outcome) == (None, 0, 0, None, "")
    assert poll.served
    assert not poll.busy
    assert not poll.paused
    assert abs(poll.since - now) < 10


def test_a_firing_is_given_to_one_daemon(store: Store) -> None:
    """Of many that ask at once one gets it; the others hear that it is in hand, and later that it is done."""
    daemons = [f"d{n}" for n in range(16)]
    with ThreadPoolExecutor(len(daemons)) as pool:
        told = list(pool.map(lambda daemon: begin(store, firing(1000.0), daemon), daemons))
    assert sorted(one.answer for one in told) == ["busy"] * 15 + ["yours"]
    assert all(0 < one.wait <= LEASE for one in told if one.answer == "busy")
    winner = daemons[[one.answer for one in told].index("yours")]
    assert standing(store).busy
    assert settle(store, firing(1000.0, missed=2), winner, "completed", "17")
    assert {begin(store, firing(1000.0), daemon).answer for daemon in daemons} == {"done"}
    found = standing(store)
    assert (found.upto, found.fired, found.missed, found.outcome, found.run) == (1000.0, 1, 2, "completed", "17")
    assert not found.busy
    assert found.began is not None
    assert found.ended is not None
    assert found.began <= found.ended


@pytest.mark.parametrize(
    ("moment", "options", "answer"),
    [
        (1000.0, {}, "done"),
        (999.0, {}, "done"),
        (1001.0, {}, "yours"),
        (1029.0, {"gap": 30.0}, "done"),
        (1030.0, {"gap": 30.0}, "yours"),
    ],
)
def test_no_firing_is_repeated_or_comes_too_soon(
    store: Store, moment: float, options: dict[str, float], answer: str
) -> None:
    """After the firing at 1,000 s comes a later one, and of an interval none that lies too close to it."""
    assert begin(store, firing(1000.0), "a").answer == "yours"
    settle(store, firing(1000.0), "a", "completed", "")
    assert begin(store, firing(moment, **options), "b") == (answer, 1000.0, 0.0)


def test_a_clock_that_was_far_ahead_silences_nobody(store: Store) -> None:
    """A moment that lies further in the store's future than the launcher rests is no reason to wait for it."""
    ahead = store.now() + 10 * 366 * 86_400
    begin(store, firing(ahead), "a")
    settle(store, firing(ahead), "a", "completed", "")
    now = store.now()
    assert begin(store, firing(now), "a").answer == "done"
    assert begin(store, firing(now, rest=60.0), "a").answer == "yours"
    settle(store, firing(now), "a", "completed", "")
    assert standing(store).upto == now


def test_the_firing_of_a_dead_daemon_is_taken_over(kit: Kit, store: Store) -> None:
    """Once its lease is over another daemon gets the same firing, and what the dead one says of it counts no more."""
    begin(store, firing(1000.0), "a")
    assert begin(store, firing(1000.0), "b").answer == "busy"
    kit.advance(LEASE + 1)
    assert not standing(store).busy
    assert standing(store).ended is None
    assert begin(store, firing(1000.0), "b").answer == "yours"
    assert not settle(store, firing(1000.0), "a", "completed", "")
    assert settle(store, firing(1000.0), "b", "failed", "")
    assert standing(store).outcome == "failed"


def test_a_daemon_that_lives_keeps_its_firing(kit: Kit, store: Store) -> None:
    """Serving extends the lease of what it has in hand."""
    begin(store, firing(1000.0), "a")
    for _ in range(3):
        kit.advance(LEASE - 1)
        store.launchers.serve({"poll": "every 60s"}, "a", LEASE)
    assert begin(store, firing(1000.0), "b").answer == "busy"


def test_a_firing_that_kills_every_time_is_given_up(kit: Kit, store: Store) -> None:
    """It is begun three times at most; then it is dealt with, and the next one is fired."""
    for _ in range(GIVEN_UP_AFTER):
        assert begin(store, firing(1000.0), "a").answer == "yours"
        kit.advance(LEASE + 1)
    assert begin(store, firing(1000.0), "b").answer == "given up"
    assert begin(store, firing(1000.0), "b").answer == "done"
    assert begin(store, firing(1060.0), "b").answer == "yours"


def test_a_firing_that_is_given_back_was_never_begun(store: Store) -> None:
    """Whoever asks next gets it, as often as it is given back."""
    for _ in range(2 * GIVEN_UP_AFTER):
        assert begin(store, firing(1000.0), "a").answer == "yours"
        store.launchers.give_back("poll", "a")
    assert begin(store, firing(1000.0), "b").answer == "yours"


def test_the_answer_that_was_lost_can_be_asked_for_again(store: Store) -> None:
    """A daemon that did not hear that the firing is its own asks once more, and it is."""
    assert begin(store, firing(1000.0), "a").answer == "yours"
    assert begin(store, firing(1000.0), "a").answer == "yours"


def test_a_paused_launcher_passes_over_its_firings(store: Store) -> None:
    """They are neither fired nor missed, and not made up for when it is resumed, whoever served it meanwhile."""
    assert store.launchers.pause("poll", who="ann", why="the airline asked")
    found = standing(store)
    assert (found.paused, found.who, found.why) == (True, "ann", "the airline asked")
    assert found.at is not None
    assert begin(store, firing(1000.0), "a").answer == "paused"
    assert (standing(store).upto, standing(store).missed) == (1000.0, 0)
    before = store.now()
    assert store.launchers.resume("poll", who="bob", why="")
    assert not standing(store).paused
    assert standing(store).who == "bob"
    assert begin(store, firing(before - 1), "a").answer == "done"
    assert begin(store, firing(before + 60), "a").answer == "yours"


def test_resuming_what_is_not_paused_changes_no_firing(store: Store) -> None:
    """What is due stays due."""
    assert store.launchers.resume("poll", who="", why="")
    assert begin(store, firing(1000.0), "a").answer == "yours"


def test_a_request_is_answered_once(kit: Kit, store: Store) -> None:
    """Paused or not, each is one firing, of one daemon, beside the schedule's; a lost one is taken over."""
    begin(store, firing(1000.0), "a")
    settle(store, firing(1000.0), "a", "completed", "")
    assert store.launchers.trigger("poll", who="ann", why="")
    assert store.launchers.trigger("poll", who="ann", why="")
    store.launchers.pause("poll", who="ann", why="")
    assert (standing(store).asked, standing(store).answered) == (2, 0)
    assert begin(store, firing(5.0, asked=1), "a").answer == "yours"
    assert begin(store, firing(5.0, asked=1), "b").answer == "busy"
    kit.advance(LEASE + 1)
    assert begin(store, firing(5.0, asked=1), "b").answer == "yours"
    assert settle(store, firing(5.0, asked=1, missed=7), "b", "completed", "")
    assert begin(store, firing(5.0, asked=1), "a").answer == "done"
    assert begin(store, firing(6.0, asked=2), "a").answer == "yours"
    found = standing(store)
    assert (found.asked, found.answered, found.upto, found.fired) == (2, 1, 1000.0, 2)


def test_what_was_missed_is_counted(store: Store) -> None:
    """Moments that are skipped are dealt with, forward only."""
    store.launchers.skip("poll", 1000.0, 3)
    store.launchers.skip("poll", 900.0, 1)
    assert (standing(store).upto, standing(store).missed) == (1000.0, 3)
    assert begin(store, firing(1000.0), "a").answer == "done"


def test_nothing_can_be_done_to_a_launcher_that_nobody_ever_served(store: Store) -> None:
    """Each operation says so."""
    launchers = store.launchers
    for operation in (launchers.pause, launchers.resume, launchers.trigger):
        assert not operation("nobody", who="", why="")
    assert launchers.standings(["nobody"]) == []


def test_what_is_known_outlives_the_store_object(kit: Kit, store: Store) -> None:
    """Another process reads what this one wrote."""
    begin(store, firing(1000.25), "a")
    settle(store, firing(1000.25), "a", "completed", "")
    assert standing(kit.open()).upto == 1000.25


def test_ends_and_beginnings_are_written_together(store: Store) -> None:
    """A launcher's end comes before its next beginning, and each of many is answered in order."""
    names = [f"l{n}" for n in range(9, 0, -1)]
    store.launchers.serve(dict.fromkeys(names, "every 60s"), "a", LEASE)
    first = [Firing(name, 1000.0) for name in names]
    assert [one.answer for one in store.launchers.write([], first, "a", LEASE)[1]] == ["yours"] * 9
    ends = [End(one, "completed", one.name) for one in first[:5]]
    ended, told = store.launchers.write(ends, [Firing(name, 1060.0) for name in names], "b", LEASE)
    assert (ended, [one.answer for one in told]) == ([False] * 5, ["busy"] * 9)
    ended, told = store.launchers.write(ends, [Firing(name, 1060.0) for name in names], "a", LEASE)
    assert (ended, [one.answer for one in told]) == ([True] * 5, ["yours"] * 9)
    assert {one.run for one in store.launchers.standings(names[:5])} == set(names[:5])


def test_many_daemons_write_in_any_order(store: Store) -> None:
    """They do not get in each other's way: each firing is given to one of them."""
    names = [f"l{n}" for n in range(20)]
    store.launchers.serve(dict.fromkeys(names, "every 60s"), "a", LEASE)

    def want(daemon: str) -> list[str]:
        found = []
        for moment in range(1, 11):
            firings = [Firing(name, float(moment)) for name in sorted(names, key=lambda name: hash((daemon, name)))]
            _, told = store.launchers.write([], firings, daemon, LEASE)
            mine = [one for one, answer in zip(firings, told, strict=True) if answer.answer == "yours"]
            store.launchers.write([End(one, "completed", "") for one in mine], [], daemon, LEASE)
            found += [f"{one.name}@{one.moment}" for one in mine]
        return found

    with ThreadPoolExecutor(4) as pool:
        had = [one for found in pool.map(want, "wxyz") for one in found]
    assert len(had) == len(set(had))
    assert {one.busy for one in store.launchers.standings(names)} == {False}


def test_a_launcher_whose_row_is_gone_is_asked_for_again(kit: Kit, store: Store) -> None:
    """Its firing is not begun; the row is made anew when a daemon shows life."""
    kit.sql("delete from launcher")
    assert begin(store, firing(1000.0), "a").answer == "busy"
    store.launchers.serve({"poll": "every 60s"}, "a", LEASE)
    assert begin(store, firing(1000.0), "a").answer == "yours"
