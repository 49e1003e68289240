"""What a worker and the process of an activity say to each other; each message is pickled as a whole."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from iocflow.activity import Activity
from iocflow.context import ProcessContext, fields_of
from iocflow.isolation.errors import IsolationError

Make = Callable[[], Activity[Any]]
"""Makes the activity, in the process that runs it; it can be pickled, as a class or a `functools.partial` can."""

ABSENT = b""
"""Stands for a field that is not set any more."""


@dataclass(frozen=True, slots=True)
class Begin:
    """The first message: how the activity is made, where its modules lie, and from which level on it logs."""

    make: bytes
    path: list[str]
    level: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of the activity.

    Attributes:
        context: The class of the context, pickled.
        fields: Each of its fields, pickled.
        step: The plain attributes of `context.step`.
        remaining: The seconds that are left of its time limit.
        group: The key and the state of the run's group, of a durable run.
    """

    context: bytes
    fields: Mapping[str, bytes]
    step: Mapping[str, Any]
    scheduled_for: datetime | None
    remaining: float | None
    group: tuple[str | None, Any] | None


@dataclass(frozen=True, slots=True)
class Ask:
    """What the activity wants of `context.step` here, and waits for: an `Answer`."""

    method: str
    args: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What it gets: a value, or what is raised."""

    value: Any = None
    raises: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """How the attempt ended.

    Attributes:
        changed: The fields that are not as they were, pickled, or `ABSENT`.
        asked: What was asked of the context: a stop, with its reason, or the next activity.
        result: None, a named result, or the pickled context to go on with.
        error: What the activity raised, pickled; else its class's record.
        left: Whether it left to wait, as it was told to.
        state: The group's state, when it was changed.
    """

    changed: Mapping[str, bytes]
    asked: Mapping[str, Any]
    result: str | bytes | None = None
    error: bytes | None = None
    left: bool = False
    state: tuple[Any] | None = None


def pickled_fields(context: ProcessContext, who: str) -> dict[str, bytes]:
    """Return each field of a context, pickled by itself.

    Raises:
        IsolationError: One cannot be pickled; the message names it.
    """
    found = {}
    for name, value in fields_of(context).items():
        try:
            found[name] = pickle.dumps(value)
        except Exception as error:
            raise IsolationError(
                f"{type(context).__name__}.{name} cannot pass between the processes of {who} ({error}): keep data in"
                " the context, and wire what is no data into the activity"
            ) from error
    return found
