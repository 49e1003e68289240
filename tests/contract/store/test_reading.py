"""Reading: states, lists, counts, plans and the journal's numbers."""

from __future__ import annotations

import pytest

from iocflow.store.contract import State, Store
from iocflow.store.errors import StoreError
from tests.contract.store.stores import Kit
from tests.contract.store.work import Work, record


@pytest.fixture
def all_states(work: Work) -> dict[State, list[int]]:
    """Return runs by their states, two of each; the first of each is in group `g-<state>`."""
    runs: dict[State, list[int]] = {}

    def pair(state: State) -> list[int]:
        runs[state] = [work.submit(group=f"g-{state}"), work.submit(submitter="BETA", processor="letter")]
        return runs[state]

    for state in ("completed", "failed", "cancelled", "suspended"):
        pair(state)
        for claimed in work.claim(2):
            work.step(claimed)
            work.end(claimed, state=state, outcome="ok" if state == "completed" else "error")
    pair("waiting")
    for claimed in work.claim(2):
        work.step(claimed)
        work.rest(claimed, waits=True)
    first, second = pair("running")
    work.commit(records=[record(work.claim()[0].id, 1)])
    assert work.ids() == [second]
    assert work.state(first) == "running"
    runs["queued"] = [
        work.submit(group="g-queued", not_before=work.store.now() + 1000),
        work.submit(submitter="BETA", processor="letter"),
    ]
    return runs


def test_every_state_is_told(work: Work, all_states: dict[State, list[int]]) -> None:
    """A run's state is what was done with it; the outcome is there only when it is closed."""
    for state, runs in all_states.items():
        assert work.states(runs) == [state, state]
        closed = state in ("completed", "failed", "cancelled")
        assert [bool(one.outcome) for one in work.store.runs(states=[state])] == [closed, closed]


def test_runs_are_listed_by_state(store: Store, all_states: dict[State, list[int]]) -> None:
    """A list of one state, or of several, has the runs in it, by id."""
    for state, runs in all_states.items():
        assert [one.id for one in store.runs(states=[state])] == runs
    mixed: list[State] = ["queued", "running", "failed", "suspended"]
    assert [one.id for one in store.runs(states=mixed)] == sorted(run for state in mixed for run in all_states[state])
    everything = sorted(run for runs in all_states.values() for run in runs)
    assert [one.id for one in store.runs()] == everything


def test_lists_can_be_narrowed_and_paged(store: Store, all_states: dict[State, list[int]]) -> None:
    """Processor, submitter and group narrow a list; `after` and `limit` page through it."""
    everything = sorted(run for runs in all_states.values() for run in runs)
    assert len(store.runs(processor="letter")) == 7
    assert len(store.runs(submitter="ACME")) == 7
    assert store.runs(submitter="ACME", processor="letter") == []
    assert [one.id for one in store.runs(group="g-failed")] == all_states["failed"][:1]
    assert [one.id for one in store.runs(states=["waiting"], submitter="BETA")] == all_states["waiting"][1:]
    assert [one.id for one in store.runs(after=everything[3], limit=4)] == everything[4:8]
    assert [one.id for one in store.runs(limit=4, newest=True)] == everything[-4:]
    pages: list[int] = []
    while page := store.runs(states=["failed", "queued", "running"], after=pages[-1] if pages else 0, limit=1):
        pages += [one.id for one in page]
    assert pages == sorted(run for state in ("failed", "queued", "running") for run in all_states[state])


def test_a_group_s_runs_are_found_in_every_state(store: Store, work: Work, all_states: dict[State, list[int]]) -> None:
    """Lists of one group have its open runs and its closed ones, each in the states that are asked for."""
    more = {group: [work.submit(group=group) for _ in range(2)] for group in ("g-failed", "g-new")}
    for group, queued in more.items():
        closed = all_states["failed"][:1] if group == "g-failed" else []
        assert [one.id for one in store.runs(group=group, states=["queued"])] == queued
        assert [one.id for one in store.runs(group=group, states=["failed", "queued", "waiting"])] == closed + queued
        assert [one.id for one in store.runs(group=group)] == closed + queued
        assert store.runs(group=group, states=["running", "suspended"]) == []
    for state, runs in all_states.items():
        for status in filter(None, map(store.status, runs)):
            if status.group is not None:
                assert status.id in [one.id for one in store.runs(group=status.group, states=[state])]


