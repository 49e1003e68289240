"""What live workers do in tests beside the order: a step that waits at a gate, and one that brings its process down."""

from __future__ import annotations

import ctypes
import os
import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from iocflow import Activity, ProcessContext, SequenceProcessor, activity
from iocflow.durable.job import Job
from tests.crash.ledger import Ledger
from tests.crash.order import order_job

LOOK = 0.005
"""Seconds between two looks at a gate."""


class Box(ProcessContext):
    """What a run holds here.

    Attributes:
        n: How many steps took effect.
    """

    seed_data: str
    n: int = 0


class Gate(Activity[Box]):
    """Leaves a file that says who has come, and waits until the gate is open: the file `open` is there."""

    name = "gate"

    def __init__(self, folder: Path, insert: str) -> None:
        """Take the folder of the files, and the statement that writes a row when the step is transactional."""
        self._folder = folder
        self._insert = insert

    def execute(self, context: Box) -> None:
        """Come, wait, go."""
        if self._insert:
            context.step.transaction.execute(self._insert, (context.seed_data, str(os.getpid())))
        (self._folder / f"{os.getpid()}.came").touch()
        while not (self._folder / "open").exists():
            time.sleep(LOOK)
        context.n += 1


def gated(folder: str, insert: str) -> dict[str, Job]:
    """Return a processor with a step before the gate, the gate, transactional if it writes, and a step after it."""
    gate = activity(Gate(Path(folder), insert), mode="transactional" if insert else "leased")
    steps = [activity(count, name="before"), gate, activity(count, name="after")]
    return {"gated": Job(SequenceProcessor(steps, context=Box, name="gated"))}


def count(context: Box) -> None:
    """Do something that is seen."""
    context.n += 1


def crash(context: Box) -> None:
    """Read where there is no memory, if the seed says so."""
    if context.seed_data == "poison":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        ctypes.string_at(0)
    context.n += 1


def poisonous() -> dict[str, Job]:
    """Return a processor whose first step kills the worker when it is told to."""
    return {"poisonous": Job(SequenceProcessor([crash, count], context=Box, name="poisonous"))}


def orders(ledger: str, takes: float) -> dict[str, Job]:
    """Return the order program, with a foreign system that takes up to so many seconds."""
    return {"order": order_job("leased", Ledger(Path(ledger), takes), "")}


PROGRAMS: Mapping[str, Callable[..., dict[str, Job]]] = {"gated": gated, "poisonous": poisonous, "order": orders}
"""What makes the processors of a program."""
