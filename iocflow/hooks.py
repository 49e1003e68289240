"""The two seams of the engine: observers watch, interceptors steer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from iocflow.context import ProcessContext, StepInfo
from iocflow.run import RunEvent

RunObserver = Callable[[RunEvent], None]
"""Takes one frozen event at a time, in the thread that runs the activity; what it raises is logged and dropped.

It is a plain function, not an `async` one: nobody would await it.
"""


class Interceptor(Protocol):
    """Wraps every attempt of every activity, inside its error handling; the first one wired is outermost.

    `around_step` is a plain method, not an `async` one; what `proceed` returns is awaited already.
    """

    def around_step(
        self, step: StepInfo, context: Any, proceed: Callable[[], ProcessContext | str | None]
    ) -> ProcessContext | str | None:
        """Call `proceed` and return what it returned, or something in its place.

        `proceed` runs the activity (and awaits it); not calling it skips the activity. What this raises is the
        attempt's error.
        """
