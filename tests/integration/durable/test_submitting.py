"""Submitting: identity, conflicts, batches that are sent again, the caller's own transaction; and looking."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from iocflow import ProcessContext, RetryingErrorHandler, activity
from iocflow.durable.errors import ConflictError, SubmitError, UnknownRunError
from iocflow.store.postgres.connections import Address
from tests.contract.store.stores import SqliteKit
from tests.integration.durable.house import House


@dataclass
class Order:
    """A seed."""

    customer: str
    po: str
    amount: int = 1


class Work(ProcessContext):
    """A context with an order."""

    seed_data: Order
    total: int = 0


def total(context: Work) -> None:
    context.total = context.seed_data.amount * 2


FROM_THE_SEED = {"submitter": "customer", "number": "po", "group": "customer"}


def test_i1(house: House) -> None:
    """I1: twenty threads submit one order: one run, twenty equal answers; another body is a conflict."""
    house.sequence(total, context=Work)
    tickets: list[Any] = []
    start = threading.Barrier(20)

    def submit() -> None:
        start.wait(20)
        tickets.append(house.client.submit("job", Order("ACME", "PO-17"), submitter="ACME", number="PO-17"))

    threads = [threading.Thread(target=submit) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({ticket.id for ticket in tickets}) == 1
    assert [ticket.new for ticket in tickets].count(True) == 1
    assert len(house.client.runs()) == 1
    with pytest.raises(ConflictError, match="PO-17") as caught:
        house.client.submit("job", Order("ACME", "PO-17", amount=2), submitter="ACME", number="PO-17")
    assert caught.value.run == tickets[0].id
    other = house.client.submit("job", Order("ACME", "PO-17"), submitter="BETA", number="PO-17")
    assert other.new
    assert other.id != tickets[0].id


def test_i2(house: House) -> None:
    """I2: submitter and number, and the internal id, name the same record, after its completion as well."""
    house.sequence(total, context=Work, durable=FROM_THE_SEED)
    ticket = house.client.submit("job", {"customer": "ACME", "po": "PO-17"})
    assert (ticket.submitter, ticket.number) == ("ACME", "PO-17")
    house.work()
    for which in (("ACME", "PO-17"), (ticket.id,), (str(ticket.id),)):
        status = house.client.status(*which)
        assert (status.id, status.state, status.group) == (ticket.id, "completed", "ACME")
        assert [entry.kind for entry in house.client.history(*which)] == ["submitted", "step", "ended"]
    for unknown in (("ACME", "PO-18"), (10**6,), ("PO-17",)):
        with pytest.raises(UnknownRunError):
            house.client.status(*unknown)


def test_i3(house: House) -> None:
    """I3: a batch of 10,000 is broken off at 6,000 and sent again: 10,000 runs, and the report says what was new."""

    class BrokenError(Exception):
        pass

    house.sequence(total, context=Work)
    orders = [Order("ACME", f"PO-{i}") for i in range(10_000)]

    def broken_off() -> Iterator[Order]:
        yield from orders[:6_000]
        raise BrokenError

    told: list[int] = []
    with pytest.raises(BrokenError):
        house.client.submit_many("job", broken_off(), number=lambda order: order.po, submitter="ACME")
    assert house.store.counts()["queued"] == 6_000
    report = house.client.submit_many(
        "job", orders, number=lambda order: order.po, submitter="ACME", progress=told.append
    )
    assert (report.new, report.known, report.refused) == (4_000, 6_000, ())
    assert house.store.counts()["queued"] == 10_000
    assert told == sorted(told)
    assert told[-1] == 10_000


def test_seeds_of_a_batch_that_do_not_fit(house: House) -> None:
    """Each seed of a batch is taken or refused by itself, by its place and number."""
    house.sequence(total, context=Work)
    house.client.submit("job", Order("ACME", "2", amount=9), submitter="ACME", number="2")
    seeds: list[Any] = [Order("ACME", "0"), {"customer": "ACME"}, Order("ACME", "2"), Order("ACME", "3")]
    report = house.client.submit_many("job", seeds, number=lambda seed: getattr(seed, "po", "none"), submitter="ACME")
    assert (report.new, report.known) == (2, 0)
    assert [(one.index, one.number, type(one.error).__name__) for one in report.refused] == [
        (1, "none", "SeedError"),
        (2, "2", "ConflictError"),
    ]


def test_refusals_come_in_the_order_given(house: House) -> None:
    """Conflicts, which the store finds, and seeds that do not fit stand in one order; numbers are text."""
    house.sequence(total, context=Work)
    house.client.submit("job", Order("ACME", "0", amount=9), submitter="ACME", number="0")
    seeds: list[Any] = [Order("ACME", "0"), {"customer": "ACME"}, Order("ACME", "2")]
    numbers: Any = iter([0, 1, 2])
    report = house.client.submit_many("job", seeds, number=lambda _: next(numbers), submitter="ACME")
    assert [(one.index, one.number) for one in report.refused] == [(0, "0"), (1, "1")]
    assert house.client.status("ACME", "2").number == "2"


def test_a_number_is_text(house: House) -> None:
    """A number that is given as one names the same run as its text, and the answer has the text."""
    house.sequence(total, context=Work)
    given: Any = 5
    ticket = house.client.submit("job", Order("ACME", "1"), submitter="ACME", number=given)
    assert (ticket.number, ticket.new) == ("5", True)
    assert not house.client.submit("job", Order("ACME", "1"), submitter="ACME", number="5").new


def test_many_runs_of_a_processor_that_is_not_there(house: House) -> None:
    """The name is refused before the first seed is read, and not once for each of them."""
    house.sequence(total, context=Work)
    seeds = iter([Order("ACME", "1")])
    with pytest.raises(SubmitError, match="did you mean `job`"):
        house.client.submit_many("jobb", seeds)
    assert len(list(seeds)) == 1


@pytest.mark.parametrize("name", ["deadline", "start_by"])
def test_a_run_that_could_never_start_is_refused(house: House, name: str) -> None:
    """A run that may not begin before it is too late is a mistake of its sender, also by the file's own deadline."""
    house.sequence(total, context=Work, durable={"deadline": "1h"})
    with pytest.raises(SubmitError, match=f"not_before is later than {name}"):
        house.submit(
            seed=Order("ACME", "1"),
            not_before="90m",
            **({"deadline": "1d"} if name == "start_by" else {}),
            **{name: "80m"},
        )
    with pytest.raises(SubmitError, match="not_before is later than deadline"):
        house.submit(seed=Order("ACME", "1"), not_before="2h")
    assert house.client.runs() == []
    house.submit(seed=Order("ACME", "1"), not_before="30m", **{name: "40m"})


