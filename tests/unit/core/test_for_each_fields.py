"""For-each: the fields it is told to use, and what becomes of those that its items set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from behaviour.parts import Box, add
from unit.core.conftest import Wire
from unit.core.kit import each
from unit.core.test_for_each import double, items

from iocflow import CONTINUE, ForEachProcessor, JoinConflictError, ProcessContext, UnsetError, activity
from iocflow.for_each import field_faults


def test_scratch_fields_are_the_items_own(wire: Wire) -> None:
    """A field without a value before that every item sets is no conflict: where they differ, it stays without one."""

    def scratch(context: Any) -> None:
        context.page = [context.item]
        context.same = "same"
        context.square = 2 * context.page[0]

    loop = each([scratch, double], parallel=2, collect={"right": "square"})
    run = wire(items(1, 2, 3), loop).do_activities()
    assert vars(run.context) == {"items": (1, 2, 3), "right": [2, 4, 6], "same": "same"}
    with pytest.raises(AttributeError, match="no field 'page'"):
        _ = run.context.page
    run = wire(items(1), loop).do_activities()
    assert run.context.page == [1]


def add_item(context: Any) -> None:
    context.n += context.item


def append_item(context: Any) -> None:
    context.seen.append(context.item)


def set_for_some(context: Any) -> None:
    if context.item != 2:
        context.found = context.item


@pytest.mark.parametrize("body", [add_item, append_item, set_for_some])
def test_what_would_be_lost_is_a_conflict(wire: Wire, body: Any) -> None:
    """A field that had a value, the class's own too, may be a sum; one that not all items set may be a find."""
    run = wire(items(1, 2, 3), lambda context: setattr(context, "seen", []), each(body, parallel=3)).launch()
    assert isinstance(run.error, JoinConflictError)
    assert "item 0 and item" in str(run.error)
    assert vars(run.context) == {"items": (1, 2, 3), "seen": []}


class Plain(ProcessContext):
    """Fields with a default, and one without."""

    items: tuple[int, ...] = (1, 2, 3, 4)
    item: int
    found: int
    number: int = 0
    many: tuple[int, ...] = ()
    results: list[Any]
    bad: list[int]


@dataclass
class Data(ProcessContext):
    """The same, where each object has the defaults as its own values."""

    items: tuple[int, ...] = (1, 2, 3, 4)
    item: int = 0
    found: int = field(init=False)
    number: int = 0
    many: tuple[int, ...] = field(default_factory=tuple)
    results: list[Any] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Slotted(ProcessContext):
    """The same, where the class has no default."""

    items: tuple[int, ...] = (1, 2, 3, 4)
    item: int = 0
    found: int = field(init=False)
    number: int = 0
    many: tuple[int, ...] = field(default_factory=tuple)
    results: list[Any] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)


