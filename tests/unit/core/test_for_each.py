"""For-each: items in order and in parallel, failures, results, and what is joined."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from behaviour.parts import Asking, Box, BrokenError, add
from unit.core.conftest import Wire
from unit.core.kit import each, nothing

from iocflow import (
    CONTINUE,
    STOP,
    ForEachProcessor,
    JoinConflictError,
    ParallelSplitProcessor,
    RetryingErrorHandler,
    SequenceProcessor,
    UnsetError,
    activity,
)

MODES: list[dict[str, Any]] = [{}, {"parallel": 1}, {"parallel": 3}]


def items(*values: Any) -> Any:
    def fill(context: Box) -> None:
        context.items = values

    return fill


def double(context: Box) -> None:
    context.square = 2 * context.item


def refuse_odd(context: Box) -> None:
    if context.item % 2:
        raise BrokenError(f"{context.item} is odd")
    context.square = context.item


def rows(run: Any) -> list[tuple[str, str]]:
    return [(step.activity, step.outcome.name) for step in run.steps]


# Items.


@pytest.mark.parametrize("mode", MODES)
def test_every_item_is_seen_once(wire: Wire, mode: Any) -> None:
    """In its field, whatever it is: None, equal ones, other sequences."""
    seen: list[object] = []
    values = (1, None, 1, (2,), "x", [])
    wire(items(*values), each(lambda context: seen.append(context.item), **mode)).do_activities()
    assert sorted(map(repr, seen)) == sorted(map(repr, values))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("value", [7, None, "text", b"bytes", {1: 2}, {1, 2}, iter([1])])
def test_items_are_a_sequence(wire: Wire, mode: Any, value: Any) -> None:
    """Anything else is a TypeError that names the processor and the field, and no item runs."""
    run = wire(lambda context: setattr(context, "items", value), each(add, **mode)).launch()
    assert str(run.error) == (f"each: context.items is a {type(value).__name__}; for-each wants a list or tuple")
    assert run.context.n == 0


@pytest.mark.parametrize("mode", MODES)
def test_unset_items_are_told(wire: Wire, mode: Any) -> None:
    """A field that nobody has set is an UnsetError, as everywhere."""
    run = wire(ForEachProcessor("root", add, as_="item", context=Box, **mode)).launch()
    assert isinstance(run.error, UnsetError)


def test_own_sequences_will_do(wire: Wire) -> None:
    """A lazy sequence is counted once, and asked for one item at a time."""

    class Lazy(Sequence[int]):
        def __init__(self) -> None:
            self.asked: list[Any] = []

        def __len__(self) -> int:
            self.asked.append("len")
            return 3

        def __getitem__(self, i: Any) -> Any:
            self.asked.append(i)
            return i * 10

    lazy = Lazy()
    seen: list[int] = []
    fill = lambda context: setattr(context, "items", lazy)  # noqa: E731 - once
    wire(fill, each(lambda context: seen.append(context.item))).do_activities()
    assert (seen, lazy.asked) == ([0, 10, 20], ["len", 0, 1, 2])


def test_items_are_counted_once(wire: Wire) -> None:
    """Items that are added meanwhile are not run; one that is gone is an error of its own."""

    def grow(context: Any) -> None:
        context.n += 1
        context.items.append(9)

    def shrink(context: Any) -> None:
        context.items.clear()

    fill = lambda context: setattr(context, "items", [1, 2, 3])  # noqa: E731 - twice
    assert wire(fill, each(grow)).do_activities().context.n == 3
    run = wire(fill, each(shrink)).launch()
    assert isinstance(run.error, IndexError)
    assert str(run.error) == (
        "each: context.items has no item 1 any more: the items are counted once, and must not get fewer meanwhile"
    )
    assert rows(run)[1:3] == [("each/shrink", "DONE"), ("each/shrink", "FAILED")]


def test_in_order_items_share_the_context(wire: Wire) -> None:
    """What one item leaves, the next one sees, and so does what comes after."""
    run = wire(items(1, 2, 3), each(add), add).do_activities()
    assert (run.context.n, run.context.item) == (4, 3)


def test_in_parallel_items_get_forks(wire: Wire) -> None:
    """Each sees the context as it was before, without the items, and its own item itself, not a copy."""
    values = [object(), object()]
    seen: list[tuple[object, bool, int]] = []

    def look(context: Box) -> None:
        seen.append((context.item, "items" in vars(context), context.n))
        context.n = 1

    run = wire(add, items(*values), each(look, parallel=2)).do_activities()
    assert {item for item, _, _ in seen} == set(values)
    assert all((has, n) == (False, 1) for _, has, n in seen)
    assert run.context.items == tuple(values)


def test_at_most_so_many_at_once(wire: Wire) -> None:
    """`parallel: n` runs n items at the same time, never more, and keeps all n busy."""
    lock, running, most = threading.Lock(), 0, 0

    def work(context: Box) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    wire(items(*range(12)), each(work, parallel=3)).do_activities()
    assert most == 3


def test_loops_in_loops(wire: Wire) -> None:
    """A for-each in a for-each binds both items, in order and in parallel."""
    seen: list[tuple[int, int]] = []

    def fill_inner(context: Any) -> None:
        context.inner = [context.item * 10 + i for i in range(2)]

    def look(context: Any) -> None:
        seen.append((context.item, context.part))

    for outer in ({}, {"parallel": 2}):
        for mode in ({}, {"parallel": 2}):
            seen.clear()
            inner = ForEachProcessor("inner", [look], as_="part", context=Box, name="inner", **mode)  # type: ignore[arg-type]
            body = activity(SequenceProcessor([fill_inner, inner], context=Box, name="body"))
            run = wire(items(1, 2), each(body, collect={"last": "inner"}, **outer)).do_activities()
            assert sorted(seen) == [(1, 10), (1, 11), (2, 20), (2, 21)]
            assert run.context.last == [[10, 11], [20, 21]]


# Failures.


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("may_fail", "outcome"), [(0, "FAILED"), (2, "FAILED"), (3, "COMPLETED"), ("50%", "COMPLETED"), ("49%", "FAILED")]
)
def test_so_many_may_fail(wire: Wire, mode: Any, may_fail: Any, outcome: str) -> None:
    """The for-each fails when more do; it keeps those that failed, and the results of the others, in item order."""
    loop = each(refuse_odd, may_fail=may_fail, failed="left", collect={"right": "square"}, **mode)
    run = wire(items(0, 1, 2, 3, 4, 5), loop).launch()
    assert run.outcome.name == outcome
    if outcome == "COMPLETED":
        assert (run.context.left, run.context.right) == ([1, 3, 5], [0, 2, 4])
        assert rows(run)[-1] == ("each", "DONE")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("may_fail", [0, 1, "20%"])
def test_the_item_that_was_one_too_many_is_told_too(wire: Wire, mode: Any, may_fail: Any) -> None:
    """`failed` holds all items that failed also when the whole does, and `collect` what the others made until then."""
    loop = each(refuse_odd, may_fail=may_fail, failed="left", collect={"right": "square"}, **mode)
    run = wire(items(0, 2, 4, 1, 3), activity(loop, on_error=CONTINUE)).do_activities()
    both = may_fail != 0 or mode
    assert (run.context.left, run.context.right) == ([1, 3] if both else [1], [0, 2, 4])
    (row,) = [step for step in run.steps if step.activity == "each"]
    told = row.error.exceptions if isinstance(row.error, ExceptionGroup) else [row.error]
    assert [str(error) for error in told] == [f"{item} is odd" for item in run.context.left]


def test_in_order_the_first_too_many_ends_it(wire: Wire) -> None:
    """Items after it do not run; in parallel all of them do."""
    run = wire(items(1, 2, 3, 4), each(refuse_odd, may_fail=1)).launch()
    assert rows(run)[1:] == [
        ("each/refuse-odd", "FAILED"),
        ("each/refuse-odd", "DONE"),
        ("each/refuse-odd", "FAILED"),
        ("each", "FAILED"),
    ]
    run = wire(items(1, 2, 3, 4), each(refuse_odd, parallel=2, collect={"right": "square"})).launch()
    assert len(rows(run)) == 1 + 4 + 1
    assert [str(part) for part in run.error.exceptions] == ["1 is odd", "3 is odd"]  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", MODES)
def test_handlers_of_items(wire: Wire, mode: Any) -> None:
    """First the step's handlers are asked, then those of the for-each: what they deal with is no failed item."""
    asked: list[int] = []

    def ask(context: Any, error: Exception) -> Any:
        asked.append(context.item)
        return CONTINUE

    body = activity(refuse_odd, on_error=RetryingErrorHandler(2))
    run = wire(items(1, 2, 3), each(body, on_error=Asking(ask), failed="left", **mode)).do_activities()
    assert (sorted(asked), run.context.left) == ([1, 3], [])
    assert [step.attempts for step in run.steps if step.activity == "each/refuse-odd"] == [2, 1, 2]


