"""`iocflow version`."""

from __future__ import annotations

import platform
from importlib import metadata

from iocflow.cli.command import Session, command
from iocflow.launch import ExitCode

__all__ = ["version"]


@command("iocflow version", "iocflow --version")
def version(session: Session) -> ExitCode:
    """Print the version of iocflow and of the Python that runs it."""
    session.terminal.write(f"iocflow {metadata.version('iocflow')} (Python {platform.python_version()})")
    return ExitCode.OK
