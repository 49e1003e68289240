"""Many at once at one store in PostgreSQL: no deadlock, no record of a run that was taken away, nobody unheard."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from iocflow.store.contract import Batch, Claimed, Ending
from iocflow.store.postgres.connections import Address
from iocflow.store.postgres.store import PostgresStore
from tests.contract.store.work import LEASE, Work, record, submission

pytestmark = pytest.mark.service("postgres")


def deadlocks(store: PostgresStore) -> int:
    """Return how many deadlocks the database has found so far."""
    with psycopg.connect(Address.parse(store.url).conninfo, autocommit=True) as connection:
        connection.execute("select pg_stat_clear_snapshot()")
        row = connection.execute("select deadlocks from pg_stat_database where datname = current_database()").fetchone()
        assert row is not None
        return int(row[0])


def together(*acts: Callable[[], None]) -> None:
    """Do things at once, each in a thread; raise what one of them raised."""
    with ThreadPoolExecutor(len(acts)) as pool:
        for one in [pool.submit(act) for act in acts]:
            one.result()


def test_batches_in_any_order_do_not_deadlock(store: PostgresStore) -> None:
    """Submitters of the same runs to the same groups in any order, and workers that end these groups, all get on."""
    before = deadlocks(store)
    until = time.monotonic() + 4
    all_ = [submission(str(n), group=f"g{n % 7}" if n % 3 else None) for n in range(60)]

    def submit(seed: int) -> None:
        chance = random.Random(seed)
        number = seed * 1_000_000
        while time.monotonic() < until:
            batch = chance.sample(all_, 20)
            for _ in range(10):
                number += 1
                batch.append(submission(f"n{number}", group=f"g{chance.randrange(7)}"))
            chance.shuffle(batch)
            store.submit(batch)

    def serve() -> None:
        work = Work(store)
        while time.monotonic() < until:
            claimed = work.claim(4)
            if claimed:
                work.end(*claimed)

    together(*(lambda seed=seed: submit(seed) for seed in range(1, 5)), serve, serve, serve)
    assert deadlocks(store) == before
    identities = [(run.submitter, run.number) for run in store.runs(limit=100_000)]
    assert len(identities) == len(set(identities))


@pytest.mark.parametrize("known", [0, 300])
def test_runs_get_their_numbers_when_they_have_their_group(store: PostgresStore, known: int) -> None:
    """A run that waits for its group gets a number above those that came to it meanwhile, whatever the plan."""
    store.submit([submission(group=f"g{n}") for n in range(known)])
    store.submit([submission(group="g")])
    with psycopg.connect(Address.parse(store.url).conninfo) as other, ThreadPoolExecutor(1) as pool:
        schema = Address.parse(store.url).schema
        for table in ("run", "grp"):
            other.execute(f"analyze {schema}.{table}")
        other.execute(f"select from {schema}.grp where key = 'g' for update")
        waiting = pool.submit(store.submit, [submission(group=f"g{n}" if n % 2 else "g") for n in range(20)])
        time.sleep(0.2)
        row = other.execute(f"select nextval('{schema}.run_id_seq')").fetchone()
        other.commit()
        assert row is not None
        assert min(run.id for run in waiting.result()) > row[0]


def test_nothing_is_recorded_of_a_run_that_was_taken_away(store: PostgresStore) -> None:
    """An operator's cancel and the worker's commit of that run are one after the other, however close they come."""
    work = Work(store)
    before = deadlocks(store)
    for _ in range(150):
        run_id = work.submit(group="g")
        (run,) = work.claim()
        work.step(run)
        barrier = threading.Barrier(2)
        said: list[frozenset[int]] = []

        def commit(run: Claimed = run, barrier: threading.Barrier = barrier, said: list[Any] = said) -> None:
            barrier.wait()
            for n in range(2, 6):
                said.append(work.commit(records=[record(run.id, n)]).dropped)
                if said[-1]:
                    break

        def cancel(run_id: int = run_id, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            time.sleep(random.random() * 0.004)
            assert store.cancel(run_id, who="me", why="")

        together(commit, cancel)
        kinds = work.kinds(run_id)
        written = kinds.count("step")
        assert kinds[written + 1 :] in (["cancel"], ["cancel", "fenced_out"])
        assert sum(map(len, said)) == 1 or written == 5
        (again,) = work.claim()
        assert (again.id, again.n, again.ask) == (run_id, written, "cancel")
        work.end(again, state="cancelled", outcome="cancelled")
    assert deadlocks(store) == before


def test_a_sweep_and_a_late_commit_are_one_after_the_other(store: PostgresStore, postgres_url: str) -> None:
    """A worker whose lease is over either commits before it is swept, and lives on, or is fenced and writes nothing."""
    late = PostgresStore(postgres_url, offset=lambda: LEASE + 1)
    outcomes = set()
    for _ in range(40):
        work = Work(store)
        run_id = work.submit()
        (run,) = work.claim()
        results: dict[str, Any] = {}

        def commit(work: Work = work, run: Claimed = run, results: dict[str, Any] = results) -> None:
            time.sleep(random.random() * 0.004)
            try:
                work.commit(records=[record(run.id, 1)])
                results["fenced"] = False
            except Exception as error:  # noqa: BLE001 - which one it is is asserted below
                results["fenced"] = type(error).__name__

        together(commit, lambda results=results: results.update(swept=late.sweep(deliveries=100).workers))
        recorded = work.kinds(run_id).count("step")
        assert recorded == (0 if results["fenced"] else 1)
        assert results["fenced"] in (False, "FencedError")
        outcomes.add((bool(results["fenced"]), results["swept"]))
        late.sweep(deliveries=100)
        other = Work(store)
        other.end(*other.claim())
        store.retire(other.id)
    late.close()
    assert outcomes <= {(True, 1), (False, 0), (False, 1)}


def test_an_end_and_a_submission_to_the_group(store: PostgresStore) -> None:
    """A run that is sent to a group at the very moment when its last one ends is served, a thousand times over."""
    work = Work(store)
    for _ in range(300):
        work.submit(group="g")
        (run,) = work.claim()
        together(lambda run=run: work.end(run) and None, lambda: work.submit(group="g") and None)
        (next_,) = work.claim()
        work.commit(endings=[Ending(next_.id, next_.group, "completed", "ok")], released=[next_.group])
    assert store.counts()["completed"] == 600


def test_a_listener_hears_of_other_processes(store: PostgresStore, postgres_url: str) -> None:
    """A submission, and one in a caller's transaction, is heard at once; without a notification after a second."""
    work, other = Work(store), PostgresStore(postgres_url)

    def loosely() -> None:
        with psycopg.connect(Address.parse(postgres_url).conninfo) as connection:
            other.submit([submission(group="g")], transaction=connection)

    def unheard() -> None:
        schema = Address.parse(postgres_url).schema
        with psycopg.connect(Address.parse(postgres_url).conninfo, autocommit=True) as connection:
            connection.execute(f"delete from {schema}.idle")
        other.submit([submission()])

    took = []
    for act in (lambda: other.submit([submission()]), loosely, unheard):
        while work.claim(5):
            pass
        timer = threading.Timer(0.3, act)
        timer.start()
        began = time.monotonic()
        store.listen(20)
        took.append(time.monotonic() - began)
        timer.join()
        assert len(work.claim(5)) == 1
    other.close()
    assert max(took[:2]) < took[2] < 10


