"""One meaning: every process of the table leaves the same trail on every engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from behaviour.composites import COMPOSITES
from behaviour.parts import Case
from behaviour.sequences import SEQUENCES

import iocflow.inline_loop
from iocflow.advance import advance
from iocflow.durable.engine import DurableEngine
from iocflow.durable.job import Job
from iocflow.durable.settings import WorkerSettings
from iocflow.errors import RecordedError
from iocflow.plan import Command, Plan, Position, Reply
from iocflow.run import Run, Step
from iocflow.store import open_store
from iocflow.store.contract import Store
from tests import postgres_server

Build = Callable[..., Any]


def as_wired(build: Build, request: pytest.FixtureRequest) -> Any:
    """The engine as users get it: a plain sequence takes the quick path."""
    return build()


def in_the_loop(build: Build, request: pytest.FixtureRequest) -> Any:
    """The inline loop, without the quick path: an observer needs its events."""
    return build(observers=[lambda event: None])


def over_json(build: Build, request: pytest.FixtureRequest) -> Any:
    """The inline loop, with every plan, position and reply written to JSON and read back between two commands."""

    def stored(plan: Plan, position: Position, reply: Reply | None) -> tuple[Command, Position]:
        result: tuple[Command, Position] = tuple(
            json.loads(json.dumps(advance(*json.loads(json.dumps([plan, position, reply])))))
        )
        return result

    request.getfixturevalue("monkeypatch").setattr(iocflow.inline_loop, "advance", stored)
    return in_the_loop(build, request)


def on_sqlite(build: Build, request: pytest.FixtureRequest) -> Any:
    """The durable engine over a SQLite file."""
    return durable(build, request.getfixturevalue("sqlite_store"))


def on_postgresql(build: Build, request: pytest.FixtureRequest) -> Any:
    """The durable engine over PostgreSQL."""
    return durable(build, request.getfixturevalue("postgres_store"))


class Here(DurableEngine):
    """Works on each run at once, also on those of `launch`, which are left to workers elsewhere."""

    def launch(self, processor: Any, seed: Any, **given: Any) -> Run[Any]:
        return super().launch(processor, seed, **{**given, "here": True})


def durable(build: Build, store: Store) -> Any:
    """A processor whose runs are stored, and worked on here, with all that is known of them afterwards being read."""
    processor = build()
    processor.entrust(Here(store, {processor.name: Job(processor)}, WorkerSettings(threads=2)))
    return processor


@pytest.fixture(scope="module")
def sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One store for all cases; the doctor looks at it in the end."""
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('store')}/store.db")
    yield store
    found = list(store.doctor())
    store.close()
    assert found == []


@pytest.fixture(scope="module")
def postgres_store(postgres: str) -> Iterator[Store]:
    """One store for all cases; the doctor looks at it in the end."""
    with postgres_server.schema(postgres) as url:
        store = open_store(url)
        yield store
        found = list(store.doctor())
        store.close()
        assert found == []


INLINE = [as_wired, in_the_loop, over_json]
DURABLE = [on_sqlite, pytest.param(on_postgresql, marks=pytest.mark.service("postgres"))]
CASES = [*SEQUENCES, *COMPOSITES]


def row(step: Step) -> str:
    """A row of the trail as the table writes it."""
    attempts = f" x{step.attempts}" if step.attempts > 1 else ""
    return step.activity + (f" {step.outcome.name}{attempts}" if step.outcome.name != "DONE" or attempts else "")


def kind(error: Exception | None) -> str:
    """The name of the error's class, or of the one for which a recorded error stands."""
    return error.type.rpartition(".")[2] if isinstance(error, RecordedError) else type(error).__name__


@pytest.mark.parametrize("engine", [*INLINE, *DURABLE])
@pytest.mark.parametrize("case", [one for one in CASES if not one.refused], ids=lambda case: case.name)
def test_trail(case: Case, engine: Any, request: pytest.FixtureRequest) -> None:
    """Outcome, trail, error, what is raised and what the context holds are as the table says."""
    same_as_in_the_table(case, engine(case.build, request))


@pytest.mark.parametrize("engine", INLINE)
@pytest.mark.parametrize("case", [one for one in CASES if one.refused], ids=lambda case: case.name)
def test_trail_of_a_bad_seed(case: Case, engine: Any, request: pytest.FixtureRequest) -> None:
    """What a seed that does not fit makes of a run inline is as the table says."""
    same_as_in_the_table(case, engine(case.build, request))


@pytest.mark.parametrize("engine", DURABLE)
@pytest.mark.parametrize("case", [one for one in CASES if one.refused], ids=lambda case: case.name)
def test_refused_at_submit(case: Case, engine: Any, request: pytest.FixtureRequest) -> None:
    """Where runs are stored, a seed that does not fit is refused before there is a run: no handler could be asked."""
    processor = engine(case.build, request)
    before = processor.engine.store.counts()
    with pytest.raises(ValueError, match="seed") as caught:
        processor.launch(case.seed)
    assert kind(caught.value) == case.refused
    assert processor.engine.store.counts() == before


def same_as_in_the_table(case: Case, processor: Any) -> None:
    run: Run[Any] = processor.launch(case.seed)
    assert ", ".join(map(row, run.steps)) == case.trail
    assert run.outcome.name == case.outcome
    assert kind(run.error) == (case.error or "NoneType")
    assert run.raises is case.raised
    assert run.context.stopped is (case.outcome == "STOPPED")
    assert {name: getattr(run.context, name) for name in case.fields} == case.fields
    if case.raised:
        with pytest.raises(type(run.error)):
            processor.do_activities(case.seed)
    else:
        assert processor.do_activities(case.seed).outcome is run.outcome
