"""Launching: one contract for schedule, event and command line, the bounded pool, and the daemon."""

from iocflow.launch.contract import Acknowledgement, Launch, Launchable, Overlap, Poller, acknowledgement_of
from iocflow.launch.exit_codes import ExitCode
from iocflow.launch.settings import DaemonSettings

__all__ = [
    "Acknowledgement",
    "DaemonSettings",
    "ExitCode",
    "Launch",
    "Launchable",
    "Overlap",
    "Poller",
    "acknowledgement_of",
]
