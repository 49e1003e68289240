"""Working in this process until there is nothing to do."""

from __future__ import annotations

import time
from collections.abc import Callable

from iocflow.durable.worker.worker import Worker

__all__ = ["run_until_idle"]

_LOOK = 0.002
"""Seconds between two looks at whether there is something left."""


def run_until_idle(worker: Worker, tell: Callable[[], None] | None = None) -> None:
    """Start a worker, and stop it when it has nothing in hand and finds nothing to claim.

    Args:
        worker: A worker that is not started yet.
        tell: Called now and then meanwhile; what it raises ends the work.
    """
    worker.start()
    try:
        while not worker.idle():
            if tell:
                tell()
            time.sleep(_LOOK)
    finally:
        worker.stop()