def test_i4(house: House) -> None:
    """I4: with every worker stopped, submitting returns at once; the run is queued, and no step has started."""
    house.sequence(total, context=Work)
    run = house.submit(seed=Order("ACME", "PO-17"))
    status = house.client.status(run)
    assert (status.state, status.started, status.steps) == ("queued", None, 0)
    with pytest.raises(TimeoutError, match=f"run {run} is still queued"):
        house.client.wait(run, timeout=0.01)
    house.work()
    assert house.wait(run).state == "completed"
    assert house.context(run).total == 2


@contextmanager
def transaction(house: House, own: str, *, commit: bool) -> Iterator[Any]:
    """A transaction of the caller, in which it writes to a table of its own."""
    if isinstance(house.kit, SqliteKit):
        connection: Any = sqlite3.connect(house.kit.path)
    else:
        connection = psycopg.connect(Address.parse(house.kit.url).conninfo)
    try:
        connection.execute(f"insert into {own}(what) values ('mine')")
        yield connection
        connection.commit() if commit else connection.rollback()
    finally:
        connection.close()


@pytest.mark.parametrize("commit", [True, False])
def test_the_caller_s_transaction(house: House, commit: bool) -> None:
    """A run that is submitted in the caller's transaction exists when that commits, or not at all."""
    house.sequence(total, context=Work)
    house.worker()
    own = house.table("own")
    with transaction(house, own, commit=commit) as connection:
        ticket = house.client.submit("job", Order("ACME", "1"), number="1", transaction=connection)
        assert ticket.new
        assert house.client.runs() == []
    assert house.kit.sql(f"select what from {own}") == ([("mine",)] if commit else [])
    if commit:
        assert house.wait(ticket.id).state == "completed"
    else:
        assert house.client.runs() == []


def test_the_caller_s_transaction_after_a_conflict(house: House) -> None:
    """A conflict leaves the caller's transaction as it was: what it wrote itself can still be committed."""
    house.sequence(total, context=Work)
    house.submit(seed=Order("ACME", "1"), number="1")
    own = house.table("own")
    with transaction(house, own, commit=True) as connection, pytest.raises(ConflictError):
        house.client.submit("job", Order("ACME", "2"), number="1", transaction=connection)
    assert house.kit.sql(f"select what from {own}") == [("mine",)]


