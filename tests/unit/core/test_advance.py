"""`advance` by itself: pure, plain data, and what it does where the inline engine never goes."""

from __future__ import annotations

import ast
import copy
import json
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from behaviour.composites import COMPOSITES
from behaviour.parts import Box, Case, add, fail, go_left, seq, split, yes
from behaviour.sequences import SEQUENCES

import iocflow.advance
import iocflow.inline_loop
import iocflow.position
from iocflow import CONTINUE, ForEachProcessor, Processor, Retry, SequenceProcessor, activity
from iocflow.advance import advance, start
from iocflow.errors import ErrorRecord, record_of
from iocflow.plan import Plan, Position, Reply

PLANS: list[Case] = [*SEQUENCES, *COMPOSITES]


class BrokenHereError(Exception):
    """What the made-up replies of this module report."""


def broken(message: str = "x") -> ErrorRecord:
    return record_of(BrokenHereError, message)


def plan_of(*steps: Any, **options: Any) -> Plan:
    return SequenceProcessor(steps, **{"context": Box, "name": "main", **options}).plan


def inner(*steps: Any, **options: Any) -> Processor[Any]:
    return SequenceProcessor(steps, **{"context": Box, "name": "inner", **options})


def walk(plan: Plan, replies: list[Reply], *, seeded: bool = False) -> tuple[list[str], list[str], Position]:
    """Go through a plan: what was commanded, the rows of the trail, and the last position."""
    commands, rows = [], []
    command, position = advance(plan, start(plan, seeded=seeded), None)
    for reply in [*replies, None]:
        commands.append(f"{command.get('mode', command['do'])} {command.get('path', '')}".strip())
        if reply is None:
            break
        command, position = advance(plan, position, reply)
        rows += [f"{row['path']} {row['outcome']}" for row in position["ended"]]
    return commands, rows, position


# Pure.


