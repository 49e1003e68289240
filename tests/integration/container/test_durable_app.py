"""Durable runs as an application offers them, on a store of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from iocflow.container import App, ClosedError, NotDurableError, UnknownIdError
from iocflow.context import ProcessContext
from iocflow.durable.errors import ConflictError, ContextTypeError, SubmitError, UnknownRunError
from iocflow.durable.job import Durable
from iocflow.errors import SeedError
from iocflow.run import Outcome
from iocflow.sequence import SequenceProcessor
from iocflow.store import open_store
from tests.unit.container.parts import stored

Loaded = Callable[..., App]

BODY = """
    store: "sqlite:///${here}/app.db"
    worker: {threads: 2, lease: 5s}
    beans:
      bank: {class: .stored.Bank}
      charge: {class: .stored.Charge, args: {bank: !ref bank}, on-lost: incident}
    processors:
      buy:
        context: .stored.Buying
        sequence: [charge, .stored.pay]
        durable: {submitter: customer.name, number: po, group: customer.name}
      plain: {context: .stored.Buying, sequence: [charge]}
"""
SEED = {"po": "PO-1", "customer": {"name": "ACME"}}


@pytest.fixture
def app(loaded: Loaded) -> Iterator[App]:
    """Return the application of `BODY`, open."""
    with loaded(BODY) as app:
        yield app


def test_submit_and_work(app: App) -> None:
    """A submission returns before any step starts; what works in this process later completes the run."""
    ticket = app.submit("buy", SEED, priority=3)
    assert (ticket.submitter, ticket.number, ticket.new) == ("ACME", "PO-1", True)
    assert app.status("ACME", "PO-1").state == "queued"
    assert app["bank"].paid == []
    app.run_until_idle(workers=2)
    done = app.wait("ACME", "PO-1", timeout=0)
    assert (done.id, done.state, done.outcome, done.steps, done.group) == (ticket.id, "completed", "ok", 2, "ACME")
    assert app["bank"].paid == ["PO-1"]
    assert [entry.name for entry in app.history(ticket.id) if entry.kind == "step"] == ["charge", "pay"]
    assert [run.number for run in app.runs(states=["completed"], submitter="ACME")] == ["PO-1"]


def test_the_same_submission_again(app: App) -> None:
    """The same identity and seed is the same run; with another seed it is a conflict, and an unknown one is told."""
    first = app.submit("buy", SEED)
    again = app.submit("buy", SEED)
    assert (again.id, again.new) == (first.id, False)
    with pytest.raises(ConflictError) as conflict:
        app.submit("buy", {**SEED, "lines": ["a"]})
    assert conflict.value.run == first.id
    with pytest.raises(UnknownRunError):
        app.status("ACME", "PO-2")


def test_submit_many(app: App) -> None:
    """Many seeds are submitted at once; done again, they are known; what does not fit is refused by itself."""
    seeds = [{"po": f"PO-{n}", "customer": {"name": "ACME"}} for n in range(5)]
    told: list[int] = []
    assert app.submit_many("buy", [*seeds, {"po": 3}], progress=told.append).new == 5
    again = app.submit_many("buy", seeds)
    assert (again.new, again.known, again.refused) == (0, 5, ())
    assert told == [6]


def test_wrong_submissions(app: App) -> None:
    """A seed that does not fit, a processor that is not durable and one that is not there are refused."""
    with pytest.raises(SeedError):
        app.submit("buy", {"po": "PO-1"})
    with pytest.raises(SubmitError, match="known: buy"):
        app.submit("plain", SEED)
    with pytest.raises(SubmitError, match="did you mean `buy`"):
        app.submit("by", SEED)


def test_do_activities_works_here(app: App) -> None:
    """What runs a durable processor itself gets its run when that is done; the store has it, too."""
    run = app.processor("buy", stored.Buying).do_activities(SEED)
    assert run.outcome is Outcome.COMPLETED
    assert run.context.total == 1
    assert [step.activity for step in run.steps] == ["charge", "pay"]
    assert app.status(int(run.id)).state == "completed"


def test_launching_submits(app: App) -> None:
    """A launch hands the run over, and does not wait for it; a processor that is not durable runs at once."""
    run = app.processor("buy").launch(SEED, run_id="R1", idempotency_key="K1")
    assert run.outcome is Outcome.SUBMITTED
    queued = app.status(int(run.id))
    assert (queued.state, queued.number) == ("queued", "PO-1")  # the seed's own number, not the launcher's key
    assert app.processor("buy").launch(SEED, idempotency_key="K2").id == run.id
    assert app.processor("plain").launch(SEED).outcome is Outcome.COMPLETED


def timing(tmp_path: Path, deadline: str) -> App:
    """Return an application whose runs have their submitter, group and deadline from fields of their seeds."""
    processor = SequenceProcessor([stored.wait], context=stored.Timing, name="timing")
    durable = Durable(submitter="shop", group="customer.name", deadline=deadline)
    return App(processor, store=f"sqlite:///{tmp_path}/app.db", durable={"timing": durable})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seconds", 3600),
        ("length", timedelta(hours=1)),
        ("at", None),
        ("text", "1h"),
    ],
)
def test_a_deadline_from_the_seed(tmp_path: Path, field: str, value: Any) -> None:
    """A field with a deadline may hold seconds, a duration of both kinds, or a time."""
    with timing(tmp_path, field) as app:
        given = value or datetime.now(UTC) + timedelta(hours=1)
        run = app.status(app.submit("timing", stored.Timed(**{field: given})).id)
        assert run.deadline == pytest.approx(run.submitted + 3600, abs=600)


def test_what_a_seed_says(tmp_path: Path) -> None:
    """Submitter and group are taken from the seed as its type has it, defaults too; None says nothing."""
    with timing(tmp_path, "text") as app:
        run = app.status(app.submit("timing", {"customer": {"name": "ACME"}}).id)
        assert (run.submitter, run.group, run.deadline) == ("main", "ACME", None)
        assert app.status(app.submit("timing", {}).id).group is None
        assert app.status(app.submit("timing", {}, deadline=timedelta(minutes=1)).id).deadline
        with pytest.raises(SubmitError, match="no duration"):
            app.submit("timing", stored.Timed(text="soon"))


def test_operators(app: App) -> None:
    """A failed run is retried with who and why in its journal, a queued one is cancelled."""
    failed = app.submit("buy", {"po": "PO-1", "customer": {"name": "Poor"}})
    queued = app.submit("buy", SEED, not_before="1h")
    app.run_until_idle()
    assert app.status(failed.id).state == "failed"
    assert app.retry(failed.id, who="ann", why="paid in cash")
    assert app.cancel(queued.id, who="ann", why="not needed")
    assert app.status(queued.id).state == "cancelled"
    assert [(entry.who, entry.why) for entry in app.history(failed.id) if entry.kind == "retry"] == [
        ("ann", "paid in cash")
    ]
    assert not app.signal(queued.id, "approved", {"by": "ann"})


def test_an_override_works_on_what_is_built_with_it(app: App) -> None:
    """While a bean is replaced, runs are done by what is built with the replacement; afterwards by what was there."""
    fake = stored.Bank()
    with app.override("bank", fake):
        assert app.processor("buy").do_activities(SEED).outcome is Outcome.COMPLETED
        assert fake.paid == ["PO-1"]
    app.submit("buy", {**SEED, "po": "PO-2"})
    app.run_until_idle()
    assert (fake.paid, app["bank"].paid) == (["PO-1"], ["PO-2"])


def test_options_reach_the_plan(loaded: Loaded) -> None:
    """`mode` and `on-lost` of a bean count where its steps say nothing else."""
    body = BODY.replace(
        "sequence: [charge, .stored.pay]",
        "sequence: [charge, {do: charge, on-lost: retry}, {do: .stored.pay, mode: transactional, time-limit: 1s}]",
    )
    with loaded(body) as app:
        plan = app.processor("buy").plan
        steps = plan["p"][plan["main"]]["steps"]
        assert [(step["mode"], step["on_lost"]) for step in steps] == [
            ("leased", "incident"),
            ("leased", "retry"),
            ("transactional", "retry"),
        ]


def test_the_store_is_opened_when_it_is_needed(app: App, tmp_path: Path) -> None:
    """Loading opens no store; closing the application closes it, and nothing can be submitted any more."""
    assert not (tmp_path / "app.db").exists()
    app.submit("buy", SEED)
    assert (tmp_path / "app.db").exists()
    app.close()
    with pytest.raises(ClosedError):
        app.submit("buy", SEED)


def test_without_a_store(loaded: Loaded) -> None:
    """An application without a store says what to write."""
    with loaded("processors: {p: {context: .Order, sequence: [.Note]}}") as app:
        with pytest.raises(NotDurableError, match=r"app\.yaml has no store; write `store: sqlite:///var/app\.db`"):
            app.submit("p")
        with pytest.raises(NotDurableError):
            app.run_until_idle()


def test_built_in_python(tmp_path: Path) -> None:
    """With a store, all processors are durable, or those that are named; the store may be an open one."""
    buy = SequenceProcessor([stored.pay], context=stored.Buying, name="buy")
    with App(buy, store=f"sqlite:///{tmp_path}/app.db", worker={"threads": 1}) as app:
        app.submit("buy", SEED, submitter="ACME", number="1")
        app.run_until_idle()
        assert app.status("ACME", "1").state == "completed"
    other = SequenceProcessor([stored.pay], context=stored.Buying, name="other")
    plain = SequenceProcessor([stored.pay], context=ProcessContext, name="plain")
    store = open_store(f"sqlite:///{tmp_path}/app.db")
    with App(other, plain, store=store, durable={"other": Durable(number="po", deadline="1h")}) as app:
        assert app.submit("other", SEED).number == "PO-1"
        assert plain.launch().outcome is Outcome.COMPLETED
    assert store.status(1) is not None
    store.close()


def test_wrong_in_python(tmp_path: Path) -> None:
    """An unknown name, and a context that cannot be stored, are refused when the application is built."""
    url = f"sqlite:///{tmp_path}/app.db"
    buy = SequenceProcessor([stored.pay], context=stored.Buying, name="buy")
    with pytest.raises(UnknownIdError, match="did you mean `buy`"):
        App(buy, store=url, durable={"by": Durable()})
    wrong: SequenceProcessor[stored.Unstorable] = SequenceProcessor([], context=stored.Unstorable, name="wrong")
    with pytest.raises(ContextTypeError, match="things"):
        App(wrong, store=url)
    assert not list(tmp_path.iterdir())


def test_the_store_is_relative_to_the_working_directory(loaded: Loaded, tmp_path: Path) -> None:
    """As every path of a file that does not begin with `${here}`."""
    with loaded(BODY.replace("${here}/app.db", "here.db")) as app:
        app.submit("buy", SEED)
    assert (tmp_path / "here.db").exists()
