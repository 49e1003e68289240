"""The process of an activity, as the worker sees it."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing import Pipe
from typing import Any

from iocflow.context import StepInfo
from iocflow.errors import RunSignal
from iocflow.isolation.errors import IsolatedProcessError, IsolationError
from iocflow.isolation.messages import Answer, Ask, Attempt, Begin, Done

_LOOK_EVERY = 0.25
"""Seconds between two looks whether the run was taken from this worker."""

_CODE = "import sys; sys.path[:] = {path!r}; from iocflow.isolation.serve import serve; serve({channel}, {lifeline})"


class Child:
    """A process that makes its activity once, and then does one attempt after another.

    It is neither a copy of this process, which has threads, nor does it import the program that was started. It ends
    with this process, however that ends: it holds the end of a pipe of which this process has the other one.
    """

    def __init__(self, make: bytes, name: str) -> None:
        """Start it; `make` is what makes the activity, pickled."""
        self._name = name
        self._channel, theirs = Pipe()
        end, self._lifeline = os.pipe()
        with contextlib.closing(theirs):
            try:
                code = _CODE.format(path=sys.path, channel=theirs.fileno(), lifeline=end)
                self._process = subprocess.Popen(
                    [sys.executable, "-c", code],
                    pass_fds=(theirs.fileno(), end),
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,  # it gets no Ctrl-C, and can be killed with all that it starts
                )
            except BaseException:
                self._channel.close()
                os.close(self._lifeline)
                raise
            finally:
                os.close(end)
        self._begin: Begin | None = Begin(make, sys.path, logging.getLogger().getEffectiveLevel())

    @property
    def alive(self) -> bool:
        """Whether it is there."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill it, and what it started."""
        self._channel.close()
        with contextlib.suppress(OSError):
            os.close(self._lifeline)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def do(self, attempt: Attempt, step: StepInfo) -> Done:
        """Have an attempt done; `step` is `context.step`, which the activity asks things of meanwhile.

        Raises:
            IsolatedProcessError: The process is gone.
            TimeoutError: The time is over, or the run was taken from this worker.
            RunSignal: The activity is to wait.
        """
        wait: RunSignal | None = None
        with self._gone():
            if self._begin is not None:
                self._channel.send(self._begin)
                self._begin = None
            self._channel.send(attempt)
        while True:
            said = self._said(step)
            if isinstance(said, Done):
                if said.left and wait is not None:
                    raise wait
                return said
            if isinstance(said, logging.LogRecord):
                logger = logging.getLogger(said.name)
                if logger.isEnabledFor(said.levelno):
                    logger.handle(said)
                continue
            answer = _answer(said, step)
            wait = answer.raises if isinstance(answer.raises, RunSignal) else None
            with self._gone():
                self._channel.send(answer)

    def _said(self, step: StepInfo) -> Any:
        """Return the next message."""
        with self._gone():
            while not self._channel.poll(_LOOK_EVERY if (left := step.remaining()) is None else min(left, _LOOK_EVERY)):
                if step.remaining() == 0:
                    raise TimeoutError(f"{self._name} took longer than its time limit: its process was killed")
                if step.cancelled:
                    raise TimeoutError(f"{self._name} was killed: its run was taken from this worker")
            return self._channel.recv()

    @contextlib.contextmanager
    def _gone(self) -> Iterator[None]:
        """Tell how the process ended when it does not answer."""
        try:
            yield
        except (EOFError, ConnectionError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            code = self._process.poll()
            if code is None:
                raise IsolationError(f"the process of {self._name} closed its channel, and is killed") from None
            how = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
            raise IsolatedProcessError(f"the process of {self._name} ended with {how}", code) from None


def _answer(asked: Ask, step: StepInfo) -> Answer:
    """Do what the activity asks of `context.step`, and return what becomes of it."""
    try:
        if asked.method == "memo":
            (step.memo,) = asked.args
            return Answer()
        return Answer(getattr(step, asked.method)(*asked.args[0], **asked.args[1]))
    except (Exception, RunSignal) as error:  # noqa: BLE001 - it is raised where the activity asked
        return Answer(raises=error)
