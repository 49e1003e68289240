"""The exit codes of iocflow's commands, in one place."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ExitCode"]


class ExitCode(IntEnum):
    """What a process of iocflow tells its parent when it ends.

    Attributes:
        OK: What was asked for was done; for the daemon: it was told to stop, and everything in hand was finished.
        FAILED: `run`: the run ended FAILED; of durable runs: it cannot be done as asked; any command: an error that
            nobody foresaw.
        USAGE: The command line is wrong.
        CONFIGURATION: The container file was refused, or names what can never work: a folder that is a file, say, or
            only moments that have passed.
        LOCKED: Another daemon has what this one needs.
        FORCED: The daemon ended with runs in hand: a second signal came, or the grace time was over.
        UNFINISHED: `status --wait`: the run is still open at the end of the timeout.
    """

    OK = 0
    FAILED = 1
    USAGE = 2
    CONFIGURATION = 3
    LOCKED = 4
    FORCED = 5
    UNFINISHED = 6