def test_a_listener_leaves_nothing_behind(store: PostgresStore, postgres_url: str) -> None:
    """Who listens no more costs the submitters no notification, even when it was killed."""
    work = Work(store)
    work.ids()
    store.listen(0.1)
    schema = Address.parse(postgres_url).schema
    with psycopg.connect(Address.parse(postgres_url).conninfo, autocommit=True) as connection:
        assert connection.execute(f"select count(*) from {schema}.idle").fetchone() == (0,)
        connection.execute(f"insert into {schema}.idle values (-1)")
        store.sweep(deliveries=5)
        assert connection.execute(f"select count(*) from {schema}.idle").fetchone() == (0,)


def test_claims_without_a_batch_are_not_held_up(store: PostgresStore) -> None:
    """A commit does not wait for another worker's, nor for a submission that is under way."""
    works = [Work(store), Work(store)]
    for work in works:
        work.submit()
    with psycopg.connect(Address.parse(store.url).conninfo) as connection:
        schema = Address.parse(store.url).schema
        connection.execute(f"select 1 from {schema}.worker where id = %s for key share", [works[0].id])
        connection.execute(f"select 1 from {schema}.grp order by due limit 1 for update")
        began = time.monotonic()
        assert len(works[0].claim(2)) == 1
        assert store.commit(works[1].id, Batch(claim=2), lease=LEASE).claimed == []
        assert time.monotonic() - began < 5


def test_a_worker_does_not_wait_for_a_submission(store: PostgresStore) -> None:
    """A group that somebody is just submitting to is let go of as open; whoever finds it empty after all deletes it."""
    work = Work(store)
    address = Address.parse(store.url)
    for commits in (False, True):
        work.submit(group="g")
        (run,) = work.claim()
        with psycopg.connect(address.conninfo) as submitter:
            submitter.execute(f"select id from {address.schema}.grp where key = 'g' for key share")
            began = time.monotonic()
            work.end(run)
            assert work.claim(5) == []
            assert time.monotonic() - began < 5
            if commits:
                submitter.execute(
                    f"insert into {address.schema}.run(grp, key, processor, due, body, digest, submitter, number,"
                    " submitted) values (%s, 'g', 'order', 0, '1', 'd', 'OTHER', '1', 0)",
                    [run.group],
                )
        found = work.claim(5)
        assert [one.submitter for one in found] == (["OTHER"] if commits else [])
        work.end(*found)
        with psycopg.connect(address.conninfo) as connection:
            assert connection.execute(f"select count(*) from {address.schema}.grp").fetchone() == (0,)
