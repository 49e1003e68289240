"""How a scheduled launcher deals with time that went by, and with ticks that take longer than it rests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from iocflow.launch.contract import Overlap
from iocflow.launch.errors import LauncherError
from iocflow.schedule.timing import Every, Timing
from iocflow.wiring.duration import duration_text

__all__ = ["Late", "PollingOptions"]

LONGEST_JITTER = timedelta(days=1)


class Late(StrEnum):
    """What becomes of a tick that begins long after its moment: the machine slept, a clock was set, the pool was full.

    Attributes:
        RUN_ONCE: It runs; of several that were passed over, only the last one does.
        SKIP: It is dropped and counted.
    """

    RUN_ONCE = "run-once"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class PollingOptions:
    """How a scheduled launcher deals with time.

    Attributes:
        jitter: Up to how much later than its moment a tick is queued, anew at random for each; it does not add up.
    """

    late: Late = Late.RUN_ONCE
    overlap: Overlap = Overlap.SKIP
    jitter: timedelta = timedelta()

    def check(self, timing: Timing | None) -> None:
        """Refuse what cannot be meant with that timing, or with any.

        Raises:
            LauncherError: The jitter is negative, above a day, or not below the interval; overlaps are to be allowed.
        """
        most = timing.step if isinstance(timing, Every) else LONGEST_JITTER
        if not timedelta() <= self.jitter < most:
            raise LauncherError(
                f"jitter {duration_text(self.jitter)} is out of bounds; write less than {duration_text(most)}"
            )
        if self.overlap is Overlap.ALLOW:
            raise LauncherError("two ticks of one launcher never run at once; write overlap: skip, or queue-one")
