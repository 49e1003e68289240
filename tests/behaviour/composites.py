"""The table of processes, second part: nesting, exclusive choice, parallel split, for-each."""

from __future__ import annotations

from typing import Any

from behaviour.parts import (
    Asking,
    Box,
    BrokenError,
    Case,
    add,
    ask_for_b,
    ask_for_nobody,
    choice,
    each,
    fail,
    fail_twice,
    fill,
    fill_with_bad,
    fresh,
    go_left,
    go_right,
    hopeless,
    inner,
    negative_stops,
    retry_slowly,
    seq,
    split,
    stop,
    to_root,
    to_square,
    yes,
)

from iocflow import CONTINUE, STOP, ForEachProcessor, OnError, RetryingErrorHandler, activity

TWO_LOST: dict[str, Any] = {"may_fail": 2, "failed": "bad"}

COMPOSITES = [
    # Nesting.
    Case(
        "a nested processor works on the same context",
        seq(add, inner(add), add),
        "add, inner/add, inner, add",
        fields={"n": 3},
    ),
    Case("a stop inside stops the outer run", seq(inner(stop), add), "inner/stop STOPPED, inner STOPPED", "STOPPED"),
    Case(
        "an inner handler is asked first",
        seq(inner(fail, add, on_error=CONTINUE), add, on_error=STOP),
        "inner/fail HANDLED, inner/add, inner, add",
    ),
    Case(
        "an inner failure is an error of that activity in the outer one, asked after its finally",
        seq(inner(fail, finally_=[go_left]), add, on_error=CONTINUE),
        "inner/fail FAILED, inner/go-left, inner HANDLED, add",
        fields={"left": 1},
    ),
    Case(
        "an inner handler that raises asks the outer handlers",
        seq(inner(fail, on_error=Asking(hopeless)), add, on_error=OnError(LookupError, CONTINUE)),
        "inner/fail FAILED, inner HANDLED, add",
    ),
    Case(
        "a retry of a composite runs all of it again",
        seq(activity(inner(add, fail_twice), on_error=RetryingErrorHandler(attempts=2))),
        "inner/add, inner/fail-twice FAILED, inner/add, inner/fail-twice FAILED, inner FAILED x2",
        "FAILED",
        "BrokenError",
        fields={"n": 4},
    ),
    Case(
        "an attempt that a time limit keeps from beginning does not count",
        seq(activity(inner(activity(fail, on_error=Asking(retry_slowly))), time_limit=0.2)),
        "inner/fail FAILED, inner FAILED",
        "FAILED",
        "TimeoutError",
        raised=True,
        timed=True,
    ),
    Case(
        "an inner finally runs inside, before the outer one",
        seq(inner(stop, finally_=[go_left]), add, finally_=[go_right]),
        "inner/stop STOPPED, inner/go-left, inner STOPPED, go-right",
        "STOPPED",
    ),
    Case(
        "a composite counts as one step",
        seq(inner(add, add, add), add, max_steps=2),
        "inner/add, inner/add, inner/add, inner, add",
    ),
    # Exclusive choice.
    Case(
        "a named result picks the route",
        choice({"a": {"yes": "b", "else": "c"}, "b": "end", "c": "end"}, a=yes, b=go_left, c=go_right),
        "a, b",
    ),
    Case(
        "else applies without a result",
        choice({"a": {"yes": "b", "else": "c"}, "b": "end", "c": "end"}, a=add, b=fail, c=add),
        "a, c",
    ),
    Case(
        "next_activity picks the next",
        choice({"a": "c", "b": "end", "c": "end"}, a=ask_for_b, b=add, c=fail),
        "a, b",
    ),
    Case(
        "a route beats next_activity",
        choice(
            {"a": {"yes": "c", "else": "end"}, "b": "end", "c": "end"},
            a=lambda c: (ask_for_b(c), "yes")[1],
            b=fail,
            c=add,
        ),
        "a, c",
    ),
    Case(
        "an unknown next_activity is an error that the activity's handler sees",
        choice({"a": "b", "b": "end"}, a=activity(ask_for_nobody, on_error=CONTINUE), b=add),
        "a HANDLED, b",
    ),
    Case(
        "next_activity counts also when another context takes the place of the one it was set on",
        choice(
            {"a": {"else": "c"}, "b": "end", "c": "end"},
            a=lambda c: (ask_for_b(c), fresh(c))[1],
            b=add,
            c=fail,
        ),
        "a, b",
    ),
    Case(
        "an unknown next_activity on a replaced context is an error, too",
        choice({"a": "b", "b": "end"}, a=lambda c: (ask_for_nobody(c), fresh(c))[1], b=add),
        "a FAILED",
        "FAILED",
        "UnknownActivityError",
        raised=True,
    ),
    Case(
        "after a handled failure else applies",
        choice(
            {"a": {"yes": "c", "else": "b"}, "b": "end", "c": "end"}, a=activity(fail, on_error=CONTINUE), b=add, c=fail
        ),
        "a HANDLED, b",
    ),
    Case(
        "a loop meets the bound",
        choice({"a": "b", "b": "a"}, a=add, b=add),
        ", ".join(["a, b"] * 500),
        "FAILED",
        "StepLimitError",
        raised=True,
    ),
    Case(
        "a nested processor's named result is its last activity's",
        choice({"a": {"yes": "b", "else": "end"}, "b": "end"}, a=inner(add, yes), b=add),
        "a/add, a/yes, a, b",
    ),
    # Parallel split.
    Case(
        "branches run on forks, and their changes are joined",
        seq(split({"l": go_left, "r": [go_right, go_right]}), add),
        "split/l/go-left, split/l, split/r/go-right, split/r/go-right, split/r, split, add",
        fields={"left": 1, "right": 2, "n": 1},
    ),
    Case(
        "all branches finish, and one that fails fails the split",
        seq(split({"l": fail, "r": go_right}), on_error=OnError(BrokenError, CONTINUE)),
        "split/l/fail FAILED, split/l FAILED, split/r/go-right, split/r, split HANDLED",
        fields={"right": 1},
    ),
    Case(
        "the error of a split is always a group",
        seq(split({"l": fail, "r": add})),
        "split/l/fail FAILED, split/l FAILED, split/r/add, split/r, split FAILED",
        "FAILED",
        "ExceptionGroup",
        raised=True,
    ),
    Case(
        "a branch's own handler is asked first",
        seq(split({"l": activity(inner(fail, go_left), on_error=CONTINUE), "r": add})),
        "split/l/fail FAILED, split/l HANDLED, split/r/add, split/r, split",
    ),
    Case(
        "a branch that stops stops the run, after the join",
        seq(split({"l": stop, "r": go_right}), add),
        "split/l/stop STOPPED, split/l STOPPED, split/r/go-right, split/r, split STOPPED",
        "STOPPED",
        fields={"right": 1, "n": 0},
    ),
    Case(
        "two branches that change one field differently are an error at the join",
        seq(split({"l": add, "r": [add, add]})),
        "split/l/add, split/l, split/r/add, split/r/add, split/r, split FAILED",
        "FAILED",
        "JoinConflictError",
        raised=True,
    ),
    Case(
        "a joiner decides instead",
        seq(
            split(
                {"l": add, "r": [add, add]},
                join=lambda context, forks: setattr(context, "n", sum(f.n for f in forks.values())),
            )
        ),
        "split/l/add, split/l, split/r/add, split/r/add, split/r, split",
        fields={"n": 3},
    ),
    # For-each.
    Case(
        "items run in order on the same context",
        seq(fill, each(to_square, collect={"squares": "square"})),
        "fill, each/to-square, each/to-square, each/to-square, each",
        fields={"squares": [1, 4, 9], "square": 9},
    ),
    Case(
        "items run in parallel on forks",
        seq(fill, each([to_square], parallel=2, collect={"squares": "square"})),
        "fill, each/item/to-square, each/item, each/item/to-square, each/item, each/item/to-square, each/item, each",
        fields={"squares": [1, 4, 9], "square": 0},
    ),
    Case(
        "an item whose failure was handled is collected with the default, not with another's result",
        seq(fill_with_bad, each(activity(to_square, on_error=CONTINUE), collect={"squares": "square"})),
        "fill-with-bad, each/to-square, each/to-square HANDLED, each/to-square, each/to-square HANDLED, each",
        fields={"squares": [1, 0, 9, 0]},
    ),
    Case(
        "an item whose failure was handled in parallel is collected likewise",
        seq(fill_with_bad, each(activity(to_square, on_error=CONTINUE), parallel=2, collect={"squares": "square"})),
        "fill-with-bad, each/to-square, each/to-square HANDLED, each/to-square, each/to-square HANDLED, each",
        fields={"squares": [1, 0, 9, 0]},
    ),
    Case(
        "an item that left unset what is collected has failed",
        seq(fill_with_bad, each(activity(to_root, on_error=CONTINUE), collect={"roots": "root"}, **TWO_LOST)),
        "fill-with-bad, each/to-root, each/to-root HANDLED, each/to-root, each/to-root HANDLED, each",
        fields={"roots": [1, 3], "bad": [-2, -4]},
    ),
    Case(
        "an item that left unset what is collected has failed in parallel",
        seq(
            fill_with_bad,
            each(activity(to_root, on_error=CONTINUE), parallel=2, collect={"roots": "root"}, **TWO_LOST),
        ),
        "fill-with-bad, each/to-root, each/to-root HANDLED, each/to-root, each/to-root HANDLED, each",
        fields={"roots": [1, 3], "bad": [-2, -4]},
    ),
    Case(
        "too many items that left unset what is collected",
        seq(fill_with_bad, each(activity(to_root, on_error=CONTINUE), collect={"roots": "root"})),
        "fill-with-bad, each/to-root, each/to-root HANDLED, each FAILED",
        "FAILED",
        "UnsetError",
        raised=True,
    ),
    Case("no items: nothing to do", seq(each(to_square)), "each"),
    Case("no items in parallel: nothing to do", seq(each(to_square, parallel=4)), "each"),
    Case(
        "an item that fails ends it, with its error",
        seq(fill_with_bad, each(to_square)),
        "fill-with-bad, each/to-square, each/to-square FAILED, each FAILED",
        "FAILED",
        "BrokenError",
        raised=True,
    ),
    Case(
        "as many items as may fail are kept apart",
        seq(fill_with_bad, each(to_square, may_fail="50%", failed="bad", collect={"squares": "square"})),
        "fill-with-bad, each/to-square, each/to-square FAILED, each/to-square, each/to-square FAILED, each",
        fields={"bad": [-2, -4], "squares": [1, 9]},
    ),
    Case(
        "in parallel too",
        seq(fill_with_bad, each(to_square, parallel=4, may_fail=2, failed="bad", collect={"squares": "square"})),
        "fill-with-bad, each/to-square, each/to-square FAILED, each/to-square, each/to-square FAILED, each",
        fields={"bad": [-2, -4], "squares": [1, 9]},
    ),
    Case(
        "more than may fail are a group",
        seq(fill_with_bad, each(to_square, may_fail=1)),
        "fill-with-bad, each/to-square, each/to-square FAILED, each/to-square, each/to-square FAILED, each FAILED",
        "FAILED",
        "ExceptionGroup",
        raised=True,
    ),
    Case(
        "an item that stops stops the run",
        seq(fill_with_bad, each(negative_stops), add),
        "fill-with-bad, each/negative-stops, each/negative-stops STOPPED, each STOPPED",
        "STOPPED",
    ),
    Case(
        "a field that is no sequence is an error that the default handler is asked about",
        seq(ForEachProcessor("n", add, as_="item", context=Box, name="each", on_error=STOP)),
        "each STOPPED",
        "STOPPED",
    ),
    Case(
        "a split in a for-each in a sequence",
        seq(fill, each(split({"l": go_left, "r": go_right}))),
        "fill" + ", each/split/l/go-left, each/split/l, each/split/r/go-right, each/split/r, each/split" * 3 + ", each",
        fields={"left": 3, "right": 3},
    ),
]