@pytest.mark.parametrize("mode", MODES)
def test_a_stop_ends_the_run(wire: Wire, mode: Any) -> None:
    """An item that stops, or whose handler does, stops the run; in order the items after it do not begin."""
    seen: list[int] = []

    def stop_at_two(context: Box) -> None:
        seen.append(context.item)
        if context.item == 2:
            raise BrokenError("two")

    run = wire(items(1, 2, 3), each(activity(stop_at_two, on_error=STOP), **mode), add).do_activities()
    assert (run.outcome.name, run.context.n) == ("STOPPED", 0)
    assert sorted(seen) == ([1, 2, 3] if mode else [1, 2])


@pytest.mark.parametrize("mode", MODES)
def test_a_composite_that_is_tried_again_begins_anew(wire: Wire, mode: Any) -> None:
    """Lists of results and of failures begin empty with each attempt."""
    tries: list[int] = []

    def refuse_first(context: Box) -> None:
        tries.append(context.item)
        context.square = context.item
        if context.item == 3 and tries.count(3) == 1:
            raise BrokenError("not yet")

    loop = each(refuse_first, failed="left", collect={"right": "square"}, **mode)
    run = wire(items(1, 2, 3), activity(loop, on_error=RetryingErrorHandler(2))).do_activities()
    assert (run.context.left, run.context.right) == ([], [1, 2, 3])
    assert sorted(tries) == [1, 1, 2, 2, 3, 3]


