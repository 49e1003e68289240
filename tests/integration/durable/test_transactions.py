"""Steps in mode `transactional`: what they do in the store's database, and their record, are one."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from iocflow import CONTINUE, ParallelSplitProcessor, ProcessContext, RetryingErrorHandler, activity
from tests.integration.durable.house import House, Ledger


class Booking(ProcessContext):
    """A context that counts."""

    seed_data: int = 0
    n: int = 0
    handled: str = ""


class Desk:
    """A table of the domain, and activities that write to it in their step's transaction."""

    def __init__(self, house: House) -> None:
        self.house, self.table = house, house.table("booking")

    def rows(self) -> list[str]:
        return sorted(what for (what,) in self.house.kit.sql(f"select what from {self.table}"))

    def write(self, context: Booking, what: str) -> None:
        context.step.transaction.execute(f"insert into {self.table}(what) values ('{what}')")

    def book(self, context: Booking, what: str = "booked") -> None:
        self.write(context, f"{what} {context.n}")
        context.n += 1

    def fail(self, context: Booking) -> None:
        self.book(context, "never")
        context.step.group.state = "never"
        raise ValueError("after the row")

    def handle_error(self, context: Booking, error: Exception) -> Any:
        """Write a row, as a handler."""
        self.write(context, "handled")
        context.handled = f"{context.n} {error}"
        return CONTINUE


@pytest.fixture
def desk(house: House) -> Desk:
    return Desk(house)


def transactional(what: Any, **options: Any) -> Any:
    return activity(what, mode="transactional", **options)


def test_rows_and_record_are_one(house: House, desk: Desk) -> None:
    """The rows that a transactional step writes are there with its record; the steps around it are leased."""

    def leased(context: Booking) -> None:
        context.n += 100

    house.sequence(leased, transactional(desk.book), leased, transactional(desk.book, name="again"), context=Booking)
    run = house.submit()
    house.work()
    assert house.state(run) == "completed"
    assert desk.rows() == ["booked 100", "booked 201"]
    assert house.context(run).n == 202


def test_the_first_step_is_transactional(house: House, desk: Desk) -> None:
    """A transactional step may be the first: it has its seed, and its own transaction."""

    def first(context: Booking) -> None:
        context.n = context.seed_data
        desk.book(context)

    house.sequence(transactional(first), context=Booking)
    run = house.submit(seed=5)
    house.work()
    assert (house.state(run), desk.rows()) == ("completed", ["booked 5"])


def test_a_failure_rolls_back_rows_context_and_group(house: House, desk: Desk) -> None:
    """A failed step leaves nothing: no row, and context and group's state are those of the last record."""
    house.sequence(transactional(desk.book), transactional(desk.fail), context=Booking, name="job")
    run = house.submit(group="G")
    house.work()
    status = house.client.status(run)
    assert (status.state, status.outcome) == ("failed", "error")
    assert desk.rows() == ["booked 0"]
    assert house.context(run).n == 1
    assert house.trail(run) == "book, fail FAILED"
    assert house.kit.sql("select key from group_state") == []


def test_the_handler_comes_after_the_roll_back(house: House, desk: Desk) -> None:
    """The handler of a failed step sees the context of the last record; what it writes goes with the step's record."""
    house.sequence(transactional(desk.book), transactional(desk.fail, on_error=desk), context=Booking)
    run = house.submit()
    house.work()
    assert house.state(run) == "completed"
    assert desk.rows() == ["booked 0", "handled"]
    context = house.context(run)
    assert (context.n, context.handled) == (1, "1 after the row")
    assert house.trail(run) == "book, fail HANDLED"


def test_attempts_are_transactions(house: House, desk: Desk) -> None:
    """Each attempt is a transaction of its own, on the context of the last record."""

    def twice(context: Booking) -> None:
        desk.book(context, f"attempt {context.step.attempt}")
        if context.step.attempt < 3:
            raise ValueError("not yet")

    house.sequence(transactional(twice, on_error=RetryingErrorHandler(attempts=3)), context=Booking)
    run = house.submit()
    house.work()
    assert desk.rows() == ["attempt 3 0"]
    assert house.context(run).n == 1
    assert house.trail(run) == "twice DONE x3"


@pytest.mark.parametrize("how", ["commit", "rollback"])
def test_ending_the_transaction_is_refused(house: House, desk: Desk, how: str) -> None:
    """An activity that ends the step's transaction itself fails, and nothing that it wrote stays."""

    def end(context: Booking) -> None:
        desk.book(context)
        getattr(context.step.transaction, how)()

    house.sequence(transactional(end), context=Booking)
    run = house.submit()
    house.work()
    status = house.client.status(run)
    assert (status.state, desk.rows()) == ("failed", [])
    assert status.error is not None
    assert "the activity ended the transaction" in status.error["message"]


def test_ending_the_transaction_in_sql_is_refused(house: House, desk: Desk) -> None:
    """`commit` as a statement is noticed, too: the run does not go on as if its step and record were one."""

    def end(context: Booking) -> None:
        desk.book(context)
        context.step.transaction.execute("commit")

    house.sequence(transactional(end), context=Booking)
    run = house.submit()
    house.worker()
    status = house.wait(run)
    assert status.state in ("failed", "suspended")
    assert "transaction" in (status.error["message"] if status.error else status.reason)


