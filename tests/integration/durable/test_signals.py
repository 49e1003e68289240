"""Signals: what is addressed to a run that exists, and runs that wait for it without thread, memory or group."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest

from iocflow import ParallelSplitProcessor, ProcessContext, RetryingErrorHandler, SequenceProcessor, activity
from iocflow.durable.errors import SubmitError
from tests.integration.durable.house import House, Ledger


class Deal(ProcessContext):
    """What was heard, in order."""

    seed_data: int = 0
    heard: tuple[str | int | dict[str, str], ...] = ()
    n: int = 0
    right: int = 0


def hear(context: Deal) -> None:
    context.heard += (context.step.wait_for("approved"),)


def hear_in_time(context: Deal) -> None:
    try:
        context.heard += (context.step.wait_for("approved", timeout=60.0),)
    except TimeoutError as error:
        context.heard += (type(error).__name__,)


def add(context: Deal) -> None:
    context.n += 1


def test_a_waiting_run_holds_nothing(house: House) -> None:
    """A run that waits is stored: no worker has it in hand; when the signal comes, the same activity goes on."""
    house.sequence(add, hear, add, context=Deal)
    run = house.submit()
    house.work()
    assert house.state(run) == "waiting"
    assert house.client.signal(run, "approved", {"by": "ann"})
    assert house.state(run) == "queued"
    house.work()
    assert house.state(run) == "completed"
    context = house.context(run)
    assert (context.heard, context.n) == (({"by": "ann"},), 2)
    assert house.trail(run) == "add, hear, add"


def test_a_signal_wakes_a_running_worker(house: House) -> None:
    """A worker that is idle takes up a run as soon as its signal came."""
    house.sequence(hear, context=Deal)
    run = house.submit()
    house.worker()
    house.until(run, "waiting")
    house.client.signal(run, "approved", 1)
    assert house.wait(run).state == "completed"


def test_early_signals_wait_in_order(house: House) -> None:
    """Signals that come before anybody waits for them are kept, and given in the order in which they came."""
    house.sequence(hear, hear, hear, context=Deal)
    run = house.submit()
    for i in (1, 2):
        assert house.client.signal(run, "approved", i)
    house.work()
    assert house.state(run) == "waiting"
    house.client.signal(run, "approved", 3)
    house.work()
    assert house.context(run).heard == (1, 2, 3)


def test_a_signal_that_comes_during_the_step_before(house: House) -> None:
    """A signal that comes while a worker has the run in hand is not missed, though the run waits only afterwards."""
    running, go_on = threading.Event(), threading.Event()

    def busy(context: Deal) -> None:
        running.set()
        go_on.wait(20)

    house.sequence(busy, hear, context=Deal)
    run = house.submit()
    house.worker()
    running.wait(20)
    house.client.signal(run, "approved", "early")
    go_on.set()
    assert house.wait(run).state == "completed"
    assert house.context(run).heard == ("early",)


def test_a_late_signal_is_dead(house: House) -> None:
    """A signal to a run that has ended is refused, and kept as dead; so is one that nobody took."""
    house.sequence(add, context=Deal)
    run = house.submit()
    assert house.client.signal(run, "approved", "nobody waits")
    house.work()
    assert house.state(run) == "completed"
    assert not house.client.signal(run, "approved", "late")
    assert house.kit.sql("select fate from signal order by id") == [("run_ended",), ("run_ended",)]


def test_a_signal_of_another_name_does_not_wake(house: House) -> None:
    """A signal that is not waited for leaves the run waiting; it is kept for whoever asks for it."""
    house.sequence(hear, context=Deal)
    run = house.submit()
    house.worker()
    house.until(run, "waiting")
    for i in range(3):
        house.client.signal(run, "other", i)
    house.eventually(lambda: house.state(run) == "waiting")
    house.client.signal(run, "approved", 1)
    assert house.wait(run).state == "completed"
    assert house.context(run).heard == (1,)


def test_a_wait_ends_by_its_timeout(house: House) -> None:
    """A wait that took too long raises where it stands; a signal that comes in time is given."""
    house.sequence(hear_in_time, context=Deal)
    late, timely = house.submit(), house.submit()
    house.work()
    house.kit.advance(59)
    house.work()
    assert [house.state(late), house.state(timely)] == ["waiting", "waiting"]
    house.client.signal(timely, "approved", "yes")
    house.kit.advance(2)
    house.work()
    assert house.context(late).heard == ("SignalTimeoutError",)
    assert house.context(timely).heard == ("yes",)


def test_a_timeout_that_nobody_catches_is_an_error_of_the_activity(house: House) -> None:
    """The activity fails with it, its handler is asked, and the next attempt waits anew."""

    def wait(context: Deal) -> None:
        context.heard = (context.step.attempt, context.step.wait_for("approved", timeout=60.0))

    house.sequence(activity(wait, on_error=RetryingErrorHandler(attempts=2)), context=Deal)
    run = house.submit()
    house.work()
    house.kit.advance(61)
    house.work()
    assert house.state(run) == "waiting"
    house.client.signal(run, "approved", "at last")
    house.work()
    assert house.state(run) == "completed"
    assert house.context(run).heard == (2, "at last")


def test_t6(house: House) -> None:
    """T6: a timer of 60 s that is armed anew after 30 s fires once, at 90 s: a wait that a signal begins again."""
    fired: list[float] = []

    def timer(context: Deal) -> None:
        while True:
            try:
                context.step.wait_for("arm", timeout=60.0)
            except TimeoutError:
                fired.append(house.store.now())
                return

    house.sequence(timer, context=Deal)
    run = house.submit()
    began = house.store.now()
    for second in range(0, 120, 5):
        if second == 30:
            house.client.signal(run, "arm")
        house.work()
        house.kit.advance(5)
    assert house.state(run) == "completed"
    assert len(fired) == 1
    assert 90 <= fired[0] - began < 97


def test_an_operator_s_retry_waits_anew(house: House) -> None:
    """A run that failed because its signal did not come in time waits anew when an operator lets it go on."""

    def wait(context: Deal) -> None:
        context.heard = (context.step.wait_for("approved", timeout=60.0),)

    house.sequence(add, wait, context=Deal)
    run = house.submit()
    house.work()
    house.kit.advance(61)
    house.work()
    assert house.state(run) == "failed"
    assert house.client.retry(run)
    house.work()
    assert house.state(run) == "waiting"
    house.client.signal(run, "approved", "now")
    house.work()
    assert (house.state(run), house.context(run).heard) == ("completed", ("now",))


def test_several_waits_in_one_activity(house: House) -> None:
    """An activity that waits several times gets at once what it had; each time it runs from its beginning."""
    ledger = Ledger()

    def talk(context: Deal) -> None:
        ledger.note(context, "began")
        first = context.step.wait_for("first")
        second = context.step.wait_for("second")
        again = context.step.wait_for("first")
        context.heard = (first, second, again)

    house.sequence(talk, context=Deal)
    run = house.submit()
    house.work()
    house.client.signal(run, "first", 1)
    house.client.signal(run, "first", 3)
    house.work()
    assert house.state(run) == "waiting"
    house.client.signal(run, "second", 2)
    house.work()
    assert house.context(run).heard == (1, 2, 3)
    assert ledger.whats.count("began") == 4
    assert ledger.effects == 1


def test_waits_in_another_order_are_refused(house: House) -> None:
    """An activity that asks for its signals in another order than before is told so, instead of getting wrong data."""
    order = ["first", "second"]

    def talk(context: Deal) -> None:
        context.heard = tuple(context.step.wait_for(name) for name in order)

    house.sequence(talk, context=Deal)
    run = house.submit()
    house.client.signal(run, "first", 1)
    house.work()
    order.reverse()
    house.client.signal(run, "second", 2)
    house.work()
    status = house.client.status(run)
    assert status.state == "failed"
    assert status.error is not None
    assert status.error["type"] == "iocflow.durable.errors.SignalOrderError"


def test_a_waiting_run_frees_its_group(house: House) -> None:
    """While a run waits for a signal, the next one of its group goes on; later both are in order again."""
    ledger = Ledger()

    def wait_if_first(context: Deal) -> None:
        ledger.note(context, context.seed_data)
        if context.seed_data == 1:
            context.heard = (context.step.wait_for("approved"),)

    house.sequence(wait_if_first, context=Deal)
    runs = [house.submit(seed=i, group="G") for i in (1, 2)]
    house.work()
    assert [house.state(run) for run in runs] == ["waiting", "completed"]
    house.client.signal(runs[0], "approved", "yes")
    house.work()
    assert house.state(runs[0]) == "completed"
    assert ledger.whats == [1, 2, 1]


def test_a_wait_in_a_branch(house: House) -> None:
    """One branch of a split waits while the other works; both are joined when the signal came."""

    def right(context: Deal) -> None:
        context.right += 1

    split: Any = ParallelSplitProcessor({"left": hear, "right": [right, right]}, context=Deal, name="split")
    house.sequence(split, add, context=Deal)
    run = house.submit()
    house.work()
    assert house.state(run) == "waiting"
    assert house.trail(run) == "split/right/right, split/right/right, split/right"
    house.client.signal(run, "approved", "yes")
    house.work()
    assert house.state(run) == "completed"
    context = house.context(run)
    assert (context.heard, context.right, context.n) == (("yes",), 2, 1)


def test_a_wait_in_a_branch_while_the_other_is_busy(house: House) -> None:
    """A signal that comes while a branch waits and another one works is given as soon as that has nothing to do."""
    busy, go_on = threading.Event(), threading.Event()

    def right(context: Deal) -> None:
        busy.set()
        go_on.wait(20)
        context.right += 1

    split: Any = ParallelSplitProcessor({"left": hear, "right": right}, context=Deal, name="split")
    house.sequence(split, context=Deal)
    run = house.submit()
    house.worker()
    busy.wait(20)
    house.client.signal(run, "approved", "yes")
    go_on.set()
    assert house.wait(run).state == "completed"
    assert house.context(run).heard == ("yes",)


def test_waits_in_two_branches(house: House) -> None:
    """Two branches wait for one name each; each gets its own signal, whatever the order in which they come."""

    def left(context: Deal) -> None:
        context.n = context.step.wait_for("left")

    def right(context: Deal) -> None:
        context.right = context.step.wait_for("right")

    split: Any = ParallelSplitProcessor({"left": left, "right": right}, context=Deal, name="split")
    house.sequence(split, context=Deal)
    run = house.submit()
    house.work()
    house.client.signal(run, "right", 2)
    house.work()
    assert house.state(run) == "waiting"
    house.client.signal(run, "left", 1)
    house.work()
    assert house.state(run) == "completed"
    context = house.context(run)
    assert (context.n, context.right) == (1, 2)


def test_a_wait_in_a_nesting(house: House) -> None:
    """A nested processor's activity waits as any other, and its handlers see no error."""
    inner: Any = SequenceProcessor([add, hear, add], context=Deal, name="inner")
    house.sequence(inner, add, context=Deal)
    run = house.submit()
    house.work()
    assert house.state(run) == "waiting"
    house.client.signal(run, "approved", "yes")
    house.work()
    assert house.trail(run) == "inner/add, inner/hear, inner/add, inner, add"


