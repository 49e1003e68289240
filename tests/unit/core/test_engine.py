"""Processors that are entrusted to an engine of another kind."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from behaviour.parts import Box, BrokenError, add, fail
from unit.core.kit import inner

from iocflow import CONTINUE, Outcome, Processor, Run, SequenceProcessor, Step, StepOutcome, activity

STARTED = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)


class Stored:
    """Makes runs out of what it stored, as a durable engine does."""

    def __init__(self, error: Exception | None = None, *, raises: bool = False) -> None:
        self.error, self.raises = error, raises
        self.asked: list[dict[str, Any]] = []

    def launch(self, processor: Processor[Any], seed: Any, **how: Any) -> Run[Any]:
        self.asked.append({"processor": processor.name, "seed": seed, **how})
        run: Run[Any] = Run()
        run.of, run.context, run.ticks = processor, processor.new_context(), [STARTED.timestamp()]
        run.id = how["run_id"] or "stored-1"
        run.outcome = Outcome.FAILED if self.error else Outcome.COMPLETED
        run.error, run.raises = self.error, self.raises
        run.rows = [Step("add", StepOutcome.DONE, 2, STARTED, STARTED)]
        return run


def main(*steps: Any, **options: Any) -> Processor[Any]:
    return SequenceProcessor(steps, **{"context": Box, "name": "main", **options})


def test_an_engine_carries_out_what_is_entrusted_to_it() -> None:
    """Callers wait for `do_activities`, not for `launch`; what launchers know is handed on."""
    engine, processor = Stored(), main(add)
    processor.entrust(engine)
    run = processor.do_activities(5)
    assert (run.id, run.processor, run.outcome) == ("stored-1", "main", Outcome.COMPLETED)
    assert (run.started, run.ended) == (STARTED, STARTED)
    assert [(step.activity, step.attempts) for step in run.steps] == [("add", 2)]
    assert run.context.n == 0
    assert processor.launch(6, run_id="r", scheduled_for=STARTED, idempotency_key="k").id == "r"
    nothing = {"run_id": "", "scheduled_for": None, "idempotency_key": ""}
    assert engine.asked == [
        {"processor": "main", "seed": 5, **nothing, "here": True},
        {
            "processor": "main",
            "seed": 6,
            "run_id": "r",
            "scheduled_for": STARTED,
            "idempotency_key": "k",
            "here": False,
        },
    ]


def test_do_activities_raises_as_inline() -> None:
    """The error is raised when the run says that nobody was there to handle it."""
    for raises in (True, False):
        processor = main(add)
        processor.entrust(Stored(BrokenError("stored"), raises=raises))
        if raises:
            with pytest.raises(BrokenError, match="stored"):
                processor.do_activities()
        else:
            assert processor.do_activities().outcome is Outcome.FAILED
        assert isinstance(processor.launch().error, BrokenError)


def test_awaiting_asks_the_engine_too() -> None:
    """`do_activities_async` is `do_activities` in another thread."""
    processor = main(add)
    processor.entrust(Stored())
    assert asyncio.run(processor.do_activities_async()).id == "stored-1"


def test_a_nested_processor_belongs_to_the_outer_run() -> None:
    """What is entrusted counts for runs of its own alone: nested, or called by `execute`, it runs as a part."""
    engine, part = Stored(), inner(add)
    part.entrust(engine)
    assert main(part, part.execute).do_activities().context.n == 2
    assert engine.asked == []


def test_options_for_engines_are_in_the_plan() -> None:
    """`mode` and `on_lost` are plain data that inline runs ignore."""
    processor = main(activity(add, mode="transactional", on_lost="incident"), activity(fail, on_error=CONTINUE))
    steps = processor.plan["p"]["main"]["steps"]
    assert [(step["mode"], step["on_lost"]) for step in steps] == [("transactional", "incident"), ("leased", "retry")]
    assert processor.do_activities().context.n == 1


@pytest.mark.parametrize("option", ["mode", "on_lost"])
def test_unknown_options_for_engines_are_refused(option: str) -> None:
    """What is misspelt does not become the default."""
    given: Any = {option: "maybe"}
    with pytest.raises(ValueError, match=f"{option} of add is one of [a-z, ]+, not 'maybe'"):
        activity(add, **given)
