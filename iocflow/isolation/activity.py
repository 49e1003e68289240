"""An activity as the worker has it: its code runs in another process."""

from __future__ import annotations

import pickle
import threading
import weakref
from typing import Any

from iocflow.activity import Activity, Result
from iocflow.context import ProcessContext
from iocflow.errors import IocflowError, RecordedError
from iocflow.isolation.child import Child
from iocflow.isolation.errors import IsolationError
from iocflow.isolation.messages import ABSENT, Attempt, Done, Make, pickled_fields


class IsolatedActivity(Activity[ProcessContext]):
    """Runs an activity in a process of its own, one for each run that is at it; a process serves one run after another.

    What the activity changes on the context comes back with its end, also when it failed, each change of its memo at
    once. When its time limit is over, the process is killed. One that is gone fails the attempt with an
    `IsolatedProcessError`. The context and what is in it have to be data: it goes there and back by value.
    """

    def __init__(self, make: Make, name: str, error_handler: Any = None) -> None:
        """Take what makes the activity in its process, which can be pickled.

        Raises:
            IsolationError: It cannot.
        """
        self.name, self.error_handler = name, error_handler
        try:
            self._make = pickle.dumps(make)
        except Exception as error:
            raise IsolationError(f"what makes {name} cannot go to its process: {error}") from error
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._closed = False
        self._finalizer = weakref.finalize(self, _kill, self._idle)

    def execute(self, context: ProcessContext) -> Result:
        """Run the activity there, and take over what it did.

        Raises:
            IsolationError: The context, or what the activity made of it, cannot pass between processes.
            IsolatedProcessError: The process is gone.
            TimeoutError: It took too long, and was killed.
        """
        attempt = self._attempt(context)
        child = self._taken()
        try:
            done = child.do(attempt, context.step)
        except BaseException:
            child.kill()
            raise
        self._give_back(child)
        return _taken_over(context, done)

    def close(self) -> None:
        """End the processes that wait for work; those at work end with their attempts."""
        with self._lock:
            self._closed = True
            self._finalizer()

    def _attempt(self, context: ProcessContext) -> Attempt:
        step = context.step
        facts = {key: getattr(step, key) for key in ("run_id", "processor", "activity", "idempotency_key", "attempt")}
        try:
            group: tuple[str | None, Any] | None = step.group.key, step.group.state
        except IocflowError:  # the run is not durable
            group = None
        fields = pickled_fields(context, self.name)
        facts["memo"] = dict(step.memo)
        return Attempt(pickle.dumps(type(context)), fields, facts, step.scheduled_for, step.remaining(), group)

    def _taken(self) -> Child:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.alive:
                    return child
                child.kill()
        return Child(self._make, self.name)

    def _give_back(self, child: Child) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(child)
                return
        child.kill()


def _kill(children: list[Child]) -> None:
    while children:
        children.pop().kill()


def _taken_over(context: ProcessContext, done: Done) -> Result:
    """Do to the context what the activity did to its copy, and return, or raise, what it did."""
    for name, value in done.changed.items():
        if value == ABSENT:
            object.__delattr__(context, name)
        else:
            setattr(context, name, pickle.loads(value))
    if done.state is not None:
        context.step.group.state = done.state[0]
    if done.asked.get("idle"):
        context.nothing_to_do()
    elif done.asked.get("stop"):
        context.stop_process(context.stop_reason)
    if "next" in done.asked:
        context.next_activity = done.asked["next"]
    if done.error is not None:
        error = pickle.loads(done.error)
        raise error if isinstance(error, Exception) else RecordedError(error)
    return pickle.loads(done.result) if isinstance(done.result, bytes) else done.result