def test_a_transaction_of_another_database(house: House) -> None:
    """A connection to another database is refused, instead of pretending that both were one transaction."""
    house.sequence(total, context=Work)
    connection = sqlite3.connect(":memory:")
    with pytest.raises(ValueError, match="conn"):
        house.submit(seed=Order("ACME", "1"), transaction=connection)
    connection.close()
    assert house.client.runs() == []


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        ({"priority": 10}, "priority is 0 to 9, not 10"),
        ({"priority": 2.0}, "priority is 0 to 9, not 2.0"),
        ({"deadline": "soon"}, "deadline"),
        ({"not_before": "3000000d"}, "less than 100 years"),
        ({"deadline": float("inf")}, "less than 100 years"),
        ({"not_before": float("nan")}, "less than 100 years"),
        ({"start_by": "1"}, "1"),
    ],
)
def test_terms_that_cannot_be(house: House, terms: dict[str, Any], text: str) -> None:
    """Q4: terms that cannot be are refused at the sender, with the reason; nothing is stored."""
    house.sequence(total, context=Work)
    with pytest.raises(SubmitError, match=text):
        house.submit(seed=Order("ACME", "1"), **terms)
    assert house.client.runs() == []


def test_a_field_that_the_seed_has_not(house: House) -> None:
    """A field of the seed that the wiring names and the seed has not is named at submit."""
    house.sequence(total, context=Work, durable={"number": "no_such"})
    with pytest.raises(SubmitError, match="no_such"):
        house.submit(seed=Order("ACME", "1"))


def test_runs_by_state_and_submitter(house: House) -> None:
    """Runs are found by state, processor, submitter and group, in order, page by page."""
    house.sequence(total, context=Work, durable=FROM_THE_SEED)
    ids = [house.submit(seed=Order("ACME" if i % 2 else "BETA", f"{i}")) for i in range(10)]
    assert [run.id for run in house.client.runs(submitter="ACME")] == ids[1::2]
    assert [run.id for run in house.client.runs(states=["queued"], after=ids[6])] == ids[7:]
    assert [run.id for run in house.client.runs(group="BETA", limit=2)] == [ids[0], ids[2]]
    house.work()
    assert house.client.runs(states=["queued", "running"]) == []
    assert len(house.client.runs(states=["completed"], processor="job")) == 10


def test_v4(house: House) -> None:
    """V4: ten steps have one row each in `v_step_times`, with entry and end; repeated attempts are further rows."""

    def flaky(context: Work) -> None:
        if context.step.attempt < 3:
            raise ValueError("again")

    steps = [activity(total, name=f"step{i}") for i in range(9)]
    house.sequence(*steps, activity(flaky, on_error=RetryingErrorHandler(attempts=3)), context=Work)
    house.submit(seed=Order("ACME", "1"))
    house.work()
    rows = house.kit.sql("select name, kind, began, ended, seconds from v_step_times order by n")
    assert [(name, kind) for name, kind, *_ in rows] == [
        *((f"step{i}", "step") for i in range(9)),
        *[("flaky", "attempt")] * 2,
        ("flaky", "step"),
    ]
    assert all(began <= ended for _, _, began, ended, _ in rows)
    assert all(seconds == pytest.approx(ended - began) for *_, began, ended, seconds in rows)
    begins = [began for _, _, began, _, _ in rows]
    assert begins[:9] == sorted(begins[:9])


UNFIT = {"empty": "", "NUL": "a\0b", "surrogate": "a\ud800", "long": "n" * 256, "longer": "ä" * 1_000_000}
"""Texts that name nothing, or that some store cannot keep."""


@pytest.mark.parametrize("term", ["number", "submitter", "group"])
@pytest.mark.parametrize("given", UNFIT.values(), ids=UNFIT)
def test_a_name_that_names_nothing_is_refused(house: House, term: str, given: str) -> None:
    """What is to name a run for ever is refused where no store keeps it, as what it is; nothing is stored."""
    house.sequence(total, context=Work)
    with pytest.raises(SubmitError, match=f"^{term} is .*no {term}") as caught:
        house.submit(seed=Order("ACME", "PO-1"), **{term: given})
    assert len(str(caught.value)) < 300
    assert house.client.runs() == []


