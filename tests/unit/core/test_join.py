"""Branches get copies of the fields, and what they changed comes back, once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from behaviour.parts import Box, add, fail
from unit.core.conftest import Wire
from unit.core.kit import nothing, setting, split

from iocflow import (
    CONTINUE,
    JoinConflictError,
    ProcessContext,
)

# Forks.


def test_a_fork_shares_no_field() -> None:
    """Fields are copied deeply, references among them stay references among the copies."""
    context: Any = Box()
    context.one = [1, [2]]
    context.same = context.one
    context.me = {"context": context}
    fork = context.fork()
    assert fork.one == [1, [2]]
    assert fork.one is not context.one
    assert fork.one[1] is not context.one[1]
    assert fork.same is fork.one
    assert fork.me["context"] is fork


def test_a_fork_leaves_out_what_it_is_told_to() -> None:
    """A field in `without` is unset in the fork."""
    context = Box()
    context.items, context.n = (1,), 5
    fork = context.fork(without={"items"})
    assert vars(fork) == {"n": 5}


def test_a_field_that_cannot_be_copied_is_named(wire: Wire) -> None:
    """The branch fails with a TypeError that says which field it is, and what to do."""
    steps = [setting(lock=threading.Lock()), split(l=add)]
    run = wire(*steps).launch()
    (error,) = run.error.exceptions  # type: ignore[union-attr]
    assert isinstance(error, TypeError)
    assert str(error).startswith("Box.lock cannot be copied for a branch or item (cannot pickle '_thread.lock' object)")
    assert "override `fork`" in str(error)


def test_fork_can_be_overridden_to_share(wire: Wire) -> None:
    """A context may share what is costly to copy and only read."""

    class Sharing(ProcessContext):
        lock: Any
        n: int = 0

        def fork(self, *, without: Any = frozenset()) -> Sharing:
            twin = super().fork(without={*without, "lock"})
            twin.lock = self.lock
            return twin

    lock = threading.Lock()

    def use(context: Sharing) -> None:
        with context.lock:
            context.n += 1

    run = wire(setting(lock=lock), split(context=Sharing, l=use, r=nothing), context=Sharing).do_activities()
    assert (run.context.n, run.context.lock) == (1, lock)


# Joins.


class Plain:
    """Has no `__eq__`."""

    def __init__(self, value: object = None) -> None:
        self.value = value


@dataclass
class Holder:
    """Equal when its parts are, and one of them may have no `__eq__`."""

    part: Any
    n: int = 0
    cache: Any = field(default=None, compare=False)


class Array:
    """Compares by element, as arrays and tables do; a table's `any` answers by column."""

    def __init__(self, *items: Any, columns: bool = False) -> None:
        self.items, self.columns, self.shape = list(items), columns, (len(items),)

    def _each(self, other: Any, decide: Callable[[Any, Any], bool]) -> Array:
        return Array(*map(decide, self.items, other.items), columns=self.columns)

    def __ne__(self, other: object) -> Any:
        return self._each(other, lambda a, b: a != b)

    def __eq__(self, other: object) -> Any:
        return self._each(other, lambda a, b: a == b)

    def __and__(self, other: Array) -> Array:
        return self._each(other, lambda a, b: a and b)

    def __invert__(self) -> Array:
        return self._each(self, lambda a, b: not a)

    def any(self) -> Any:
        return Array(any(self.items)) if self.columns else any(self.items)

    def __bool__(self) -> bool:
        raise ValueError("the truth of an array is ambiguous")

    __hash__ = None  # type: ignore[assignment]


