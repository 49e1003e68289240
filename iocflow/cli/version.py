"""What `iocflow --version` prints; in a module of its own, since finding it out takes a tenth of `--help`'s time."""

from __future__ import annotations

import platform
from importlib import metadata

__all__ = ["version_text"]


def version_text() -> str:
    """Return the version of iocflow and of the Python that runs it."""
    return f"iocflow {metadata.version('iocflow')} (Python {platform.python_version()})"