def test_there_is_no_transaction_in_a_leased_step(house: House, desk: Desk) -> None:
    """`context.step.transaction` in a step that is leased is an error that says what to write."""
    house.sequence(desk.book, context=Booking)
    run = house.submit()
    house.work()
    status = house.client.status(run)
    assert status.error is not None
    assert "mode: transactional" in status.error["message"]


@pytest.mark.parametrize("broken", [False, True])
def test_outgoing_submits_go_with_the_step(house: House, broken: bool) -> None:
    """Runs that a step submits in its transaction exist when its record does, or not at all."""

    def send(context: Booking) -> None:
        for i in range(2):
            house.client.submit("other", i, number=f"{i}", transaction=context.step.transaction)
        if broken:
            raise ValueError("after sending")

    house.sequence(transactional(send), context=Booking)
    house.sequence(lambda context: None, context=Booking, name="other")
    run = house.submit()
    house.work()
    assert house.state(run) == ("failed" if broken else "completed")
    assert [one.state for one in house.client.runs(processor="other")] == ([] if broken else ["completed"] * 2)


def test_a_wait_rolls_back_what_came_before(house: House, desk: Desk) -> None:
    """A transactional step that waits leaves nothing of its beginning; all is done in one when the signal came."""

    def wait(context: Booking) -> None:
        desk.book(context)
        context.n += context.step.wait_for("approved")
        desk.book(context)

    house.sequence(transactional(wait), context=Booking)
    run = house.submit()
    house.work()
    assert (house.state(run), desk.rows()) == ("waiting", [])
    house.client.signal(run, "approved", 10)
    house.work()
    assert (house.state(run), desk.rows()) == ("completed", ["booked 0", "booked 11"])
    assert house.context(run).n == 12


def test_the_memo_goes_with_the_step(house: House, desk: Desk) -> None:
    """The memo of a transactional step is written with its record, and undone with its rows."""
    seen: list[dict[str, Any]] = []

    def remember(context: Booking) -> None:
        seen.append(dict(context.step.memo))
        context.step.memo["row"] = "written"
        desk.book(context)
        if context.step.attempt == 1:
            raise ValueError("again")

    house.sequence(transactional(remember, on_error=RetryingErrorHandler(attempts=2)), context=Booking)
    run = house.submit()
    house.work()
    assert house.state(run) == "completed"
    assert seen == [{}, {}]
    assert desk.rows() == ["booked 0"]


def test_transactions_in_branches(house: House, desk: Desk) -> None:
    """Transactional steps may stand in branches: they take turns, and both are on record."""

    def left(context: Booking) -> None:
        desk.write(context, "left")
        context.n += 1

    def right(context: Booking) -> None:
        desk.write(context, "right")
        context.handled = "right"

    branches = {"left": transactional(left), "right": transactional(right)}
    split: Any = ParallelSplitProcessor(branches, context=Booking, name="split")
    house.sequence(split, context=Booking)
    run = house.submit()
    house.work(threads=4)
    assert house.state(run) == "completed"
    assert desk.rows() == ["left", "right"]
    assert (house.context(run).n, house.context(run).handled) == (1, "right")


def test_a_roll_back_in_a_branch_changes_no_field(house: House, desk: Desk) -> None:
    """A branch whose transaction was rolled back has changed nothing: what another branch changed is joined."""

    def left(context: Booking) -> None:
        desk.write(context, "left")
        if context.step.attempt == 1:
            context.n += 1
            raise ValueError("again")
        context.handled = str(context.step.attempt)

    def right(context: Booking) -> None:
        context.n += 5000

    branches = {"left": transactional(left, on_error=RetryingErrorHandler(attempts=2)), "right": right}
    split: Any = ParallelSplitProcessor(branches, context=Booking, name="split")
    house.sequence(right, split, context=Booking)
    run = house.submit(seed=1)
    house.work()
    assert house.state(run) == "completed"
    assert desk.rows() == ["left"]
    assert (house.context(run).n, house.context(run).handled) == (10000, "2")


# A SQLite file has one writer: nobody can cancel while the transaction is open.
@pytest.mark.parametrize("house", [pytest.param("postgres", marks=pytest.mark.service("postgres"))], indirect=True)
def test_a_run_that_is_taken_away_in_its_transaction(house: House, desk: Desk) -> None:
    """A run that is cancelled while its transaction is open: nothing of the step stays, and it is told."""
    entered, go_on, ledger = threading.Event(), threading.Event(), Ledger()

    def slow(context: Booking) -> None:
        desk.book(context)
        entered.set()
        go_on.wait(20)

    last = [lambda context: ledger.note(context, "finally")]
    house.sequence(transactional(slow), context=Booking, finally_=last)
    run = house.submit()
    house.worker(threads=1)
    entered.wait(20)
    assert house.client.cancel(run)
    go_on.set()
    assert house.wait(run).state == "cancelled"
    assert desk.rows() == []
    assert ledger.whats == ["finally"]
    assert "fenced_out" in house.kinds(run)


def test_many_transactions_of_many_workers(house: House, desk: Desk) -> None:
    """Runs with transactional steps on two workers: each row is written once."""

    def write(context: Booking) -> None:
        desk.write(context, f"{context.seed_data}")

    house.sequence(transactional(write), write_later, transactional(write, name="again"), context=Booking)
    runs = [house.submit(seed=i) for i in range(30)]
    for _ in range(2):
        house.worker(threads=3)
    assert house.wait_all(runs) == ["completed"] * 30
    assert desk.rows() == sorted([str(i) for i in range(30)] * 2)


def write_later(context: Booking) -> None:
    context.n += 1
