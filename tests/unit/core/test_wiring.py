"""What is checked and named when processors are wired."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import Any

import pytest
from behaviour.parts import Box, add, fail, go_left, yes
from unit.core.conftest import Wire

from iocflow import (
    CONTINUE,
    Activity,
    ExclusiveChoiceProcessor,
    ForEachProcessor,
    GoTo,
    OnError,
    ParallelSplitProcessor,
    ProcessContext,
    Processor,
    RetryingErrorHandler,
    SequenceProcessor,
    UnknownActivityError,
    UnsupportedActivityError,
    activity,
)
from iocflow.activity import kebab_case


class Inc(Activity[Box]):
    """Adds one."""

    def execute(self, context: Box) -> None:
        context.n += 1


def trail(processor: Processor[Any]) -> list[str]:
    return [step.activity for step in processor.launch().steps]


def sequence(*steps: Any, **options: Any) -> SequenceProcessor[Any]:
    return SequenceProcessor(steps, **{"context": Box, **options})


# Options.


@pytest.mark.parametrize("kind", ["sequence", "choice", "split", "each"])
def test_a_misspelt_option_is_refused(kind: str) -> None:
    """An option that no processor knows is an error with the known ones, and is not silently dropped."""
    made: dict[str, Any] = {
        "sequence": lambda **more: SequenceProcessor([add], context=Box, **more),
        "choice": lambda **more: ExclusiveChoiceProcessor({"a": "end"}, {"a": add}, context=Box, **more),
        "split": lambda **more: ParallelSplitProcessor({"a": add}, context=Box, **more),
        "each": lambda **more: ForEachProcessor("items", add, as_="item", context=Box, **more),
    }
    with pytest.raises(TypeError, match=r"unknown option on_eror \(known: context, name, on_error, finally_"):
        made[kind](on_eror=CONTINUE)


@pytest.mark.parametrize("context", [Box(), None, dict, "Box"])
def test_a_context_is_a_class_or_a_factory(context: Any) -> None:
    """A single context object, which all runs would share, is refused, and so is what makes no context."""
    with pytest.raises(TypeError, match="main: context= is the class of contexts or a function that makes one"):
        sequence(add, context=context, name="main")


def test_a_processor_needs_a_context() -> None:
    """Leaving the context out is told, also where only a branch needs it first."""
    with pytest.raises(TypeError, match="sequence-processor: context= is"):
        SequenceProcessor([add])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="a: context= is"):
        ParallelSplitProcessor({"a": [add]})  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        (lambda: sequence(add, max_steps=0), "max_steps must be at least 1, not 0"),
        (lambda: ParallelSplitProcessor({}, context=Box), "at least one branch"),
        (lambda: activity(add, time_limit=0), "time_limit of add must be more than 0 seconds, not 0"),
        (lambda: activity(add, time_limit=float("nan")), "not nan"),
        (lambda: activity(add, time_limit=float("inf")), "not inf"),
        (lambda: ForEachProcessor("items", add, as_="i", may_fail="many", context=Box), "not 'many'"),
        (lambda: ForEachProcessor("items", add, as_="i", may_fail="²%", context=Box), "not '²%'"),
        (lambda: ForEachProcessor("items", add, as_="i", may_fail=-1, context=Box), "not -1"),
        (lambda: ForEachProcessor("items", add, as_="i", parallel=-1, context=Box), "not -1"),
    ],
)
def test_options_are_checked_when_they_are_given(wire: Any, said: str) -> None:
    """A number that makes no sense is a ValueError that shows it."""
    with pytest.raises(ValueError, match=said):
        wire()


# What may be an activity.


@pytest.mark.parametrize("thing", [7, "inc", None, object()])
def test_what_is_no_activity_is_refused(thing: Any) -> None:
    """What cannot be called cannot be wired."""
    with pytest.raises(TypeError, match="is no activity: subclass Activity, or wire a function"):
        sequence(thing)


@pytest.mark.parametrize("handler", [7, "log", [add], add, {1}])
def test_what_is_no_handler_is_refused(handler: Any) -> None:
    """A handler has `handle_error`."""
    with pytest.raises(TypeError, match="handle_error"):
        sequence(add, on_error=handler)


def test_args_are_for_functions() -> None:
    """An activity takes its collaborators in its constructor."""
    with pytest.raises(TypeError, match="args are for functions; inc is an activity"):
        activity(Inc(), args={"by": 2})


def test_functions_with_collaborators(wire: Wire) -> None:
    """A plain function gets its collaborators by name, and can still be called as it is."""

    def add_by(context: Box, *, by: int, times: int = 1) -> None:
        context.n += by * times

    run = wire(activity(add_by, args={"by": 2}), activity(add_by, args={"by": 5, "times": 2})).do_activities()
    assert run.context.n == 12
    assert [step.activity for step in run.steps] == ["add-by", "add-by-2"]
    context = Box()
    add_by(context, by=3)
    assert context.n == 3


def test_all_that_can_be_called_can_be_an_activity(wire: Wire) -> None:
    """Partials, lambdas, bound methods and callable objects are activities; their names say what they are."""

    def add_by(by: int, context: Box) -> None:
        context.n += by

    class Adder:
        def __call__(self, context: Box) -> None:
            context.n += 10

        def add_much(self, context: Box) -> None:
            context.n += 100

    steps = [functools.partial(add_by, 2), lambda context: setattr(context, "n", context.n + 1), Adder()]
    run = wire(*steps, Adder().add_much).do_activities()
    assert run.context.n == 113
    assert [step.activity for step in run.steps] == ["add-by", "lambda", "adder", "add-much"]


def test_supports_is_asked_for_every_activity() -> None:
    """A kind that refuses some activities is asked for each: steps, `finally`, branches and bodies."""

    class Quiet:
        def supports(self, activity: object) -> bool:
            return getattr(activity, "name", "") != "fail"

    class Sequence(Quiet, SequenceProcessor[Box]):
        pass

    class Split(Quiet, ParallelSplitProcessor[Box]):
        pass

    class Each(Quiet, ForEachProcessor[Box]):
        pass

    wirings: list[Any] = [
        lambda step: Sequence([add, step], context=Box),
        lambda step: Sequence([add], finally_=[step], context=Box),
        lambda step: Split({"a": add, "b": step}, context=Box),
        lambda step: Split({"a": add, "b": [add, step]}, context=Box),
        lambda step: Each("items", step, as_="item", context=Box),
        lambda step: Each("items", [add, step], as_="item", context=Box),
    ]
    for wire in wirings:
        wire(go_left)
        with pytest.raises(UnsupportedActivityError, match=r"does not support fail \(FunctionActivity\)"):
            wire(fail)


# Exclusive choice.


@pytest.mark.parametrize(
    ("routes", "steps", "said"),
    [
        ({}, {}, "at least one activity"),
        ({"a": "end"}, {"a": add, "b": add}, r"'b' has no routes \(known: a\)"),
        ({"a": "end", "b": "end"}, {"a": add}, r"routes of 'b': no such activity \(known: a\)"),
        ({"a": "b"}, {"a": add}, r"route a -> else: 'b' has no routes \(known: a\)"),
        ({"a": {"yes": "end"}}, {"a": add}, "routes of 'a': `else` is missing; `else: end` ends"),
        ({"end": "end"}, {"end": add}, "'end' is reserved; give the activity another name"),
        ({"else": "end"}, {"else": add}, "'else' is reserved"),
    ],
)
def test_a_choice_is_checked_when_it_is_wired(routes: Any, steps: Any, said: str) -> None:
    """Routes and activities have to fit one another."""
    with pytest.raises(UnknownActivityError, match=said):
        ExclusiveChoiceProcessor(routes, steps, context=Box)


# Names.


@pytest.mark.parametrize(
    ("name", "kebab"),
    [
        ("BuildRecipients", "build-recipients"),
        ("build_recipients", "build-recipients"),
        ("ApplyXSLT", "apply-xslt"),
        ("HTTPCall", "http-call"),
        ("_private_", "private"),
        ("Step2", "step2"),
    ],
)
def test_default_names(name: str, kebab: str) -> None:
    """A class or function without a name of its own is named in kebab-case."""
    assert kebab_case(name) == kebab


def test_two_objects_of_one_default_name_are_told_apart() -> None:
    """They are numbered in wired order; the same object keeps its name."""
    one, two, three = Inc(), Inc(), Inc()
    assert trail(sequence(one, two, one, three, two)) == ["inc", "inc-2", "inc", "inc-3", "inc-2"]


def test_an_explicit_name_is_kept() -> None:
    """The name that is wired stands in the trail, also when a default name is the same."""
    one, two = Inc(), Inc()
    three = Inc()
    three.name = "third"
    steps = [activity(one, name="inc-2"), one, two, three, activity(three, name="inc")]
    assert trail(sequence(*steps)) == ["inc-2", "inc", "inc-2", "third", "inc"]


def test_names_of_branches_and_bodies_are_kept() -> None:
    """Two splits may have branches of one name, two for-eaches items of one name: the trail says what was wired."""

    def fill(context: Box) -> None:
        context.items = (1,)

    splits = [ParallelSplitProcessor({"l": [add], "r": yes}, context=Box, name=name) for name in ("one", "two")]
    eaches = [ForEachProcessor("items", [go_left], as_="item", context=Box, name=name) for name in ("all", "again")]
    assert trail(sequence(*splits, fill, *eaches)) == [
        *("one/l/add", "one/l", "one/r/yes", "one/r", "one"),
        *("two/l/add", "two/l", "two/r/yes", "two/r", "two"),
        "fill",
        *("all/item/go-left", "all/item", "all"),
        *("again/item/go-left", "again/item", "again"),
    ]


def test_two_processors_of_one_name_are_told_apart() -> None:
    """Nested processors are numbered like activities; the same one, wired twice, is described once."""
    one, two = sequence(add, name="inner"), sequence(yes, name="inner")
    outer = sequence(one, two, one, name="main")
    assert trail(outer) == ["inner/add", "inner", "inner-2/yes", "inner-2", "inner/add", "inner"]
    assert sorted(outer.plan["p"]) == ["inner", "inner-2", "main"]


def test_one_activity_in_two_processors() -> None:
    """An activity may stand in any number of processors, under one name or under several."""
    inc = Inc()
    first = sequence(inc, inc, name="first")
    second = sequence(activity(inc, name="more"), first, name="second")
    assert trail(second) == ["more", "first/inc", "first/inc", "first"]
    assert first.do_activities().context.n == 2


def test_the_name_of_an_activity_can_be_set() -> None:
    """An instance's name is what the wiring sets, else its class's."""
    one, two = Inc(), Inc()
    two.name = "other"
    assert (one.name, two.name) == ("inc", "other")


# The plan.

WIRING = """
import json
from behaviour.parts import Box, add, fail, go_left, yes
from iocflow import (CONTINUE, ExclusiveChoiceProcessor, ForEachProcessor, GoTo, LoggingErrorHandler, OnError,
    ParallelSplitProcessor, RetryingErrorHandler, SequenceProcessor, activity)