def test_what_is_no_json_is_refused(house: House) -> None:
    """The data of a signal has to be JSON; the message names the signal."""
    house.sequence(hear, context=Deal)
    run = house.submit()
    with pytest.raises(SubmitError, match="signal 'approved' cannot be written as JSON"):
        house.client.signal(run, "approved", object())


def test_q9(house: House) -> None:
    """Q9: a signal is sent at the moment at which the run ends, 200 times: taken or dead, but never lost."""

    def hear_one(context: Deal) -> None:
        context.heard = (context.step.wait_for("approved"),)

    house.sequence(hear_one, context=Deal)
    runs = [house.submit() for _ in range(200)]
    house.worker(threads=2)
    answers: dict[int, list[bool]] = {}

    def send() -> None:
        for run in runs:
            answers[run] = [house.client.signal(run, "approved", i) for i in range(2)]

    sender = threading.Thread(target=send)
    sender.start()
    assert house.wait_all(runs) == ["completed"] * 200
    sender.join()
    fates = house.kit.sql("select run, fate, count(*) from signal group by run, fate")
    assert {run: sum(count for one, _, count in fates if one == run) for run in runs} == dict.fromkeys(runs, 2)
    assert all(fate in ("taken", "run_ended") for _, fate, _ in fates)
    taken = {run: count for run, fate, count in fates if fate == "taken"}
    assert taken == dict.fromkeys(runs, 1)
    assert all(sent[0] for sent in answers.values())
    assert all(house.context(run).heard == (0,) for run in runs[::50])


@pytest.mark.parametrize("timeout", [None, 0.3])
def test_a_branch_hears_while_another_one_is_busy(house: House, timeout: float | None) -> None:
    """A branch that waits goes on with its signal, or its timeout, though a branch beside it is long under way."""
    heard, busy = threading.Event(), threading.Event()

    def wait(context: Deal) -> None:
        with contextlib.suppress(TimeoutError):
            context.step.wait_for("approved", timeout=timeout)
        heard.set()

    def work(context: Deal) -> None:
        busy.set()
        context.right = int(heard.wait(10))

    house.wire(ParallelSplitProcessor({"left": wait, "right": work}, context=Deal, name="job"))
    run = house.submit()
    house.worker(tick=1.0)
    assert busy.wait(10)
    if timeout is None:
        house.client.signal(run, "approved", 1)
    assert house.wait(run).state == "completed"
    assert house.context(run).right == 1
