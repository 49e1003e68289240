"""Activities of a file in processes of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from iocflow.activity import Activity
from iocflow.container.checking.description import Step
from iocflow.isolation import IsolatedActivity
from iocflow.isolation.messages import Make
from iocflow.wiring import Place

__all__ = ["Isolating"]


class Isolating:
    """Puts isolated activities in the place of those that are built here, and ends their processes."""

    def __init__(self, maker: Callable[[Place, str], Make]) -> None:
        """Take what returns, for the place and the name of a step, what makes its activity in another process."""
        self._maker = maker
        self._made: list[IsolatedActivity] = []

    def activity(self, step: Step, built: Activity[Any]) -> IsolatedActivity:
        """Return the isolated activity of a step, whose activity was built here."""
        made = IsolatedActivity(self._maker(step.place, step.name), built.name, built.error_handler)
        self._made.append(made)
        return made

    def close(self) -> None:
        """End the processes."""
        for one in self._made:
            one.close()