# Results.


@pytest.mark.parametrize("mode", MODES)
def test_results_are_collected_in_item_order(wire: Wire, mode: Any) -> None:
    """Whichever item is done first."""

    def slow_first(context: Box) -> None:
        time.sleep(0.002 * (4 - context.item))
        double(context)

    run = wire(items(1, 2, 3), each(slow_first, collect={"left": "square", "right": "item"}, **mode)).do_activities()
    assert (run.context.left, run.context.right) == ([2, 4, 6], [1, 2, 3])


@pytest.mark.parametrize("mode", MODES)
def test_a_result_that_no_item_made_is_told(wire: Wire, mode: Any) -> None:
    """A field that is to be collected and was not set is an UnsetError that names it."""
    run = wire(items(1, 2), each(nothing, collect={"left": "root"}, **mode)).launch()
    errors = run.error.exceptions if isinstance(run.error, ExceptionGroup) else [run.error]
    assert all(isinstance(error, UnsetError) and "root is not set" in str(error) for error in errors)


@pytest.mark.parametrize("mode", MODES)
def test_an_item_that_stops_need_not_have_a_result(wire: Wire, mode: Any) -> None:
    """Its stop is no failure, and the results of the others are there."""

    def stop_at_three(context: Any) -> None:
        if context.item == 3:
            context.stop_process("three")
        else:
            context.found = context.item

    run = wire(items(1, 2, 3), each(stop_at_three, collect={"left": "found"}, **mode)).launch()
    assert (run.outcome.name, run.context.left) == ("STOPPED", [1, 2])


@pytest.mark.parametrize("mode", MODES)
def test_no_items_no_results(wire: Wire, mode: Any) -> None:
    """The lists are there, and empty."""
    loop = each(double, failed="left", collect={"right": "square"}, **mode)
    run = wire(items(), loop).do_activities()
    assert (run.context.left, run.context.right) == ([], [])


def test_what_items_change_is_joined(wire: Wire) -> None:
    """As after a split: one may set a field, two may not differ; the item's field is never joined."""

    def one(context: Any) -> None:
        if context.item == 2:
            context.found = context.item

    run = wire(items(1, 2, 3), each(one, parallel=3)).do_activities()
    assert (run.context.found, run.context.item) == (2, 0)
    run = wire(items(1, 2, 3), each(double, parallel=3)).launch()
    assert isinstance(run.error, JoinConflictError)
    assert str(run.error) == (
        "item 0 and item 1 changed 'square' differently; list its values by `collect`, or leave it without a value"
        " before the for-each: then each item has its own"
    )


def test_the_field_of_an_item_is_never_joined(wire: Wire) -> None:
    """Not even from a for-each in a branch, where items run in order and leave the field behind."""
    loops = {name: each(nothing, name=name) for name in ("mail", "text")}
    run = wire(
        items(1, 2),
        ParallelSplitProcessor(loops, context=Box),
        ParallelSplitProcessor(
            {"deep": SequenceProcessor([loops["mail"]], context=Box), "other": [loops["text"]]}, context=Box
        ),
    ).do_activities()
    assert vars(run.context) == {"items": (1, 2)}


def test_what_is_collected_is_not_joined(wire: Wire) -> None:
    """The field that an item leaves its result in stays as it was before."""
    run = wire(items(1, 2), each(double, parallel=2, collect={"left": "square"})).do_activities()
    assert (run.context.left, run.context.square) == ([2, 4], 0)


def test_items_that_failed_are_not_joined(wire: Wire) -> None:
    """What a failed item changed stays with it."""

    def mark(context: Any) -> None:
        setattr(context, f"seen_{context.item}", True)
        refuse_odd(context)

    run = wire(items(1, 2), each(mark, parallel=2, may_fail=1, collect={"left": "square"})).do_activities()
    assert set(vars(run.context)) == {"items", "left", "seen_2"}
