"""The memo of a step: what its attempts and executions tell each other, each assignment durable at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from iocflow import ParallelSplitProcessor, ProcessContext, RetryingErrorHandler, activity
from tests.integration.durable.house import House


class Work(ProcessContext):
    """A context that counts."""

    seed_data: int = 0
    n: int = 0
    seen: tuple[str, ...] = ()
    right: str = ""


def memo_on_record(house: House, run: int) -> Any:
    """Return the memo of the last record of a run's outer thread."""
    (pos,) = house.kit.sql(f"select pos from step where run = {run} and pos is not null order by n desc limit 1")[0]
    return json.loads(pos).get("memo", {})


def test_each_change_is_durable_before_it_returns(house: House) -> None:
    """Whatever changes the memo is on record as soon as the statement is over."""
    found: list[Any] = []

    def remember(context: Work) -> None:
        run = int(context.step.run_id)
        memo = context.step.memo
        memo["a"] = 1
        found.append(memo_on_record(house, run))
        memo.update(b=2, c=3)
        found.append(memo_on_record(house, run))
        memo.setdefault("d", 4)
        del memo["a"]
        found.append(memo_on_record(house, run))
        assert memo.pop("b") == 2
        memo |= {"e": 5}
        found.append(memo_on_record(house, run))
        memo.clear()
        found.append(memo_on_record(house, run))

    house.sequence(remember, context=Work)
    run = house.submit(seed=1)
    house.work()
    assert house.state(run) == "completed"
    assert found == [{"a": 1}, {"a": 1, "b": 2, "c": 3}, {"b": 2, "c": 3, "d": 4}, {"c": 3, "d": 4, "e": 5}, {}]


def test_the_memo_lives_as_long_as_its_step(house: House) -> None:
    """The next attempt finds the memo, after a delay and on another worker, too; the next step has its own."""
    seen: list[Any] = []

    def remember(context: Work) -> None:
        seen.append(dict(context.step.memo))
        context.step.memo[str(context.step.attempt)] = context.n
        if context.step.attempt < 3:
            raise ValueError("not yet")

    house.sequence(
        activity(remember, on_error=RetryingErrorHandler(attempts=3, delay=60.0)),
        activity(remember, name="next", on_error=RetryingErrorHandler(attempts=3)),
        context=Work,
    )
    run = house.submit()
    for _ in range(3):
        house.work()
        house.kit.advance(61)
    assert house.state(run) == "completed"
    assert seen == [{}, {"1": 0}, {"1": 0, "2": 0}] * 2


def test_the_memo_is_kept_over_a_wait(house: House) -> None:
    """An activity that waited finds the memo that it left, though it runs on another worker now."""
    seen: list[Any] = []

    def remember(context: Work) -> None:
        seen.append(dict(context.step.memo))
        context.step.memo["asked"] = True
        context.n = context.step.wait_for("answer")

    house.sequence(remember, context=Work)
    run = house.submit()
    house.work()
    house.client.signal(run, "answer", 42)
    house.work()
    assert (house.state(run), house.context(run).n) == ("completed", 42)
    assert seen == [{}, {"asked": True}]


def test_a_memo_of_the_first_step_keeps_the_seed(house: House) -> None:
    """A memo that is recorded before there is any other record does not lose the context with the seed."""

    def remember(context: Work) -> None:
        context.n = 99  # not on record before the step has ended
        context.step.memo["a"] = 1
        if context.step.attempt == 1:
            raise ValueError("again")

    house.sequence(activity(remember, on_error=RetryingErrorHandler(attempts=2, delay=60.0)), context=Work)
    run = house.submit(seed=7)
    house.work()
    house.kit.advance(61)
    house.work()
    assert (house.state(run), house.context(run).seed_data) == ("completed", 7)


def test_memos_of_two_branches(house: House) -> None:
    """Each branch has the memo of its own step."""

    def left(context: Work) -> None:
        context.step.memo["side"] = "left"
        context.seen = tuple(context.step.memo.values())

    def right(context: Work) -> None:
        context.step.memo["side"] = "right"
        context.right = context.step.memo["side"]

    split: Any = ParallelSplitProcessor({"left": left, "right": right}, context=Work, name="split")
    house.sequence(split, context=Work)
    run = house.submit()
    house.work()
    context = house.context(run)
    assert (context.seen, context.right) == (("left",), "right")


def test_what_is_no_json_is_refused(house: House) -> None:
    """What cannot be stored fails the activity where it is set, and changes nothing."""

    def remember(context: Work) -> None:
        memo = context.step.memo
        memo["good"] = 1
        with pytest.raises(TypeError):
            memo["bad"] = object()
        context.seen = tuple(memo)

    house.sequence(remember, context=Work)
    run = house.submit()
    house.work()
    assert house.context(run).seen == ("good",)