def test_counts_are_of_every_state(store: Store, all_states: dict[State, list[int]]) -> None:
    """Nothing vanishes: the counts of all states add up to what was accepted."""
    assert store.counts() == dict.fromkeys(all_states, 2)


def test_an_empty_store_has_counts(store: Store) -> None:
    """Every state is counted, also where there is nothing."""
    counts = store.counts()
    assert sorted(counts) == sorted(["queued", "running", "waiting", "suspended", "completed", "failed", "cancelled"])
    assert set(counts.values()) == {0}


def test_only_the_run_whose_turn_it_is_runs(work: Work) -> None:
    """Of the runs of a group in hand one is running; the others are queued."""
    runs = [work.submit(group="g") for _ in range(3)]
    claimed = work.claim()
    assert work.states(runs) == ["running", "queued", "queued"]
    work.commit(endings=[])
    work.step(claimed[0])
    assert work.states(runs) == ["running", "queued", "queued"]
    assert work.store.counts()["running"] == 1
    assert work.store.counts()["queued"] == 2


def test_what_is_not_there_is_none(store: Store) -> None:
    """An unknown run has no status, no context, no journal and no id."""
    assert store.status(4711) is None
    assert store.context(4711) is None
    assert store.history(4711) == []
    assert store.find("ACME", "4711") is None


def test_a_plan_is_stored_once(store: Store) -> None:
    """The same plan has the same id, and comes back as it was stored."""
    first = store.plan("hash1", "order", '{"main":"order"}')
    second = store.plan("hash2", "order", '{"main":"order2"}')
    assert store.plan("hash1", "order", '{"main":"order"}') == first != second
    assert store.plan_of(first) == ("hash1", '{"main":"order"}')
    with pytest.raises(StoreError):
        store.plan_of(4711)


def test_the_journal_only_grows(store: Store, work: Work) -> None:
    """Whatever happens to a run, the entries that were there keep their numbers."""
    run = work.submit(group="g")
    (claimed,) = work.claim()
    before = store.history(run)

    def grew() -> None:
        nonlocal before
        history = store.history(run)
        assert history[: len(before)] == before
        assert len(history) > len(before)
        before = history

    work.step(claimed, began=9e9, ended=9e9)
    grew()
    store.signal(run, "s", b"1")
    grew()
    store.cancel(run, who="me", why="no")
    grew()
    (claimed,) = work.commit(records=[record(run, 2)], claim=1).claimed
    grew()
    work.step(claimed, began=1.0, ended=1.0)
    grew()
    work.end(claimed, state="failed", outcome="error")
    grew()
    store.signal(run, "late", b"1")
    grew()
    store.retry(run, who="me", why="again")
    grew()
    (claimed,) = work.claim()
    work.end(claimed)
    grew()
    store.purge(store.now() + 1)
    grew()


def test_people_with_sql_have_views(kit: Kit, store: Store, work: Work) -> None:
    """The views tell states, times of steps, what waits, and incidents with what they hold up."""
    runs = [work.submit(str(i), group="g") for i in range(3)]
    alone, late = work.submit("4"), work.submit("5", not_before=store.now() + 1000)
    claimed = {run.id: run for run in work.claim(2)}
    work.step(claimed[runs[0]], 2)
    work.step(claimed[alone])
    work.end(claimed[runs[0]], state="suspended", outcome="error", reason="undo failed")
    states = kit.sql("select number, state, activity, steps from v_run_status order by id")
    assert [tuple(row) for row in states] == [
        ("0", "suspended", "step2", 2),
        ("1", "queued", "", 0),
        ("2", "queued", "", 0),
        ("4", "running", "step1", 1),
        ("5", "queued", "", 0),
    ]
    times = kit.sql("select number, name, seconds from v_step_times order by run, n")
    assert [tuple(row) for row in times] == [("0", "step1", 0.5), ("0", "step2", 0.5), ("4", "step1", 0.5)]
    depth = kit.sql("select processor, ready, held, asleep, suspended from v_queue_depth")
    assert [tuple(row) for row in depth] == [("order", 2, 1, 1, 1)]
    ((run, group, reason, since, held_up),) = kit.sql('select run, "group", reason, since, held_up from v_incidents')
    assert (run, group, reason, held_up) == (runs[0], "g", "undo failed", 2)
    assert abs(since - store.now()) < 60
    journal = kit.sql(f"select number, kind from v_journal where run = {runs[0]} order by number")
    assert [tuple(row) for row in journal] == [(1, "submitted"), (2, "step"), (3, "step"), (4, "suspended")]
    assert work.state(late) == "queued"