@pytest.mark.parametrize("case", PLANS, ids=lambda case: case.name)
def test_advance_changes_nothing_that_it_is_given(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan, position and reply are as before after every call, and the command can be had again at any time."""
    calls = 0

    def watched(plan: Plan, position: Position, reply: Reply | None) -> Any:
        nonlocal calls
        calls += 1
        before = copy.deepcopy([plan, position, reply])
        command, moved = advance(plan, position, reply)
        assert [plan, position, reply] == before
        kept = copy.deepcopy([command, moved])
        for _ in range(2):
            again, same = advance(plan, moved, None)
            assert [again, same] == kept
            assert same is moved
        assert json.loads(json.dumps([command, moved])) == json.loads(json.dumps(kept))
        return command, moved

    monkeypatch.setattr(iocflow.inline_loop, "advance", watched)
    case.build(observers=[lambda event: None]).launch(case.seed)
    assert calls > 0


@pytest.mark.parametrize("case", PLANS, ids=lambda case: case.name)
def test_the_engine_changes_nothing_of_a_position(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an engine stored at any point is still as it was when the run has ended."""
    kept: list[tuple[Any, Any]] = []

    def storing(plan: Plan, position: Position, reply: Reply | None) -> Any:
        command, moved = advance(plan, position, reply)
        kept.append((moved, copy.deepcopy(moved)))
        return command, moved

    monkeypatch.setattr(iocflow.inline_loop, "advance", storing)
    case.build(observers=[lambda event: None]).launch(case.seed)
    assert all(moved == stored for moved, stored in kept)


@pytest.mark.parametrize("module", [iocflow.advance, iocflow.position])
def test_advance_imports_nothing_that_acts(module: ModuleType) -> None:
    """No clock, thread, random number or I/O is within its reach, nor a context, and it iterates over no set."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    plain = {node.names[0].name for node in ast.walk(tree) if isinstance(node, ast.Import)}
    assert modules <= {"__future__", "fractions", "typing", "iocflow.errors", "iocflow.plan", "iocflow.position"}
    assert plain == set()
    loops = [node.iter for node in ast.walk(tree) if isinstance(node, ast.For | ast.comprehension)]
    assert not any(isinstance(node, ast.Set | ast.SetComp) for node in loops)


def test_the_command_can_be_had_from_a_stored_position() -> None:
    """A position is all that another process needs: the command, and the way on from there, are the same."""
    case = next(case for case in COMPOSITES if case.name == "as many items as may fail are kept apart")
    plan = case.build().plan
    rng = random.Random(7)
    command, position = advance(plan, start(plan), None)
    for _ in range(200):
        stored = json.loads(json.dumps(position))
        assert json.dumps(advance(plan, stored, None)[0]) == json.dumps(command)
        if command["do"] == "end":
            break
        replies: dict[str, Reply] = {
            "items": {"count": 4},
            "execute": {} if rng.random() < 0.7 else {"error": broken()},
        }
        reply = replies.get(command.get("mode", ""), {})
        here = advance(plan, position, reply)
        there = advance(plan, stored, json.loads(json.dumps(reply)))
        assert json.dumps(here) == json.dumps(there)
        command, position = here
    assert command["do"] == "end"


# Unwinding: what cancel and deadline ask for.


def test_unwind_runs_every_finally_from_the_inside_out() -> None:
    """No handler is asked, nothing else runs, and the run ends as it was told to."""
    middle = SequenceProcessor([inner(add, yes, finally_=[go_left])], context=Box, name="middle", finally_=[yes])
    plan = plan_of(middle, add, finally_=[add], on_error=CONTINUE)
    commands, rows, position = walk(plan, [{}, {"unwind": "STOPPED"}, {}, {}, {}])
    assert commands == [
        "execute middle/inner/add",
        "execute middle/inner/yes",
        "execute middle/inner/go-left",
        "execute middle/yes",
        "execute add",
        "end",
    ]
    assert position["end"] == {"outcome": "STOPPED", "error": None, "raises": False, "last": None}
    assert rows == ["middle/inner/add DONE", "middle/inner/go-left DONE", "middle/yes DONE", "add DONE"]


@pytest.mark.parametrize(
    ("steps", "replies"),
    [
        ([add], [{"unwind": "FAILED"}]),
        ([activity(fail, on_error=CONTINUE)], [{"error": broken()}, {"unwind": "FAILED"}]),
        (
            [activity(fail, on_error=CONTINUE)],
            [{"error": broken()}, {"decision": "retry", "delay": 5}, {"unwind": "FAILED"}],
        ),
        ([ForEachProcessor("items", add, as_="item", context=Box)], [{"unwind": "FAILED"}]),
        ([ForEachProcessor("items", add, as_="item", context=Box)], [{"count": 3}, {}, {"unwind": "FAILED"}]),
        ([split({"l": add, "r": add})], [{"unwind": "FAILED"}]),
    ],
)
def test_unwind_answers_every_command(steps: Any, replies: list[Reply]) -> None:
    """In the middle of an activity, a handler, a delay, items or a fork: what follows is `finally`, then the end."""
    plan = plan_of(*steps, finally_=[go_left])
    commands, _, position = walk(plan, [*replies, {}])
    assert commands[-2:] == ["execute go-left", "end"]
    assert position["end"] is not None
    assert position["end"]["outcome"] == "FAILED"


def test_unwind_while_seeding_runs_no_finally() -> None:
    """There is nothing to clean up yet."""
    commands, _, position = walk(plan_of(add, finally_=[add]), [{"unwind": "STOPPED"}], seeded=True)
    assert commands == ["seed main", "end"]
    assert position["end"] is not None
    assert position["end"]["outcome"] == "STOPPED"


def test_unwind_within_finally_leaves_that_part_and_goes_on() -> None:
    """The part of `finally` that is under way is given up, the others run."""
    commands, _, position = walk(plan_of(add, finally_=[yes, go_left]), [{}, {"unwind": "STOPPED"}, {}])
    assert commands == ["execute add", "execute yes", "execute go-left", "end"]
    assert position["end"] is not None
    assert position["end"]["outcome"] == "STOPPED"


def test_unwind_runs_all_of_what_a_finally_nests() -> None:
    """Processors in a `finally` are run whole, and what comes after them."""
    deep = SequenceProcessor([inner(yes, yes), yes], context=Box, name="deep")
    plan = plan_of(add, finally_=[deep, go_left])
    commands, rows, position = walk(plan, [{"unwind": "CANCELLED"}, {}, {}, {}, {}])
    assert commands == [
        "execute add", "execute deep/inner/yes", "execute deep/inner/yes", "execute deep/yes", "execute go-left", "end",
    ]  # fmt: skip
    assert rows == [
        "deep/inner/yes DONE", "deep/inner/yes DONE", "deep/inner DONE", "deep/yes DONE", "deep DONE", "go-left DONE",
    ]  # fmt: skip
    assert position["end"] is not None
    assert position["end"]["outcome"] == "CANCELLED"


def test_unwind_within_what_a_finally_nests_goes_on_behind_it() -> None:
    """A processor in `finally` that is under way is given up after its own `finally`; the other parts run."""
    deep = SequenceProcessor([inner(yes, yes, finally_=[add]), yes], context=Box, name="deep")
    plan = plan_of(add, finally_=[deep, go_left])
    commands, rows, position = walk(plan, [{}, {"unwind": "CANCELLED"}, {}, {}])
    assert commands == ["execute add", "execute deep/inner/yes", "execute deep/inner/add", "execute go-left", "end"]
    assert rows == ["add DONE", "deep/inner/add DONE", "go-left DONE"]
    assert position["end"] is not None
    assert position["end"]["outcome"] == "CANCELLED"


def test_a_failure_while_unwinding_makes_it_failed() -> None:
    """A `finally` inside that fails makes the whole run FAILED, with its error, and no handler is asked."""
    plan = plan_of(inner(add, finally_=[fail]), finally_=[go_left], on_error=CONTINUE)
    commands, rows, position = walk(plan, [{"unwind": "STOPPED"}, {"error": broken("in finally")}, {}])
    assert commands == ["execute inner/add", "execute inner/fail", "execute go-left", "end"]
    assert rows == ["inner/fail FAILED", "go-left DONE"]
    end = position["end"]
    assert end is not None
    assert end["error"] is not None
    assert (end["outcome"], end["error"]["message"]) == ("FAILED", "in finally")


def test_a_branch_is_unwound_by_itself() -> None:
    """A child position is a thread of control of its own: it ends as told, and its parent gets that end."""
    plan = plan_of(split({"l": [add, yes], "r": add}), on_error=CONTINUE)
    command, position = advance(plan, start(plan), None)
    ends = []
    for child in command["children"]:
        _, moved = advance(plan, child, {"unwind": "STOPPED"})
        ends.append(moved["end"])
    command, position = advance(plan, position, {"ends": ends})  # type: ignore[typeddict-item]
    assert command["mode"] == "join"
    command, position = advance(plan, position, {})
    assert command["end"]["outcome"] == "STOPPED"


# Single moves.


def test_delays_are_commands() -> None:
    """A retry with a delay is a `sleep` between two attempts, so that an engine may do other things meanwhile."""
    plan = plan_of(activity(fail, on_error=CONTINUE))
    command, position = advance(plan, start(plan), {"error": broken()})
    command, position = advance(plan, position, {"decision": "retry", "delay": 2.5})
    assert command == {"do": "sleep", "delay": 2.5}
    command, position = advance(plan, position, {})
    assert (command["mode"], command["attempt"]) == ("execute", 2)
    command, position = advance(plan, position, {"error": broken()})
    command, position = advance(plan, position, {"decision": "retry", "delay": Retry().delay})
    assert (command["mode"], command["attempt"]) == ("execute", 3)


def test_an_item_is_bound_with_its_first_command_only() -> None:
    """Each item's first command asks for the item to be put into its field; its retries do not."""
    each = ForEachProcessor("items", [activity(fail, on_error=CONTINUE), yes], as_="item", context=Box, name="each")
    plan = plan_of(each)
    binds = []
    command, position = advance(plan, start(plan), {"count": 2})
    for reply in [{"error": broken()}, {"decision": "retry"}, {}, {}, {}, {}]:
        binds.append((command.get("mode"), command.get("bind")))
        command, position = advance(plan, position, reply)  # type: ignore[arg-type]
    assert binds == [
        ("execute", [("each", 0)]),
        ("handle", []),
        ("execute", []),
        ("execute", []),
        ("execute", [("each", 1)]),
        ("execute", []),
    ]
    assert command["do"] == "end"


@pytest.mark.parametrize(
    ("may_fail", "count", "allowed"),
    [
        (0, 10, 0),
        (3, 10, 3),
        ("10%", 10, 1),
        ("10%", 9, 0),
        ("4.35%", 10_000, 435),
        ("0.07%", 10_000, 7),
        ("100%", 7, 7),
        ("250%", 2, 5),
    ],
)
@pytest.mark.parametrize("parallel", [0, 2])
def test_shares_are_counted_exactly(may_fail: int | str, count: int, allowed: int, parallel: int) -> None:
    """As many items may fail as the number says, or the share of all items, rounded down."""
    each = ForEachProcessor("items", add, as_="item", may_fail=may_fail, parallel=parallel, context=Box, name="each")
    for lost, outcome in ((min(allowed, count), "COMPLETED"), (allowed + 1, "FAILED")):
        if lost > count:
            continue
        command, position = advance(each.plan, start(each.plan), {"count": count})
        if parallel:
            failed = {"outcome": "FAILED", "error": broken(), "raises": False, "last": None}
            done = {"outcome": "COMPLETED", "error": None, "raises": False, "last": None}
            command, position = advance(each.plan, position, {"ends": [failed] * lost + [done] * (count - lost)})  # type: ignore[list-item]
            command, position = advance(each.plan, position, {})
        else:
            for i in range(count):
                if command["do"] != "end":
                    command, position = advance(each.plan, position, {"error": broken()} if i < lost else {})
        assert command["do"] == "end"
        assert command["end"]["outcome"] == outcome


def test_a_position_stays_small() -> None:
    """A few hundred bytes a frame, however many steps or items were gone through."""
    each = ForEachProcessor("items", [add, add], as_="item", context=Box, name="each")
    plan = plan_of(each, *[activity(add, name=f"step-{i}") for i in range(500)])
    command, position = advance(plan, start(plan), {"count": 500})
    largest = 0
    while command["do"] != "end":
        command, position = advance(plan, position, {})
        largest = max(largest, len(json.dumps({**position, "ended": []})))
    assert largest < 700


def test_positions_of_the_table_are_small() -> None:
    """The position of a plain run is well below half a kilobyte."""
    plan = seq(add, add, yes)().plan
    _, position = advance(plan, start(plan), {})
    assert len(json.dumps(position)) < 300


# Waiting: what only a durable engine does.


def test_an_attempt_that_waits_is_made_again() -> None:
    """The answer to a wait goes back to the same attempt of the same step, which counts once; a stop is kept."""
    plan = plan_of(inner(add, yes), max_steps=2)
    command, position = advance(plan, start(plan), {})
    first = command
    command, position = advance(plan, position, {"wait": {"name": "approval", "timeout": 60.0}, "stop": True})
    assert command == {"do": "wait", "path": "inner/yes", "name": "approval", "timeout": 60.0}
    assert position["ended"] == []
    assert json.loads(json.dumps(position)) == position
    command, position = advance(plan, position, {})
    assert command == first
    command, position = advance(plan, position, {"wait": {"name": "approval", "timeout": None}})
    command, position = advance(plan, position, {})
    command, position = advance(plan, position, {})
    assert [(row["path"], row["outcome"], row["attempts"]) for row in position["ended"]] == [
        ("inner/yes", "STOPPED", 1),
        ("inner", "STOPPED", 1),
    ]


def test_unwind_answers_a_wait() -> None:
    """What waits is given up like all else: no handler, every `finally`, the end."""
    plan = plan_of(inner(add, finally_=[yes]), finally_=[go_left], on_error=CONTINUE)
    replies: list[Reply] = [{"wait": {"name": "approval", "timeout": None}}, {"unwind": "STOPPED"}, {}, {}]
    commands, rows, _ = walk(plan, replies)
    assert commands == ["execute inner/add", "wait inner/add", "execute inner/yes", "execute go-left", "end"]
    assert rows == ["inner/yes DONE", "go-left DONE"]


def test_a_wait_within_finally_goes_on_there() -> None:
    """A part of `finally` may wait too."""
    plan = plan_of(add, finally_=[yes, go_left])
    commands, rows, _ = walk(plan, [{}, {"wait": {"name": "approval", "timeout": None}}, {}, {}, {}])
    assert commands == ["execute add", "execute yes", "wait yes", "execute yes", "execute go-left", "end"]
    assert rows == ["add DONE", "yes DONE", "go-left DONE"]


def test_a_handler_gets_the_key_of_its_step() -> None:
    """An engine that goes on at a handler, in another process, knows whose memo it is by the key alone."""
    plan = plan_of(inner(activity(fail, on_error=CONTINUE)))
    command, position = advance(plan, start(plan), None)
    asked, _ = advance(plan, position, {"error": broken()})
    assert asked["mode"] == "handle"
    assert asked["key"] == command["key"] == "inner/fail#1.1"


@pytest.mark.parametrize(
    ("over", "asked"),
    [("", []), ("one", []), ("one/two", ["one/two"]), ("one/two/fail", ["one/two/fail"]), (None, ["one/two/fail"])],
)
def test_a_limit_s_end_passes_by_what_is_inside(over: str | None, asked: list[str]) -> None:
    """A reply's error that is the end of a step's limit is put to that step's handlers first, be it stored or not."""
    two = SequenceProcessor([activity(fail, on_error=CONTINUE)], context=Box, name="two", on_error=CONTINUE)
    one = SequenceProcessor([activity(two, on_error=CONTINUE)], context=Box, name="one", finally_=[add])
    plan = SequenceProcessor([one], context=Box, name="main").plan
    late = record_of(TimeoutError, "late")
    error: ErrorRecord = late if over is None else {**late, "over": over}
    command, position = advance(plan, start(plan), json.loads(json.dumps({"error": error})))
    assert [command["path"]] == (asked or ["one/add"])
    if not asked:
        assert [row["path"] for row in position["ended"]] == ["one/two/fail", "one/two"]
        command, position = advance(plan, json.loads(json.dumps(position)), {})
        assert (command["do"], command["end"]["outcome"]) == ("end", "FAILED")