VALUES: list[Any] = [
    [1, [2]],
    {"a": {"b": 1}},
    (1, [2]),
    {1, 2},
    deque([1]),
    Plain(1),
    [Plain(1), {"a": Plain(2)}],
    {Plain(1)},
    Holder(1),
    Holder(Plain(1)),
    [Holder([Plain(1)])],
    Array(1, float("nan")),
    Array(1, float("nan"), columns=True),
    Decimal("NaN"),
    float("nan"),
    [float("nan")],
    iter([1, 2]),
    object(),
    Exception("x"),
    lambda: None,
    None,
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_untouched_fields_are_not_joined(wire: Wire, value: Any) -> None:
    """A field that no branch touched stays the very object it was, whatever its type, and is no conflict."""
    run = wire(setting(value=value), split(l=nothing, r=add, s=nothing)).do_activities()
    assert run.context.value is value
    assert run.context.n == 1


def change(value: Any) -> None:
    """Change `value` in place."""
    match value:
        case list():
            change(value[-1]) if value and not isinstance(value[-1], int) else value.append(3)
        case dict():
            value["new"] = 1
        case set():
            value.add(3)
        case deque():
            value.append(3)
        case Holder():
            value.n += 1
        case Array():
            value.items[0] = 7


@pytest.mark.parametrize(
    "value",
    [
        [1],
        [1, [2]],
        {"a": 1},
        {1, 2},
        deque([1]),
        Holder(1),
        Holder(Plain(1)),
        [Holder(2)],
        Array(1, 2),
        Array(1, 2, columns=True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_changes_in_place_are_joined(wire: Wire, value: Any) -> None:
    """A field whose object a branch changed comes back from that branch."""
    run = wire(setting(value=value), split(l=lambda context: change(context.value), r=nothing)).do_activities()
    assert run.context.value is not value
    both = split(l=lambda context: change(context.value), r=lambda context: context.value.__class__)
    assert both.do_activities  # it is wired


def test_objects_without_equality_count_when_they_are_bound_anew(wire: Wire) -> None:
    """Types without `__eq__` never compare equal to their copies: a change inside of one is not seen, a new one is."""

    def inside(context: Any) -> None:
        context.value.value = 2

    old, new = Plain(1), Plain(3)
    run = wire(setting(value=old), split(l=inside, r=nothing)).do_activities()
    assert (run.context.value, old.value) == (old, 1)
    run = wire(setting(value=old), split(l=setting(value=new), r=nothing)).do_activities()
    assert run.context.value is new


def test_new_fields_are_joined(wire: Wire) -> None:
    """A field that only a branch knows is on the context afterwards, also None."""
    run = wire(split(l=setting(one=1), r=setting(two=None))).do_activities()
    assert vars(run.context) == {"one": 1, "two": None}


@pytest.mark.parametrize(("one", "other"), [(1, 1), ([1], [1]), (Holder(1), Holder(1)), ("a", "a")])
def test_the_same_change_twice_is_no_conflict(wire: Wire, one: Any, other: Any) -> None:
    """Two branches may set one field to equal values."""
    run = wire(split(l=setting(value=one), r=setting(value=other))).do_activities()
    assert run.context.value == one


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, True),
        ([1], (1,)),
        (Plain(1), Plain(1)),
        (Holder(Plain()), Holder(Plain())),
        (Array(1), Array(2)),
        (Array(1), Array(1, 2)),
    ],
)
def test_different_changes_are_a_conflict(wire: Wire, one: Any, other: Any) -> None:
    """Branches and field are named, and nothing at all of the branches is joined."""
    run = wire(split(l=setting(a=1, value=one), r=setting(b=2, value=other))).launch()
    assert isinstance(run.error, JoinConflictError)
    assert str(run.error) == "l and r changed 'value' differently; wire a joiner, or use two fields"
    assert vars(run.context) == {}


def test_stop_and_routing_are_never_joined(wire: Wire) -> None:
    """`next_activity` and `step` of a branch stay there, `stopped` and the reason come by the split's end alone."""

    def ask(context: Box) -> None:
        context.next_activity = "somewhere"
        context.stop_process("left is enough")

    run = wire(split(l=ask, r=add)).do_activities()
    assert (run.outcome.name, run.context.stopped, run.context.next_activity) == ("STOPPED", True, None)
    assert vars(run.context) == {"n": 1, "stopped": True, "stop_reason": "left is enough"}


def test_the_failures_of_branches_survive_a_failing_join(wire: Wire) -> None:
    """When branches failed and the join of the others fails too, the group holds all of it."""
    run = wire(split(l=fail, one=setting(value=1), two=setting(value=2))).launch()
    assert isinstance(run.error, ExceptionGroup)
    assert [type(part).__name__ for part in run.error.exceptions] == ["BrokenError", "JoinConflictError"]


def test_a_comparison_that_fails_fails_its_branch(wire: Wire) -> None:
    """The trail of all branches is there, and the error is the branch's."""

    class Unequal:
        def __eq__(self, other: object) -> bool:
            raise ValueError("do not compare me")

        __hash__ = None  # type: ignore[assignment]

    run = wire(setting(value=Unequal()), split(l=add, r=nothing)).launch()
    assert [str(part) for part in run.error.exceptions] == ["do not compare me"] * 2  # type: ignore[union-attr]
    assert {step.activity for step in run.steps} >= {"split/l/add", "split/r/nothing"}


# Joiners.


def test_a_joiner_gets_the_forks_that_did_not_fail(wire: Wire) -> None:
    """By branch name, with all their fields; what it returns is the context from now on."""
    seen: list[list[str]] = []

    def join(context: Any, forks: Any) -> Any:
        seen.append(sorted(forks))
        context.n = sum(fork.n for fork in forks.values())

    wire(split(join=join, l=add, r=[add, add], s=fail), on_error=CONTINUE).do_activities()
    assert seen == [["l", "r"]]
    run = wire(split(join=lambda context, forks: forks["r"], l=add, r=[add, add]), add).do_activities()
    assert run.context.n == 3


def test_a_joiner_is_not_asked_without_branches(wire: Wire) -> None:
    """When all branches failed there is nothing to join."""
    asked: list[object] = []
    wire(split(join=lambda context, forks: asked.append(forks), l=fail, r=fail)).launch()
    assert asked == []


def test_a_joiner_may_stop(wire: Wire) -> None:
    """What it asks for counts for the split, and not for the activity after it."""
    run = wire(split(join=lambda context, forks: context.stop_process("joined"), l=add), add).do_activities()
    assert [(step.activity, step.outcome.name) for step in run.steps][-1] == ("split", "STOPPED")
    assert (run.outcome.name, run.stop_reason, run.context.n) == ("STOPPED", "joined", 0)


def test_what_a_joiner_may_not_return(wire: Wire) -> None:
    """Anything but a context or None is a TypeError of the split."""
    run = wire(split(join=lambda context, forks: 7, l=add)).launch()
    assert isinstance(run.error, TypeError)
    assert str(run.error) == "the joiner of split returned a int: a context or None is wanted"


@pytest.fixture(autouse=True)
def _no_threads_left() -> Iterator[None]:
    """Branches leave no thread."""
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("iocflow-branch")] == []
