"""How a strand's place is written: a plain next step of a sequence as its number, anything else as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from iocflow.advance import start
from iocflow.plan import Plan, Position

START = "0"
"""The place before anything ran; the context is still to be made."""


@dataclass(slots=True)
class Place:
    """Where a strand goes on from, and what goes with it.

    Attributes:
        memo: The memo of the step under way.
        got: The signals that it consumed.
        touched: The fields that a branch bound anew since its fork.
        until: When the sleep, or the wait's timeout, ends, on the store's clock.
        limits: The time limits around it; see `limits`.
    """

    position: Position
    memo: dict[str, Any] = field(default_factory=dict)
    got: list[tuple[str, Any, bool]] = field(default_factory=list)
    touched: list[str] = field(default_factory=list)
    until: float | None = None
    limits: dict[str, Any] = field(default_factory=dict)


def plain(plan: Plan, at: int) -> Position:
    """Return the position at a step of the main sequence after nothing but successes."""
    position = start(plan)
    position["stack"][0] |= {"at": at, "seq": at + 1, "used": at + 1}
    return position


def written(plan: Plan, place: Place) -> str:
    """Return a place as text."""
    position = place.position
    named = {name: getattr(place, name) for name in ("memo", "got", "touched", "until", "limits")}
    extras = {name: value for name, value in named.items() if value or value == 0.0}
    stack = position["stack"]
    if not extras and len(stack) == 1 and stack[0].get("at", 0) > 0 and position == plain(plan, stack[0]["at"]):
        return str(stack[0]["at"])
    return json.dumps({"position": position, **extras}, separators=(",", ":"))


def read(plan: Plan, text: str) -> Place:
    """Return the place that was written."""
    stored = json.loads(text)
    if isinstance(stored, int):
        return Place(plain(plan, stored))
    return Place(**stored)


def unwinding(text: str) -> str:
    """Return with which outcome the thread of control at a written place is being unwound, empty when it is not."""
    stored = json.loads(text)
    return "" if isinstance(stored, int) else str(stored["position"]["unwind"])


def retriable(position: Position) -> bool:
    """Return whether an operator's retry may go on from here: nothing failed or was given up on the way here."""
    ends = [frame["closing"] for frame in position["stack"] if "closing" in frame]
    if position["end"] is not None:
        ends.append(position["end"])
    return not position["unwind"] and all(end["error"] is None for end in ends)
