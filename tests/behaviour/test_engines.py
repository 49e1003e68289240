"""One meaning: every process of the table leaves the same trail on every engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from behaviour.composites import COMPOSITES
from behaviour.parts import Case
from behaviour.sequences import SEQUENCES

import iocflow.inline_loop
from iocflow.advance import advance
from iocflow.plan import Command, Plan, Position, Reply
from iocflow.run import Run, Step


def as_wired(build: Callable[..., Any], patch: pytest.MonkeyPatch) -> Any:
    """The engine as users get it: a plain sequence takes the quick path."""
    return build()


def in_the_loop(build: Callable[..., Any], patch: pytest.MonkeyPatch) -> Any:
    """The inline loop, without the quick path: an observer needs its events."""
    return build(observers=[lambda event: None])


def over_json(build: Callable[..., Any], patch: pytest.MonkeyPatch) -> Any:
    """The inline loop, with every plan, position and reply written to JSON and read back between two commands."""

    def stored(plan: Plan, position: Position, reply: Reply | None) -> tuple[Command, Position]:
        result: tuple[Command, Position] = tuple(
            json.loads(json.dumps(advance(*json.loads(json.dumps([plan, position, reply])))))
        )
        return result

    patch.setattr(iocflow.inline_loop, "advance", stored)
    return in_the_loop(build, patch)


def row(step: Step) -> str:
    """A row of the trail as the table writes it."""
    attempts = f" x{step.attempts}" if step.attempts > 1 else ""
    return step.activity + (f" {step.outcome.name}{attempts}" if step.outcome.name != "DONE" or attempts else "")


@pytest.mark.parametrize("engine", [as_wired, in_the_loop, over_json])
@pytest.mark.parametrize("case", [*SEQUENCES, *COMPOSITES], ids=lambda case: case.name)
def test_trail(case: Case, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outcome, trail, error, what is raised and what the context holds are as the table says."""
    processor = engine(case.build, monkeypatch)
    run: Run[Any] = processor.launch(case.seed)
    assert ", ".join(map(row, run.steps)) == case.trail
    assert run.outcome.name == case.outcome
    assert type(run.error).__name__ == (case.error or "NoneType")
    assert run.raises is case.raised
    assert {name: getattr(run.context, name) for name in case.fields} == case.fields
    if case.raised:
        with pytest.raises(type(run.error)):
            processor.do_activities(case.seed)
    else:
        assert processor.do_activities(case.seed).outcome is run.outcome