@pytest.mark.parametrize("term", ["number", "submitter", "group"])
@pytest.mark.parametrize("given", ["", "a\0b", "n" * 256])
def test_a_name_in_a_seed_that_names_nothing_is_refused(house: House, term: str, given: str) -> None:
    """The same of a name that the wiring takes from the seed: the message names the seed's field."""
    house.sequence(total, context=Work, durable={term: "po"})
    with pytest.raises(SubmitError, match=f"^the seed's po is .*no {term}"):
        house.submit(seed=Order("ACME", given))
    assert house.client.runs() == []


def test_the_longest_names(house: House) -> None:
    """Names of 255 characters of four bytes each are kept and found: that is what an index row of PostgreSQL takes."""
    house.sequence(total, context=Work)
    names = {term: sign * 255 for term, sign in (("submitter", "\U00010000"), ("number", "\U0001f600"), ("group", "ß"))}
    run = house.submit(seed=Order("ACME", "1"), **names)
    assert house.client.status(names["submitter"], names["number"]).id == run
    assert [one.id for one in house.client.runs(group=names["group"])] == [run]


def test_a_batch_reports_names_that_no_store_keeps(house: House) -> None:
    """A number or group of a batch that cannot be kept is refused by itself, with its place; the others are taken."""
    house.sequence(total, context=Work)
    orders = [Order("ACME", po) for po in ("0", "n" * 3_000, "2", "a\0b", "4")]
    report = house.client.submit_many("job", orders, number=lambda one: one.po, group=lambda one: "g" * len(one.po))
    assert (report.new, [one.index for one in report.refused]) == (3, [1, 3])
    report = house.client.submit_many("job", orders[:2], group=lambda one: one.po)
    assert (report.new, [one.index for one in report.refused]) == (1, [1])
    assert "group is" in str(report.refused[0].error)


@pytest.mark.parametrize("name", UNFIT.values(), ids=UNFIT)
def test_looking_for_a_name_that_no_store_keeps(house: House, name: str) -> None:
    """There is no run by such a name, and the stores say so as they do of any other."""
    house.sequence(total, context=Work)
    house.submit(seed=Order("ACME", "1"), group="g")
    with pytest.raises(UnknownRunError):
        house.client.status(name, "1")
    with pytest.raises(UnknownRunError):
        house.client.status("job", name)
    for term in ("processor", "submitter", "group"):
        assert house.client.runs(**{term: name}) == []


@pytest.mark.parametrize("text", ["a\0b", "a\ud800", "w" * 4_001], ids=["NUL", "surrogate", "long"])
@pytest.mark.parametrize("what", ["who", "why"])
@pytest.mark.parametrize("do", ["cancel", "retry", "drop"])
def test_what_an_operator_says_and_no_store_keeps(house: House, do: str, what: str, text: str) -> None:
    """A name or reason of an operator that cannot be kept is refused before anything is done, and named."""
    house.sequence(total, context=Work)
    run = house.submit(seed=Order("ACME", "1"))
    with pytest.raises(SubmitError, match=f"^{what} is "):
        getattr(house.client, do)(run, **{what: text})
    assert (house.state(run), house.kinds(run)) == ("queued", ["submitted"])


def test_a_misspelt_term_is_refused(house: House) -> None:
    """A deadline that is written wrong is told, and not lost without a word."""
    house.sequence(total, context=Work)
    with pytest.raises(SubmitError, match="did you mean `deadline`"):
        house.submit(seed=Order("ACME", "PO-1"), deadlin="1s")
    assert house.client.runs() == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"limit": -1}, "limit is -1"),
        ({"states": ["done"]}, "'done' is no state of a run; the states are queued, running,"),
    ],
)
def test_a_list_that_nobody_can_make_is_refused(house: House, asked: Any, said: str) -> None:
    """What is asked of the list of runs is refused the same by all stores, when it is no question."""
    with pytest.raises(ValueError, match=said):
        house.client.runs(**asked)


@pytest.mark.parametrize(
    ("asked", "found"),
    [({"after": 10**30}, 0), ({"after": -(10**30)}, 2), ({"limit": 10**30}, 2), ({"limit": 0}, 0)],
)
def test_a_list_has_no_bounds_of_its_own(house: House, asked: Any, found: int) -> None:
    """Any number says from where and how many runs are listed."""
    house.sequence(total, context=Work)
    for po in ("1", "2"):
        house.submit("job", Order("ACME", po))
    assert len(house.client.runs(**asked)) == found
