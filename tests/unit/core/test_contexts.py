"""Contexts: new for each run, of every shape, and taken over by others."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

import pytest
from behaviour.parts import Box, add, fail, stop
from unit.core.conftest import Wire
from unit.core.kit import split

from iocflow import (
    CONTINUE,
    ProcessContext,
    SequenceProcessor,
    UnsetError,
    activity,
)

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

    processor = wire(mark, activity(check, on_error=CONTINUE), split(left=mark_left, right=add))
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

    steps = [lambda context: context.names.append("before"), split(context=shape, l=go_left, r=go_right), go_left]
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
