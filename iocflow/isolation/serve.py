"""The process of an activity, from the inside."""

from __future__ import annotations

import copy
import fcntl
import logging
import logging.handlers
import os
import pickle
import sys
import threading
import time
import traceback
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

from iocflow.activity import Activity
from iocflow.async_runner import AsyncRunner
from iocflow.context import ProcessContext, RunGroup, StepInfo
from iocflow.durable.worker.memo import Memo
from iocflow.errors import RunSignal, record_of, text_of
from iocflow.isolation.errors import IsolationError
from iocflow.isolation.messages import ABSENT, Answer, Ask, Attempt, Begin, Done, pickled_fields
from iocflow.perform import settle
from iocflow.run import current


def serve(channel: int, lifeline: int) -> None:
    """Do attempts until the worker is gone; the arguments are file descriptors."""
    _end_with(lifeline)
    line = Line(Connection(channel))
    try:
        begin: Begin = line.receive()
        sys.path[:] = begin.path
        logging.getLogger().addHandler(ToWorker(line))
        logging.getLogger().setLevel(begin.level)
        site = Site(begin.make)
        while True:
            line.send(site.done(line.receive(), line))
    except (EOFError, ConnectionError):
        os._exit(0)


def _end_with(lifeline: int) -> None:
    """See to it that this process ends when the other end of a pipe is closed, whatever its code is at.

    Nothing is ever written to the pipe. That it was closed is told by a signal, whose default is to end the process:
    code that holds the interpreter's lock cannot be in its way.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)

    def watch() -> None:
        os.read(lifeline, 1)
        os._exit(1)

    threading.Thread(target=watch, name="iocflow-lifeline", daemon=True).start()


class Line:
    """The channel to the worker; log records of other threads come in between."""

    def __init__(self, connection: Connection[Any, Any]) -> None:
        """Take it."""
        self._connection, self._lock = connection, threading.Lock()

    def send(self, message: object) -> None:
        """Send a message."""
        data = pickle.dumps(message)
        with self._lock:
            self._connection.send_bytes(data)

    def receive(self) -> Any:
        """Return the next message; only one thread asks."""
        return self._connection.recv()

    def ask(self, method: str, *args: Any) -> Any:
        """Return what the worker answers, or raise what it says."""
        self.send(Ask(method, args))
        answer: Answer = self.receive()
        if answer.raises is not None:
            raise answer.raises
        return answer.value


class ToWorker(logging.handlers.QueueHandler):
    """Hands log records to the worker."""

    def __init__(self, line: Line) -> None:
        """Take the channel."""
        super().__init__(line)  # type: ignore[arg-type]
        self._line = line

    def enqueue(self, record: logging.LogRecord) -> None:
        """Send a record."""
        self._line.send(record)


class Group:
    """The run's group, by value."""

    def __init__(self, key: str | None, state: Any) -> None:
        """Take what the worker has."""
        self.key, self.state = key, state


class RemoteStep(StepInfo):
    """`context.step` in the process of an activity: what is not known here, the worker is asked for."""

    def __init__(self, attempt: Attempt, line: Line) -> None:
        """Take what the worker sent."""
        self._line, self._lent = line, attempt.group and Group(*attempt.group)
        self._came = copy.deepcopy(attempt.group and attempt.group[1])
        self._memo = Memo({}, self._save)
        super().__init__(attempt.step["run_id"], attempt.step["processor"], attempt.scheduled_for)
        for name in ("activity", "idempotency_key", "attempt"):
            setattr(self, name, attempt.step[name])
        self._memo = Memo(attempt.step["memo"], self._save)
        if attempt.remaining is not None:
            self.deadline = time.monotonic() + attempt.remaining

    def _save(self) -> None:
        self._line.ask("memo", dict(self._memo))

    def lend(self) -> StepInfo:
        """Return itself."""
        return self

    @property
    def memo(self) -> dict[str, Any]:
        """What this step's attempts tell each other: each change is with the worker before the statement is over."""
        return self._memo

    @memo.setter
    def memo(self, value: dict[str, Any]) -> None:
        self._memo.replace(value)

    @property
    def group(self) -> RunGroup:
        """The run's group; its state is taken over with the end of the attempt."""
        return self._lent or super().group

    @property
    def changed_state(self) -> tuple[Any] | None:
        """The group's state, when it is another than the one that came."""
        return None if self._lent is None or self._lent.state == self._came else (self._lent.state,)

    @property
    def transaction(self) -> Any:
        """Nothing: there is none here.

        Raises:
            IsolationError: Always.
        """
        raise IsolationError(f"{self.activity} has a process of its own, and cannot be in the worker's transaction")

    def wait_for(self, name: str, *, timeout: str | float | timedelta | None = None) -> Any:
        """Return what arrives under `name`, or leave the activity until it has, as without a process of its own."""
        return self._line.ask("wait_for", (name,), {"timeout": timeout})


