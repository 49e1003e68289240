"""The three standard streams, as a command finds them."""

from __future__ import annotations

import io
import os
import sys

__all__ = ["settle_streams"]

NAMES = ("stdin", "stdout", "stderr")


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
