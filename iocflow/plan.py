"""A processor as plain data: what `advance` and every engine work on.

A *plan* lists processors by id, each with its steps. A *position* is one thread of control in a plan: a stack of
frames, the innermost last. A *command* tells an engine what to do next, and a *reply* what became of it. All are
JSON-able.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal, TypedDict

from iocflow.errors import ErrorRecord


class StepPlan(TypedDict):
    """One use of an activity or processor; `ref` is its id, `limit` its time limit in seconds.

    `mode` and `on_lost` say how a durable engine runs it; see `activity`.
    """

    name: str
    do: Literal["activity", "processor"]
    ref: str
    handlers: list[str]
    limit: float | None
    mode: str
    on_lost: str


# `finally` cannot be a class attribute's name.
ProcessorPlan = TypedDict(
    "ProcessorPlan",
    {
        "kind": Literal["sequence", "choice", "split", "each"],
        "steps": list[StepPlan],
        "finally": list[StepPlan],
        "handlers": list[str],
        "max": int,
        "routes": dict[str, dict[str, str]],
        "join": str,
        "each": dict[str, Any],
    },
)


class Plan(TypedDict):
    """The processor `main` and all those it reaches, by id."""

    main: str
    p: dict[str, ProcessorPlan]


class End(TypedDict):
    """How a frame or position ended; `raises` when nobody was there to handle the error."""

    outcome: str
    error: ErrorRecord | None
    raises: bool
    last: str | None


class Wait(TypedDict):
    """What an activity waits for, by name, and for how many seconds at most."""

    name: str
    timeout: float | None


class Frame(TypedDict, total=False):
    """One processor under way.

    `at` is the current step's index, in `finally` when `closing` is set; `seq` counts the steps begun, `n` the
    attempts of this one, `used` the attempts against `max`. A `solo` frame is a branch or a parallel item: one step
    of a processor; `within` are the numbers of the steps around it. `whole` says that the error is the frame's own
    (seeding, forking, joining), not a step's. `i` is the item of `count` items, `ends` are the failures of those before
    it, or all ends of branches; `lost` says that this one failed, `fresh` asks for it to be bound.
    """

    p: str
    path: str
    state: str
    at: int
    n: int
    seq: int
    used: int
    asked: bool
    solo: bool
    within: str
    whole: bool
    seeding: bool
    fresh: bool
    i: int
    count: int
    lost: bool
    delay: float
    wait: Wait
    error: ErrorRecord
    last: str | None
    ends: list[End]
    closing: End


RowOutcome = Literal["DONE", "HANDLED", "STOPPED", "FAILED"]


class Ended(TypedDict):
    """A row for the trail."""

    path: str
    outcome: RowOutcome
    attempts: int
    error: ErrorRecord | None
    result: str | None


class Position(TypedDict):
    """Where one thread of control is; `ended` are the rows that the last move added to the trail."""

    stack: list[Frame]
    ended: list[Ended]
    end: End | None
    unwind: str


class Reply(TypedDict, total=False):
    """What became of a command: nothing set is a plain success.

    `next` is the named result, `goto` the `next_activity`, `stop` whether this step asked to stop; `decision`, `delay`
    and `goto` answer a `handle`, which has logged the error; `count` answers `items`, `ends` a fork. `wait` says that
    an `execute` left by a `RunSignal`: the same attempt is made again when the wait is answered. `unwind` ends all
    with that outcome, running every `finally` and asking no handler. An `error` with `over` is that step's, whose
    time limit ended: no handler inside of it is asked, no item there counts as failed, and every `finally` is run. With
    `unbegun`, the attempt was not made, and does not count.
    """

    error: ErrorRecord
    next: str | None
    goto: str | None
    stop: bool
    decision: str
    delay: float
    count: int
    ends: list[End]
    wait: Wait
    unwind: str
    unbegun: bool


Mode = Literal["seed", "execute", "handle", "items", "collect", "join"]
"""Which user code a `run` command means."""


class Command(TypedDict, total=False):
    """What to do next: `run` user code in a `mode`, `sleep`, `wait` for what has a `name`, `fork` children, or `end`.

    `key` tells the step from all others of the run, the same for each of its attempts and their handlers. `bind` lists
    the for-each processors whose item is to be put into its field first, each with the item's index.
    """

    do: Literal["run", "sleep", "wait", "fork", "end"]
    mode: Mode
    p: str
    path: str
    key: str
    step: StepPlan
    attempt: int
    own: list[str]
    default: list[str]
    error: ErrorRecord
    names: list[str]
    bind: list[tuple[str, int]]
    item: int
    failed: list[int]
    delay: float
    name: str
    timeout: float | None
    children: list[Position]
    end: End


def plan_hash(plan: Plan) -> str:
    """Return a hash of all that can be reached in the plan: equal for equal wirings, in any process."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()
