"""What the tests of the core share: a sequence wired for each engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from behaviour.parts import Box

import iocflow.inline_loop
from iocflow import AsyncRunner, Processor, SequenceProcessor
from iocflow.advance import advance
from iocflow.plan import Command, Plan, Position, Reply

Wire = Callable[..., Processor[Any]]


def stored(plan: Plan, position: Position, reply: Reply | None) -> tuple[Command, Position]:
    """Do as `advance`, with everything written to JSON and read back before and after."""
    given = json.loads(json.dumps([plan, position, reply]))
    command, moved = json.loads(json.dumps(advance(*given)))
    return command, moved


@pytest.fixture(params=["quick", "loop", "json"])
def wire(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Wire:
    """Return a function that wires steps in sequence, once for each engine, on contexts of `Box`.

    `quick` is what users get; `loop` has an observer, so that a plain sequence does not take the quick path; `json` has
    positions, commands and replies written and read back between any two of them.
    """
    if request.param == "json":
        monkeypatch.setattr(iocflow.inline_loop, "advance", stored)

    def sequence(*steps: Any, **options: Any) -> Processor[Any]:
        if request.param != "quick":
            options["observers"] = [*options.get("observers", ()), lambda event: None]
        return SequenceProcessor(steps, **{"context": Box, "name": "main", **options})

    return sequence


@pytest.fixture
def runner() -> Iterator[AsyncRunner]:
    """Return a runner that is closed after the test."""
    with AsyncRunner() as made:
        yield made
