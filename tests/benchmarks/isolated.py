"""A run of one activity: in this process, in a process of its own, and what a pipe and a process pool take for as much.

    python tests/benchmarks/isolated.py

The goal is that `isolate: process` costs less than a peer's hand-over, and no more than a few of a bare pipe's.
"""

from __future__ import annotations

import functools
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from measuring import arguments, measure, report

from iocflow import Activity, ProcessContext, SequenceProcessor
from iocflow.isolation import IsolatedActivity

BARE = "bare pipe to a process and back"
_SPAWN = multiprocessing.get_context("spawn")


class Count(ProcessContext):
    """The context."""

    seed_data: int
    n: int = 0


class Increment(Activity[Count]):
    """The work."""

    def execute(self, context: Count) -> None:
        """Add one."""
        context.n += 1


def echo(pipe: Connection[Any, Any]) -> None:
    """Add one to what comes, until nothing does."""
    while (fields := pipe.recv()) is not None:
        pipe.send({**fields, "n": fields["n"] + 1})


def added(fields: dict[str, int]) -> dict[str, int]:
    """Return the fields with one more."""
    return {**fields, "n": fields["n"] + 1}


def main() -> None:
    """Measure and print."""
    options = arguments("A run of one activity in a process of its own, against a bare pipe and a process pool.")
    here, there = _SPAWN.Pipe()
    process = _SPAWN.Process(target=echo, args=(there,), daemon=True)
    process.start()

    def over_the_pipe() -> object:
        here.send({"seed_data": 7, "n": 0})
        return here.recv()

    isolated = IsolatedActivity(functools.partial(Increment), "increment")
    in_thread = SequenceProcessor([Increment()], context=Count, name="count")
    apart = SequenceProcessor([isolated], context=Count, name="count")
    with ProcessPoolExecutor(1, mp_context=_SPAWN) as pool:
        contestants = {
            BARE: over_the_pipe,
            "concurrent.futures process pool": lambda: pool.submit(added, {"seed_data": 7, "n": 0}).result(),
            "iocflow, in this process": lambda: in_thread.do_activities(7),
            "iocflow, isolate: process": lambda: apart.do_activities(7),
        }
        for contestant in contestants.values():
            contestant()  # which starts its process
        report(measure(contestants, rounds=options.rounds, seconds=options.seconds), base=BARE)
    isolated.close()
    here.send(None)
    process.join()


if __name__ == "__main__":
    import isolated  # so that other processes find what is here by the module's name

    isolated.main()
