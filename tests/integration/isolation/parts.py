"""What the tests of isolated activities run in other processes."""

from __future__ import annotations

import ctypes
import logging
import os
import re
import subprocess
import sys
import threading
import time
from typing import Any

from iocflow import Activity, ProcessContext


class Work(ProcessContext):
    """A context of data, and of one field that may be none."""

    seed_data: Any
    n: int = 0
    pid: int
    heard: Any = None
    lost: str = "there"
    thing: object = None


class PlainError(Exception):
    """An error that can be pickled."""


class StubbornError(ValueError):
    """One that cannot: it wants two arguments."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")


class Do(Activity[Work]):
    """Counts, and then does what its word says."""

    def __init__(self, word: str = "nothing") -> None:
        self.word = word

    def execute(self, context: Work) -> Any:
        """Do it."""
        context.n += 1
        context.pid = os.getpid()
        return globals()[self.word.replace("-", "_")](context)


def nothing(context: Work) -> None:
    """Do no more."""


def hold_the_lock(context: Work) -> None:
    """Hang in code that lets no other thread run."""
    re.match(r"(a+)+$", "a" * 60 + "b")


def sleep(context: Work) -> None:
    """Hang, with a process of its own."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        context.step.memo["child"] = process.pid
        time.sleep(60)


def leave(context: Work) -> None:
    """Leave the interpreter at once."""
    os._exit(3)


def exit_politely(context: Work) -> None:
    """Leave the interpreter."""
    raise SystemExit(4)


def crash(context: Work) -> None:
    """Read what is not there."""
    ctypes.string_at(0)


def fail(context: Work) -> None:
    """Raise what can be pickled."""
    raise PlainError("no")


def fail_stubbornly(context: Work) -> None:
    """Raise what cannot be pickled."""
    raise StubbornError("no", "never")


def keep_a_lock(context: Work) -> None:
    """Leave something on the context that is no data."""
    context.thing = threading.Lock()


def stop(context: Work) -> None:
    """Stop the run."""
    context.stop_process("enough")


def find_nothing(context: Work) -> None:
    """Say that there is nothing to do."""
    context.nothing_to_do()


def name_a_result(context: Work) -> str:
    """Return a result by name."""
    return "yes"


def replace(context: Work) -> Work:
    """Go on with another context."""
    other = Work()
    other.n, other.heard = 100, "other"
    return other


def forget(context: Work) -> None:
    """Set a field, and delete another one."""
    context.heard = {"a": [1, 2]}
    del context.lost


def remember(context: Work) -> None:
    """Use the memo, and the log."""
    context.step.memo.setdefault("seen", []).append(context.step.attempt)
    logging.getLogger("parts").info("attempt %s of %s", context.step.attempt, context.step.activity)
    if context.step.attempt == 1:
        os._exit(1)
    context.heard = dict(context.step.memo)


async def wait_a_little(context: Work) -> None:
    """Be async."""
    context.heard = "awaited"


def listen(context: Work) -> None:
    """Wait for a signal, in a durable run."""
    context.heard = context.step.wait_for("go")
    context.step.group.state = (context.step.group.state or 0) + 1


def left(context: Work) -> int | None:
    """Tell how much time is left."""
    context.heard = context.step.remaining()
    return None
