"""Contexts: new for each run, of every shape, forked and joined."""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar

import pytest
from behaviour.parts import Box, add, fail, stop
from unit.core.conftest import Wire

from iocflow import (
    CONTINUE,
    JoinConflictError,
    ParallelSplitProcessor,
    ProcessContext,
    Processor,
    SequenceProcessor,
    UnsetError,
    activity,
)


def split(context: Any, join: Any = None, **branches: Any) -> Processor[Any]:
    return ParallelSplitProcessor(branches, join=join, context=context, name="split")


def nothing(context: Any) -> None:
    """Change nothing."""


def setting(**fields: Any) -> Callable[[Any], None]:
    """An activity that sets fields."""

    def set_fields(context: Any) -> None:
        for name, value in fields.items():
            setattr(context, name, value)

    return set_fields


# New for each run.


def test_every_run_gets_a_new_context(wire: Wire) -> None:
    """Nothing that one run sets is seen by the next, whether it completed, stopped or failed."""
    seen: list[dict[str, Any]] = []

    def note(context: Box) -> None:
        seen.append(dict(vars(context)))
        context.n = len(seen)

    processor = wire(note, activity(fail, on_error=CONTINUE), stop)
    runs = [processor.launch() for _ in range(3)]
    assert seen == [{}, {}, {}]
    assert len({id(run.context) for run in runs}) == 3
    assert len({run.id for run in runs}) == 3