inner = SequenceProcessor([add, activity(fail, on_error=[OnError(LookupError, GoTo("add")), LoggingErrorHandler()])],
    context=Box, name="inner", finally_=[go_left], max_steps=7)
choice = ExclusiveChoiceProcessor({"a": {"yes": "b", "else": "end"}, "b": "end"}, {"a": yes, "b": inner}, context=Box)
split = ParallelSplitProcessor({"l": [add, choice], "r": add}, context=Box, on_error=CONTINUE)
each = ForEachProcessor("items", activity(split, time_limit=1.5), as_="item", parallel=2, may_fail="10%",
    failed="left", collect={"right": "n"}, context=Box, on_error=RetryingErrorHandler())
processor = SequenceProcessor([add, each, lambda context: None], context=Box, name="main")
"""


def test_the_plan_is_data_and_its_hash_holds_in_another_process() -> None:
    """A plan survives JSON unchanged, and another process that wires the same gets the same hash."""
    here: dict[str, Any] = {}
    exec(WIRING, here)
    plan = here["processor"].plan
    assert json.loads(json.dumps(plan)) == plan
    script = f"import sys; sys.path[:0] = {sys.path!r}\n{WIRING}\nprint(processor.plan_hash)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == here["processor"].plan_hash


def test_the_hash_tells_wirings_apart() -> None:
    """Another order, limit, handler or name is another plan."""
    hashes = {
        one.plan_hash
        for one in (
            sequence(add, yes),
            sequence(yes, add),
            sequence(add, activity(yes, time_limit=2)),
            sequence(add, activity(yes, on_error=CONTINUE)),
            sequence(add, activity(yes, name="no")),
            sequence(add, yes, on_error=CONTINUE),
            sequence(add, yes, max_steps=2),
            sequence(add, yes, finally_=[add]),
            sequence(add, sequence(yes)),
            sequence(add, sequence(yes, max_steps=2)),
        )
    }
    assert len(hashes) == 10


def test_wiring_changes_nothing_later() -> None:
    """The plan of a processor is the same after it ran, and for each run."""
    processor = sequence(add, activity(fail, on_error=[RetryingErrorHandler(2), CONTINUE]), yes)
    before, hash = json.dumps(processor.plan), processor.plan_hash
    assert trail(processor) == trail(processor) == ["add", "fail", "yes"]
    assert (json.dumps(processor.plan), processor.plan_hash) == (before, hash)


def test_steps_can_be_given_as_an_iterator() -> None:
    """Steps, `finally`, observers and interceptors may be generators: they are read once."""

    class Context(ProcessContext):
        n: int = 0

    seen: list[object] = []
    processor = SequenceProcessor(
        (step for step in [add, add]),  # type: ignore[misc]
        context=Context,  # type: ignore[arg-type]
        finally_=(step for step in [add]),
        observers=(one for one in [seen.append]),
    )
    assert processor.do_activities().context.n == processor.do_activities().context.n == 3
    assert seen


def test_decisions_are_named_in_the_plan() -> None:
    """A bare decision is readable in the plan, as is a rule by error type."""
    processor = sequence(activity(fail, on_error=[OnError(LookupError, CONTINUE), GoTo("add")]), add)
    assert processor.plan["p"]["sequence-processor"]["steps"][0]["handlers"] == ["LookupError -> continue", "goto add"]