FIND: dict[str, Any] = {
    "found": lambda context: setattr(context, "found", 4 // (context.item - 3)),
    "number": lambda context: setattr(context, "number", context.number + 4 // (context.item - 3)),
    "many": lambda context: setattr(context, "many", (*context.many, 4 // (context.item - 3))),
}


@pytest.mark.parametrize("parallel", [0, 1, 3])
@pytest.mark.parametrize("made", [Plain, Data, Slotted])
@pytest.mark.parametrize(
    ("source", "results", "bad"),
    [("found", [-2, -4, 4], [3]), ("number", [-2, -4, 0, 4], []), ("many", [(-2,), (-4,), (), (4,)], [])],
)
def test_no_item_has_the_result_of_another(
    wire: Wire, parallel: int, made: Any, source: str, results: list[Any], bad: list[int]
) -> None:
    """After a handled failure the default of the class is collected; an item without any value has failed."""
    body = activity(FIND[source], on_error=CONTINUE, name="find")
    options: dict[str, Any] = {"may_fail": 1, "failed": "bad", "collect": {"results": source}}
    run = wire(each(body, parallel=parallel, context=made, **options), context=made).launch()
    assert (run.outcome.name, run.context.results, run.context.bad) == ("COMPLETED", results, bad)
    assert [row.outcome.name for row in run.steps] == ["DONE", "DONE", "HANDLED", "DONE", "DONE"]


@pytest.mark.parametrize("parallel", [0, 3])
def test_too_many_unset_results_are_told(wire: Wire, parallel: int) -> None:
    """Too many items without a result make the whole fail, and the message says what to do about it."""
    body = activity(FIND["found"], on_error=CONTINUE, name="find")
    run = wire(each(body, parallel=parallel, context=Plain, collect={"results": "found"}), context=Plain).launch()
    (error,) = run.error.exceptions if isinstance(run.error, ExceptionGroup) else [run.error]
    assert isinstance(error, UnsetError)
    assert str(error).startswith("each collects what an item left unset, give it a default: Plain.found is not set")


def test_the_items_are_left_as_they_are(wire: Wire) -> None:
    """In order, an item may collect the list that it is of."""
    run = wire(items(1, 2), each(add, collect={"right": "items"})).do_activities()
    assert run.context.right == [(1, 2), (1, 2)]


def test_the_seed_is_left_as_it_is(wire: Wire) -> None:
    """It is no item's own, so that it stays when it is collected."""
    run = wire(items(1, 2), each(add, collect={"right": "seed_data"})).launch(7)
    assert (run.context.right, run.context.seed_data) == ([7, 7], 7)


OWN = ["seed_data", "step", "stopped", "stop_reason", "next_activity", "stop_process", "fork", "_asked", "_mine", "a b"]


WRONG_FIELDS: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    ("items", {"as_": "items"}, [("as", "'items' holds the items already; name another field")]),
    ("items", {"failed": "items"}, [("failed", "'items' holds the items already; name another field")]),
    ("items", {"collect": {"items": "n"}}, [("collect", "'items' holds the items already; name another field")]),
    ("items", {"failed": "item"}, [("failed", "'item' holds the item already; name another field")]),
    ("items", {"collect": {"item": "n"}}, [("collect", "'item' holds the item already; name another field")]),
    (
        "items",
        {"failed": "left", "collect": {"left": "n"}},
        [("collect", "'left' holds the items that failed already; name another field")],
    ),
    (
        "items",
        {"collect": {"left": "left"}},
        [("collect", "'left' is a list that the for-each fills; name the field of an item's result")],
    ),
    (
        "items",
        {"collect": {"left": "right", "right": "n"}},
        [("collect", "'right' is a list that the for-each fills; name the field of an item's result")],
    ),
    (
        "items",
        {"failed": "bad", "collect": {"left": "bad"}},
        [("collect", "'bad' is a list that the for-each fills; name the field of an item's result")],
    ),
    ("step", {"as_": "stopped"}, [("for-each", "'step' is no field"), ("as", "'stopped' is no field")]),
    *(("items", {"as_": name}, [("as", f"{name!r} is no field that is yours to set; name another")]) for name in OWN),
    *(("items", {"failed": name}, [("failed", f"{name!r} is no field")]) for name in OWN),
    *(("items", {"collect": {name: "n"}}, [("collect", f"{name!r} is no field")]) for name in OWN),
    *(("items", {"collect": {"left": name}}, [("collect", f"{name!r} is no field")]) for name in OWN[1:]),
    *((name, {}, [("for-each", f"{name!r} is no field")]) for name in OWN[1:]),
]


@pytest.mark.parametrize(("field", "options", "told"), WRONG_FIELDS)
def test_fields_that_cannot_work_are_refused(field: str, options: dict[str, Any], told: list[tuple[str, str]]) -> None:
    """Nothing is written over items, seed, the engine's own or each other; all is told, by the option it is about."""
    given = {"as_": "item", "failed": None, "collect": {}, **options}
    faults = list(field_faults(field, **given))
    assert [option for option, _ in faults] == [option for option, _ in told]
    assert all(fault.startswith(text) for (_, fault), (_, text) in zip(faults, told, strict=True))
    with pytest.raises(ValueError, match=f"^each: {told[0][0]}: ") as raised:
        ForEachProcessor(field, add, name="each", context=Box, **given)
    assert str(raised.value) == f"each: {told[0][0]}: {faults[0][1]}"


def test_the_seed_may_be_the_items(wire: Wire) -> None:
    """It is read and not written, and so it may be collected."""

    class Listed(Box):
        seed_data: list[int]  # type: ignore[assignment]

    loop = ForEachProcessor("seed_data", add, as_="item", context=Listed, name="each", collect={"right": "item"})
    assert wire(loop, context=Listed).do_activities([1, 2]).context.right == [1, 2]
