"""A process that forks others: they start within milliseconds, and none of them outlives the test that it is for.

Python processes that import everything anew are slow to start, and a process with threads, as that of the tests, must
not fork. So `Nursery` starts this module as a program with one thread; it forks a child for each line that it reads,
and tells of each that ended.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LIMIT = 30.0
"""Seconds that anything is waited for, unless the caller says otherwise."""


class Nursery:
    """Starts children, and waits for them; everything has a time limit."""

    def __init__(self, folder: Path, root: Path) -> None:
        """Start the process that forks; `folder` gets what the children write, `root` is where `tests` lies."""
        self._folder = folder
        self._started: int | None = None
        self._ended: dict[int, int] = {}
        self._log: dict[int, Path] = {}
        self._buffer = b""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.nursery"],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def start(self, do: str, **what: Any) -> int:
        """Start a child that calls the function `do`, as in `tests.crash.child:work`, with `what`; return its pid."""
        log = self._folder / f"child-{len(self._log) + 1}.log"
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([do, what, str(log)]).encode() + b"\n")
        self._process.stdin.flush()
        until = time.monotonic() + LIMIT
        while self._started is None:
            self._hear(until)
        pid, self._started = self._started, None
        self._log[pid] = log
        return pid

    def wait(self, pid: int, *, timeout: float = LIMIT) -> int:
        """Return how a child ended: 0, or as `subprocess` has it, minus the signal.

        Raises:
            TimeoutError: It did not; the message has what it wrote.
        """
        until = time.monotonic() + timeout
        while pid not in self._ended:
            try:
                self._hear(until)
            except TimeoutError:
                os.kill(pid, signal.SIGUSR1)  # it tells where its threads are
                time.sleep(0.5)
                raise TimeoutError(f"child {pid} did not end in {timeout} s:\n{self.said(pid)}") from None
        return self._ended[pid]

    def ended(self, pid: int) -> bool:
        """Return whether a child has ended."""
        with contextlib.suppress(TimeoutError):
            while True:
                self._hear(time.monotonic())
        return pid in self._ended

    def said(self, pid: int) -> str:
        """Return what a child wrote to its standard streams."""
        return self._log[pid].read_text(encoding="utf-8", errors="replace")

    def run(self, do: str, *, timeout: float = LIMIT, **what: Any) -> None:
        """Start a child and wait for its good end."""
        pid = self.start(do, **what)
        code = self.wait(pid, timeout=timeout)
        assert code == 0, f"{do} ended with {code}:\n{self.said(pid)}"

    def kill(self, pid: int) -> None:
        """Kill a child, and wait until it is gone."""
        os.kill(pid, signal.SIGKILL)
        self.wait(pid)

    def close(self) -> None:
        """Kill all that is left, and end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            raise
        finally:
            self._process.stdout.close()

    def _hear(self, until: float) -> None:
        """Take in the next line: a pid when a child was started, with a code when it ended."""
        assert self._process.stdout is not None
        while b"\n" not in self._buffer:
            file = self._process.stdout.fileno()
            if not select.select([file], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError("the nursery says nothing")
            data = os.read(file, 65536)
            assert data, "the nursery is gone"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        pid, *code = json.loads(line)
        if code:
            self._ended[pid] = code[0]
        else:
            self._started = pid
            self._ended.pop(pid, None)  # the system gives a number again, some day


@contextlib.contextmanager
def nursery(folder: Path, root: Path) -> Iterator[Nursery]:
    """Give a nursery; whatever happens, no child is left."""
    one = Nursery(folder, root)
    try:
        yield one
    finally:
        one.close()


class _Forker:
    """The program: reads what to start, forks, and tells who ended."""

    def __init__(self) -> None:
        self._children: set[int] = set()
        self._woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tests' own end closes the input

    def serve(self) -> None:
        """Go on until the input ends; then kill and reap every child."""
        buffer = b""
        try:
            while True:
                ready, _, _ = select.select([0, self._woken], [], [])
                if self._woken in ready:
                    os.read(self._woken, 4096)
                    self._reap(os.WNOHANG)
                if 0 in ready:
                    data = os.read(0, 65536)
                    if not data:
                        return
                    buffer += data
                    while b"\n" in buffer:
                        line, _, buffer = buffer.partition(b"\n")
                        self._fork(*json.loads(line))
        finally:
            for pid in self._children:
                os.kill(pid, signal.SIGKILL)
            self._reap(0)

    def _fork(self, do: str, what: dict[str, Any], log: str) -> None:
        pid = os.fork()
        if pid == 0:
            _child(do, what, log)
        self._children.add(pid)
        _tell([pid])

    def _reap(self, options: int) -> None:
        while self._children:
            pid, status = os.waitpid(-1, options)
            if pid == 0:
                return
            self._children.discard(pid)
            with contextlib.suppress(BrokenPipeError):
                _tell([pid, os.waitstatus_to_exitcode(status)])


def _tell(what: list[int]) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def _child(do: str, what: dict[str, Any], log: str) -> None:
    """Be a child: call the function, and leave without a trace of the parent's."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for old, new in ((nothing, 0), (file, 1), (file, 2)):
            os.dup2(old, new)
        faulthandler.register(signal.SIGUSR1)
        module, _, name = do.partition(":")
        getattr(importlib.import_module(module), name)(**what)
        code = 0
    except BaseException:  # noqa: BLE001 - what it was is told, and the process ends
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    importlib.import_module("tests.crash.child")
    gc.freeze()  # what is there already stays shared with the children
    _Forker().serve()
