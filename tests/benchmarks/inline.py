"""A run of five activities in one process: the bare loop, iocflow, and peers where they are installed (extra `bench`).

    python tests/benchmarks/inline.py

The goal is at most three times the bare loop, which makes its context by calling the class as iocflow does.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Callable
from itertools import pairwise

from measuring import arguments, measure, report

from iocflow import Activity, ProcessContext, SequenceProcessor

STEPS = 5
BARE = "bare loop with try/except"


class Count(ProcessContext):
    """The context of both."""

    seed_data: int
    n: int = 0


class Increment(Activity[Count]):
    """The work of a step."""

    def execute(self, context: Count) -> None:
        """Add one."""
        context.n += 1


def bare_loop() -> Callable[[], object]:
    """Return what one would write without any engine."""
    activities = [Increment() for _ in range(STEPS)]

    def run() -> Count:
        context = Count()
        for activity in activities:
            try:
                result = activity.execute(context)
            except Exception:
                raise
            if result is not None:
                context = result
        return context

    return run


def iocflow_sequence() -> SequenceProcessor[Count]:
    """Return the same as a processor, with no hook wired."""
    return SequenceProcessor([Increment() for _ in range(STEPS)], context=Count, name="count")


def iocflow_observed() -> SequenceProcessor[Count]:
    """Return the same with an observer, for whom every command goes through the engine."""
    steps = [Increment() for _ in range(STEPS)]
    return SequenceProcessor(steps, context=Count, name="count", observers=[lambda event: None])


def transitions_machine() -> Callable[[], object]:
    """Return five triggers of a state machine, each followed by the work."""
    from transitions import Machine

    class Model:
        n = 0

    model = Model()
    names = [str(number) for number in range(STEPS + 1)]
    steps = [{"trigger": "go", "source": here, "dest": there} for here, there in pairwise(names)]
    Machine(
        model,
        states=names,
        initial="0",
        auto_transitions=False,
        transitions=[*steps, {"trigger": "reset", "source": str(STEPS), "dest": "0"}],
    )

    def run() -> None:
        for _ in range(STEPS):
            model.go()
            model.n += 1
        model.reset()

    return run


def burr_application() -> Callable[[], object]:
    """Return an application of five actions, built and run."""
    from burr.core import ApplicationBuilder, State, action

    def step() -> Callable[[State], State]:
        @action(reads=["n"], writes=["n"])
        def increment(state: State) -> State:
            return state.update(n=state["n"] + 1)

        return increment

    names = [f"s{number}" for number in range(STEPS)]
    actions = {name: step() for name in names}

    def run() -> object:
        builder = ApplicationBuilder().with_actions(**actions).with_state(n=0).with_entrypoint(names[0])
        return builder.with_transitions(*pairwise(names)).build().run(halt_after=[names[-1]])

    return run


PEERS = {"transitions": transitions_machine, "burr": burr_application}


def main() -> None:
    """Measure and print."""
    options = arguments("A run of five activities against the bare loop and peers.")
    os.environ["BURR_TELEMETRY"] = "False"
    logging.disable(logging.CRITICAL)
    plain, observed = iocflow_sequence(), iocflow_observed()
    contestants = {
        BARE: bare_loop(),
        "iocflow SequenceProcessor": plain.do_activities,
        "iocflow, with seed data": lambda: plain.do_activities(7),
        "iocflow, as launchers start it": lambda: plain.launch(7),
        "iocflow, with an observer": observed.do_activities,
    }
    for peer, make in PEERS.items():
        if importlib.util.find_spec(peer) is None:
            print(f"{peer}: not installed, not measured (pip install 'iocflow[bench]')")
        else:
            contestants[peer] = make()
    report(measure(contestants, rounds=options.rounds, seconds=options.seconds), base=BARE)


if __name__ == "__main__":
    main()
