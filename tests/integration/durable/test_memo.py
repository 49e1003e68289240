"""The memo of a step: what its attempts and executions tell each other, each assignment durable at once."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from typing import Any

import pytest

from iocflow import ParallelSplitProcessor, ProcessContext, RetryingErrorHandler, activity
from iocflow.context import StepInfo
from tests.integration.durable.house import House


class Work(ProcessContext):
    """A context that counts."""

    seed_data: int = 0
    n: int = 0
    seen: tuple[str, ...] = ()
    right: str = ""


class Lists(ProcessContext):
    """A context with lists."""

    seed_data: None
    names: list[list[str]]
    left: list[list[str]]


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


CHANGES: dict[str, Callable[[StepInfo], object]] = {
    "the whole": lambda step: setattr(step, "memo", {"b": [2]}),
    "the whole, by an operator": lambda step: operator.ior(step.memo, {"b": [2]}),
    "the whole, to nothing": lambda step: setattr(step, "memo", {}),
    "a default": lambda step: step.memo.setdefault("new", []).append(1),
    "the last": lambda step: step.memo.popitem(),
    "a list's item": lambda step: operator.setitem(step.memo["list"], 0, "z"),
    "a list's part": lambda step: operator.setitem(step.memo["list"], slice(0, 2), ["c", {"d": 1}, "e"]),
    "a list's new part": lambda step: (
        operator.setitem(step.memo["list"], slice(0, 2), [{"d": 1}]),
        step.memo["list"][0].update(d=2),
    ),
    "no item of a list": lambda step: operator.delitem(step.memo["list"], 0),
    "one more of a list": lambda step: step.memo["list"].append({"f": 1}),
    "several more of a list": lambda step: step.memo["list"].extend("gh"),
    "several more of a list, by an operator": lambda step: operator.iadd(step.memo["list"], "gh"),
    "a list twice": lambda step: operator.imul(step.memo["list"], 2),
    "in a list": lambda step: step.memo["list"].insert(1, [0]),
    "out of a list": lambda step: step.memo["list"].pop(),
    "not in a list": lambda step: step.memo["list"].remove("a"),
    "nothing in a list": lambda step: step.memo["list"].clear(),
    "a list's order": lambda step: step.memo["list"].reverse(),
    "a sorted list": lambda step: step.memo["list"].sort(key=str),
    "deep in it": lambda step: step.memo["list"][2]["b"].append(2),
    "a dict's item": lambda step: operator.setitem(step.memo["dict"], "b", 2),
    "no item of a dict": lambda step: operator.delitem(step.memo["dict"], "a"),
    "out of a dict": lambda step: step.memo["dict"].pop("a"),
    "nothing in a dict": lambda step: step.memo["dict"].clear(),
}
"""Whatever changes a memo, by name."""


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_changes_the_memo_is_on_record(house: House, what: str) -> None:
    """However the memo is changed, as a whole or somewhere inside, that is on record when the statement is over."""
    found: list[Any] = []

    def remember(context: Work) -> None:
        step = context.step
        step.memo = {"list": ["b", "a", {"b": [1]}], "dict": {"a": 1}}
        before = json.dumps(step.memo)
        CHANGES[what](step)
        found.extend([json.loads(before), memo_on_record(house, int(step.run_id)), json.loads(json.dumps(step.memo))])

    house.sequence(remember, context=Work)
    run = house.submit()
    house.work()
    assert house.state(run) == "completed"
    before, recorded, memo = found
    assert recorded == memo != before


def test_the_whole_memo_lives_on(house: House) -> None:
    """A memo that was assigned as a whole, then changed through a name that it had before, is what a retry finds."""
    seen: list[Any] = []

    def remember(context: Work) -> None:
        memo = context.step.memo
        seen.append(json.loads(json.dumps(memo)))
        if context.step.attempt == 1:
            context.step.memo = {"served": ["ann"]}
            memo["served"].append("bob")
            raise ValueError("not yet")

    house.sequence(activity(remember, on_error=RetryingErrorHandler(attempts=2, delay=60.0)), context=Work)
    run = house.submit()
    house.work()
    house.kit.advance(61)
    house.work()
    assert house.state(run) == "completed"
    assert seen == [{}, {"served": ["ann", "bob"]}]


def test_a_memo_that_is_rolled_back(house: House) -> None:
    """A transactional step that fails leaves its memo as it was, also deep inside."""
    seen: list[Any] = []

    def remember(context: Work) -> None:
        seen.append(json.loads(json.dumps(context.step.memo)))
        context.step.memo.setdefault("tries", []).append(context.step.attempt)
        if context.step.attempt < 3:
            raise ValueError("not yet")

    step = activity(remember, on_error=RetryingErrorHandler(attempts=3), mode="transactional", time_limit=5.0)
    house.sequence(step, context=Work)
    run = house.submit()
    house.work()
    assert house.state(run) == "completed"
    assert seen == [{}] * 3


def test_what_comes_out_of_a_memo_is_plain(house: House) -> None:
    """A list of the memo in a field of the context is stored, forked and read back as any list."""

    def fill(context: Lists) -> None:
        context.step.memo["names"] = [["ann"], ["bob"]]
        context.names = context.step.memo["names"]

    def look(context: Lists) -> None:
        context.left = [*context.names]

    split: Any = ParallelSplitProcessor({"one": look, "two": lambda _: None}, context=Lists, name="split")
    house.sequence(fill, split, context=Lists)
    run = house.submit()
    house.work()
    context = house.context(run)
    assert (context.names, context.left) == ([["ann"], ["bob"]],) * 2


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda step: setattr(step, "memo", ["a"]), "context.step.memo is a dict: it cannot be set to a list"),
        (lambda step: setattr(step, "memo", None), "context.step.memo is a dict: it cannot be set to a NoneType"),
        (lambda step: setattr(step, "memo", {"a": {1, 2}}), r"context.step.memo\['a'\] is a set"),
        (lambda step: operator.setitem(step.memo, 1, "a"), r"context.step.memo\[1\]: the keys of a memo are str"),
        (lambda step: operator.setitem(step.memo, "a", [{"b": object()}]), r"context.step.memo\['a'\]\[0\]\['b'\] is"),
        (lambda step: step.memo["list"].append(object()), r"context.step.memo\['list'\]\[...\] is a object"),
    ],
)
def test_what_a_memo_cannot_keep_says_where(house: House, change: Callable[[StepInfo], object], where: str) -> None:
    """What is no memo, or has in it what JSON has not, is refused where it is set; the memo stays as it was."""
    found: list[Any] = []

    def remember(context: Work) -> None:
        context.step.memo = {"list": [1]}
        with pytest.raises(TypeError, match=where):
            change(context.step)
        found.extend([dict(context.step.memo), memo_on_record(house, int(context.step.run_id))])

    house.sequence(remember, context=Work)
    run = house.submit()
    house.work()
    assert house.state(run) == "completed"
    assert found == [{"list": [1]}] * 2


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