class DurableRemoteStep(RemoteStep):
    """The same in a durable run, which has an outbox."""

    def publish(self, event: str) -> None:
        """Have an event sent when this step's success is on record."""
        self._line.ask("publish", (event,), {})


class Site:
    """Where an activity is at work."""

    def __init__(self, make: bytes) -> None:
        """Take what makes it; it is made in its first attempt, which fails when that does."""
        self._make = make
        self._made: Activity[Any] | None = None
        self._runner = AsyncRunner()

    @property
    def _activity(self) -> Activity[Any]:
        if self._made is None:
            self._made = pickle.loads(self._make)()
        return self._made

    def done(self, attempt: Attempt, line: Line) -> Done:
        """Do an attempt, and return what became of it."""
        step = RemoteStep(attempt, line) if attempt.group is None else DurableRemoteStep(attempt, line)
        asked: dict[str, Any] = {}
        try:
            context = _context(attempt)
            error, result, left = self._executed(context, step)
            asked |= context._asked or {}
            if isinstance(result, ProcessContext):
                asked |= result._asked or {}
                result = None if result is context else _pickled_result(result, step.activity)
            changed = _changed(attempt, pickled_fields(context, step.activity))
        except Exception as raised:  # noqa: BLE001 - what cannot pass between the processes fails the attempt
            return Done({}, {}, error=_pickled_error(raised, step.activity))
        failed = None if error is None else _pickled_error(error, step.activity)
        return Done(changed, asked, result, failed, left, step.changed_state)

    def _executed(self, context: ProcessContext, step: RemoteStep) -> tuple[Exception | None, Any, bool]:
        """Return what the activity raised, what it returned, and whether it left to wait."""
        context._lender = step
        token = current.set(step)
        try:
            activity = self._activity
            return None, settle(activity, activity.execute(context), self._runner, step.remaining()), False
        except RunSignal:
            return None, None, True
        except Exception as error:  # noqa: BLE001 - it is raised again where the run is
            return error, None, False
        finally:
            context._lender = None
            current.reset(token)


def _context(attempt: Attempt) -> ProcessContext:
    """Return the run's context, by value."""
    cls = pickle.loads(attempt.context)
    context: ProcessContext = cls.__new__(cls)
    for name, value in attempt.fields.items():
        object.__setattr__(context, name, pickle.loads(value))
    return context


def _changed(attempt: Attempt, fields: dict[str, bytes]) -> dict[str, bytes]:
    """Return the fields that are not as they came."""
    gone = dict.fromkeys(attempt.fields.keys() - fields.keys(), ABSENT)
    return gone | {name: value for name, value in fields.items() if attempt.fields.get(name) != value}


def _pickled_result(context: ProcessContext, who: str) -> bytes:
    pickled_fields(context, who)  # which names the field that cannot be pickled
    return pickle.dumps(context)


def _pickled_error(error: Exception, who: str) -> bytes:
    """Return an error as it passes between processes: itself, or, where its class cannot do that, its record."""
    text = "".join(traceback.format_exception(error))
    try:
        error.add_note(f"in the process of {who}:\n{text}")
        data = pickle.dumps(error)
        again = pickle.loads(data)
        if type(again) is type(error) and text_of(again) == text_of(error):
            return data
    except Exception as refused:  # noqa: BLE001 - classes may refuse in many ways
        text += f"\nIts class {type(error).__name__} does not pass between processes: {text_of(refused)}"
    return pickle.dumps({**record_of(type(error), text_of(error)), "notes": [f"in the process of {who}:\n{text}"]})
