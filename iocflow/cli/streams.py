"""The three standard streams, as a command finds them."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO

from iocflow.errors import IocflowError

__all__ = [
    "OUTPUT_CLOSED",
    "OutputClosedError",
    "OutputFailedError",
    "lead_nowhere",
    "release_streams",
    "settle_streams",
    "unwritten",
]

NAMES = ("stdin", "stdout", "stderr")
OUTPUT_CLOSED = 141
"""What a shell expects of a process whose reader went away: 128 + SIGPIPE."""


class OutputClosedError(IocflowError):
    """Whoever read the standard output has gone (`| head`): nobody wants the rest."""


class OutputFailedError(IocflowError):
    """The standard output cannot be written: a disk is full, say."""


def settle_streams() -> None:
    """Let every standard stream be there, and take any text.

    One that the parent closed (`>&-`) leads nowhere from now on. Left closed, its number would go to the next file that
    is opened, a database, say, and what a child process prints would be written into that.
    """
    for number, name in enumerate(NAMES):
        if getattr(sys, name) is None:
            stream = open(os.devnull, "w" if number else "r", encoding="utf-8")  # noqa: SIM115  # the process's own, to its end
            if stream.fileno() == number:
                os.set_inheritable(number, True)
            setattr(sys, name, stream)
    for written in (sys.stdout, sys.stderr):
        if isinstance(written, io.TextIOWrapper):
            written.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show must not end a run


def unwritten(stream: TextIO, error: OSError) -> IocflowError:
    """Return what to raise when the result cannot be written to `stream`, which leads nowhere from now on."""
    lead_nowhere(stream)
    if isinstance(error, BrokenPipeError):
        return OutputClosedError("standard output was closed")
    return OutputFailedError(f"standard output cannot be written: {error.strerror or error}")


def lead_nowhere(stream: TextIO) -> None:
    """Throw away what a stream still holds, and what is to come.

    Whoever flushes it once more, at the latest the interpreter at its end, would complain.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def release_streams() -> IocflowError | None:
    """Write what the standard streams still hold; return why the output could not be.

    The interpreter would do it after this, and complain in its own words.
    """
    failure = None
    try:
        sys.stdout.flush()
    except OSError as error:
        failure = unwritten(sys.stdout, error)
    try:
        sys.stderr.flush()
    except OSError:
        lead_nowhere(sys.stderr)  # there is nobody to be told
    return failure