def test_fifty_runs_at_once_share_nothing(wire: Wire) -> None:
    """Runs of one processor in fifty threads keep to their own context, steps, memo and ids."""
    barrier = threading.Barrier(50)

    def mark(context: Box) -> None:
        barrier.wait(10)
        context.n = context.seed_data
        context.step.memo["n"] = context.n

    def check(context: Box) -> None:
        barrier.wait(10)
        assert context.step.memo == {}
        context.step.memo["n"] = context.n
        barrier.wait(10)
        assert context.step.memo == {"n": context.n}
        assert context.n == context.seed_data
        if context.n % 2:
            raise ValueError(context.n)

    processor = wire(mark, activity(check, on_error=CONTINUE), split(Box, left=mark_left, right=add))
    runs: dict[int, Any] = {}
    threads = [threading.Thread(target=lambda n=n: runs.__setitem__(n, processor.do_activities(n))) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(runs) == list(range(50))
    for n, run in runs.items():
        assert (run.context.n, run.context.left) == (n + 1, n)
        assert run.steps[1].outcome.name == ("HANDLED" if n % 2 else "DONE")
    assert len({run.id for run in runs.values()}) == 50


def mark_left(context: Box) -> None:
    context.left = context.n


def test_a_factory_makes_the_contexts(wire: Wire) -> None:
    """The context may come from a function, a partial or a method: it is called for every run."""
    made: list[Box] = []

    def make(n: int) -> Box:
        context = Box()
        context.n = n
        made.append(context)
        return context

    processor = wire(add, context=functools.partial(make, 5))
    runs = [processor.do_activities() for _ in range(2)]
    assert [run.context.n for run in runs] == [6, 6]
    assert [run.context for run in runs] == made


# Fields.


class Fares(ProcessContext):
    fares: list[int]
    limit: int = 10
    kinds: ClassVar[int] = 3

    @property
    def count(self) -> int:
        return len(self.fares)

    @functools.cached_property
    def total(self) -> int:
        return sum(self.fares)


def test_an_unset_field_is_told_when_it_is_read() -> None:
    """The error names the class and the field; a default is no unset field, and a set one is just read."""
    context = Fares()
    with pytest.raises(UnsetError, match=r"^Fares\.fares is not set \(read before any activity set it\)$"):
        context.fares  # noqa: B018
    assert context.limit == 10
    context.fares = [1]
    assert context.fares == [1]
    del context.fares
    with pytest.raises(UnsetError):
        context.fares  # noqa: B018


def test_a_field_that_does_not_exist_is_another_error() -> None:
    """Neither annotated nor set: a plain AttributeError, no UnsetError."""
    with pytest.raises(AttributeError, match="'Fares' has no field 'fare'") as raised:
        Fares().fare  # type: ignore[attr-defined]  # noqa: B018
    assert not isinstance(raised.value, UnsetError)
    assert (raised.value.name, type(raised.value.obj)) == ("fare", Fares)


@pytest.mark.parametrize("name", ["count", "total"])
def test_a_property_over_an_unset_field_names_the_field(name: str) -> None:
    """The error of the property comes through, and not one about the property."""
    with pytest.raises(UnsetError, match=r"Fares\.fares is not set"):
        getattr(Fares(), name)


def test_inherited_annotations_count() -> None:
    """A field that a base class annotates is unset in the subclass as well."""

    class More(Fares):
        pass

    with pytest.raises(UnsetError, match=r"More\.fares is not set"):
        More().fares  # noqa: B018


def test_next_activity_is_none_until_it_is_set() -> None:
    """Setting None takes a wish back."""
    context = Box()
    assert context.next_activity is None
    context.next_activity = "b"
    assert context.next_activity == "b"
    context.next_activity = None
    assert context.next_activity is None


def test_a_stop_is_seen_on_the_context(wire: Wire) -> None:
    """`stopped` and `stop_reason` tell what was asked, in tests without a run too."""
    context = Box()
    assert (context.stopped, context.stop_reason) == (False, "")
    stop(context)
    assert (context.stopped, context.stop_reason) == (True, "enough")
    assert (Box().stopped, Box.stop_reason) == (False, "")
    run = wire(stop, add).do_activities()
    assert (run.stop_reason, run.context.stopped, run.context.n) == ("enough", True, 0)


# Shapes. Each is run, forked and joined.


@dataclass
class Data(ProcessContext):
    left: int = 0
    right: int = 0
    names: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Slotted(ProcessContext):
    left: int = 0
    right: int = 0
    names: list[str] = field(default_factory=list)


class OwnSlots(ProcessContext):
    __slots__ = ("left", "names", "right")

    def __init__(self) -> None:
        self.left, self.right, self.names = 0, 0, []


class OneSlot(Data):
    __slots__ = "only"  # noqa: PLC0205 - Python allows it


class Own(ProcessContext):
    """Has its own way with attributes."""

    def __init__(self) -> None:
        self.left, self.right, self.names = 0, 0, []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("any_"):
            return name
        raise AttributeError(name)


class Checked(Data):
    """Sets fields through properties, and its `__setattr__` keeps count."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "left" and not isinstance(value, int):
            raise TypeError("left is a number")
        super().__setattr__(name, value)


class NoEquality(Data):
    def __eq__(self, other: object) -> bool:
        raise TypeError("contexts are not compared")

    __hash__ = None  # type: ignore[assignment]


SHAPES = [Data, Slotted, OwnSlots, OneSlot, Own, Checked, NoEquality]


@pytest.mark.parametrize("shape", SHAPES)
def test_contexts_of_every_shape_are_forked_and_joined(wire: Wire, shape: Any) -> None:
    """Dataclasses, slots, own attribute access: branches get copies of the fields, and their changes come back."""

    def go_left(context: Any) -> None:
        context.left += 1
        context.names.append("left")

    def go_right(context: Any) -> None:
        assert context.names == ["before"]
        context.right = 2

    steps = [lambda context: context.names.append("before"), split(shape, l=go_left, r=go_right), go_left]
    run = wire(*steps, context=shape).do_activities()
    assert (run.context.left, run.context.right, run.context.names) == (2, 2, ["before", "left", "left"])
    assert run.context.step.activity == ""


@pytest.mark.parametrize("shape", [Slotted, OwnSlots])
def test_unset_fields_in_slots(shape: Any) -> None:
    """A slot that is not set is left out of a fork, and named when it is read, if it is annotated."""
    context = shape()
    del context.left
    fork = context.fork()
    with pytest.raises(AttributeError, match="left"):
        fork.left  # noqa: B018
    assert fork.right == 0


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
    context = Fares()
    context.fares, context.limit = [1], 5
    fork = context.fork(without={"fares"})
    assert fork.limit == 5
    assert not hasattr(fork, "fares")


def test_a_field_that_cannot_be_copied_is_named(wire: Wire) -> None:
    """The branch fails with a TypeError that says which field it is, and what to do."""
    steps = [setting(lock=threading.Lock()), split(Box, l=add)]
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

    run = wire(setting(lock=lock), split(Sharing, l=use, r=nothing), context=Sharing).do_activities()
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
    run = wire(setting(value=value), split(Box, l=nothing, r=add, s=nothing)).do_activities()
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
    run = wire(setting(value=value), split(Box, l=lambda context: change(context.value), r=nothing)).do_activities()
    assert run.context.value is not value
    both = split(Box, l=lambda context: change(context.value), r=lambda context: context.value.__class__)
    assert both.do_activities  # it is wired


def test_objects_without_equality_count_when_they_are_bound_anew(wire: Wire) -> None:
    """Types without `__eq__` never compare equal to their copies: a change inside of one is not seen, a new one is."""

    def inside(context: Any) -> None:
        context.value.value = 2

    old, new = Plain(1), Plain(3)
    run = wire(setting(value=old), split(Box, l=inside, r=nothing)).do_activities()
    assert (run.context.value, old.value) == (old, 1)
    run = wire(setting(value=old), split(Box, l=setting(value=new), r=nothing)).do_activities()
    assert run.context.value is new


def test_new_fields_are_joined(wire: Wire) -> None:
    """A field that only a branch knows is on the context afterwards, also None."""
    run = wire(split(Box, l=setting(one=1), r=setting(two=None))).do_activities()
    assert vars(run.context) == {"one": 1, "two": None}


@pytest.mark.parametrize(("one", "other"), [(1, 1), ([1], [1]), (Holder(1), Holder(1)), ("a", "a")])
def test_the_same_change_twice_is_no_conflict(wire: Wire, one: Any, other: Any) -> None:
    """Two branches may set one field to equal values."""
    run = wire(split(Box, l=setting(value=one), r=setting(value=other))).do_activities()
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
    run = wire(split(Box, l=setting(a=1, value=one), r=setting(b=2, value=other))).launch()
    assert isinstance(run.error, JoinConflictError)
    assert str(run.error) == "l and r changed 'value' differently; wire a joiner, or use two fields"
    assert vars(run.context) == {}


def test_stop_and_routing_are_never_joined(wire: Wire) -> None:
    """`stopped`, `next_activity` and `step` of a branch stay there: the split's end tells of the stop."""

    def ask(context: Box) -> None:
        context.next_activity = "somewhere"
        context.stop_process("left is enough")

    run = wire(split(Box, l=ask, r=add)).do_activities()
    assert (run.outcome.name, run.context.stopped, run.context.next_activity) == ("STOPPED", False, None)
    assert vars(run.context) == {"n": 1}


def test_the_failures_of_branches_survive_a_failing_join(wire: Wire) -> None:
    """When branches failed and the join of the others fails too, the group holds all of it."""
    run = wire(split(Box, l=fail, one=setting(value=1), two=setting(value=2))).launch()
    assert isinstance(run.error, ExceptionGroup)
    assert [type(part).__name__ for part in run.error.exceptions] == ["BrokenError", "JoinConflictError"]


def test_a_comparison_that_fails_fails_its_branch(wire: Wire) -> None:
    """The trail of all branches is there, and the error is the branch's."""

    class Unequal:
        def __eq__(self, other: object) -> bool:
            raise ValueError("do not compare me")

        __hash__ = None  # type: ignore[assignment]

    run = wire(setting(value=Unequal()), split(Box, l=add, r=nothing)).launch()
    assert [str(part) for part in run.error.exceptions] == ["do not compare me"] * 2  # type: ignore[union-attr]
    assert {step.activity for step in run.steps} >= {"split/l/add", "split/r/nothing"}


# Joiners.


def test_a_joiner_gets_the_forks_that_did_not_fail(wire: Wire) -> None:
    """By branch name, with all their fields; what it returns is the context from now on."""
    seen: list[list[str]] = []

    def join(context: Any, forks: Any) -> Any:
        seen.append(sorted(forks))
        context.n = sum(fork.n for fork in forks.values())

    wire(split(Box, join, l=add, r=[add, add], s=fail), on_error=CONTINUE).do_activities()
    assert seen == [["l", "r"]]
    run = wire(split(Box, lambda context, forks: forks["r"], l=add, r=[add, add]), add).do_activities()
    assert run.context.n == 3


def test_a_joiner_is_not_asked_without_branches(wire: Wire) -> None:
    """When all branches failed there is nothing to join."""
    asked: list[object] = []
    wire(split(Box, lambda context, forks: asked.append(forks), l=fail, r=fail)).launch()
    assert asked == []


def test_a_joiner_may_stop(wire: Wire) -> None:
    """What it asks for counts for the split, and not for the activity after it."""
    run = wire(split(Box, lambda context, forks: context.stop_process("joined"), l=add), add).do_activities()
    assert [(step.activity, step.outcome.name) for step in run.steps][-1] == ("split", "STOPPED")
    assert (run.outcome.name, run.stop_reason, run.context.n) == ("STOPPED", "joined", 0)


def test_what_a_joiner_may_not_return(wire: Wire) -> None:
    """Anything but a context or None is a TypeError of the split."""
    run = wire(split(Box, lambda context, forks: 7, l=add)).launch()
    assert isinstance(run.error, TypeError)
    assert str(run.error) == "the joiner of split returned a int: a context or None is wanted"


# New contexts in the middle of a run.


def test_a_returned_context_takes_over(wire: Wire) -> None:
    """The next activity, its handlers and the run see the new one; the old one belongs to no run any more."""
    contexts: list[Any] = []

    def swap(context: Box) -> Box:
        contexts.append(context)
        other = Box()
        other.n = context.n + 10
        return other

    def look(context: Box) -> None:
        contexts.append(context)
        assert context.step.activity == "look"

    run = wire(add, swap, look, swap, add).do_activities()
    assert run.context.n == 22
    assert contexts[1] is contexts[2] is not contexts[0]


def test_a_stop_before_the_swap_counts(wire: Wire) -> None:
    """An activity that asks for a stop and returns a new context stops the run, with its reason."""

    def swap(context: Box) -> Box:
        context.stop_process("swapped")
        return Box()

    for run in (wire(swap, add).do_activities(), wire(SequenceProcessor([swap, add], context=Box)).do_activities()):
        assert (run.outcome.name, run.stop_reason, run.context.stopped, run.context.n) == (
            "STOPPED",
            "swapped",
            True,
            0,
        )


def test_a_stop_on_the_new_context_counts(wire: Wire) -> None:
    """The same when it asks on the context that it returns."""

    def swap(context: Box) -> Box:
        other = Box()
        other.nothing_to_do()
        return other

    run = wire(swap, add).do_activities()
    assert (run.outcome.name, run.idle, run.stop_reason) == ("STOPPED", True, "nothing to do")


def test_the_same_context_returned_is_fine(wire: Wire) -> None:
    """Returning the context that came in keeps it."""
    contexts: set[int] = set()

    def same(context: Box) -> Box:
        contexts.add(id(context))
        return context

    assert wire(same, add, same).do_activities().context.n == 1
    assert len(contexts) == 1


@pytest.mark.parametrize("result", [7, True, [], object(), Box, b"yes", iter([])])
def test_what_an_activity_may_not_return(wire: Wire, result: Any) -> None:
    """Anything but a context, a str or None is a TypeError that names the activity and the type."""
    error = wire(lambda context: result).launch().error
    assert isinstance(error, TypeError)
    assert str(error) == (
        f"lambda returned a {type(result).__name__}: a context, a str (a named result) or None is wanted"
    )


def test_subclasses_of_str_are_named_results(wire: Wire) -> None:
    """A StrEnum's member is a str, and recorded."""

    class Answer(StrEnum):
        YES = "yes"

    assert wire(lambda context: Answer.YES).do_activities().steps[0].result == "yes"


@pytest.fixture(autouse=True)
def _no_threads_left() -> Iterator[None]:
    """Branches leave no thread."""
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("iocflow-branch")] == []
