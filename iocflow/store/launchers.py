"""What a store keeps of scheduled launchers: the seam between the daemons above and the table below.

A firing is known by its moment: seconds since the epoch, as the daemon's schedule tells it. Leases are on the store's
own clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

__all__ = ["GIVEN_UP_AFTER", "Answer", "End", "Firing", "Launchers", "Standing", "Told"]

GIVEN_UP_AFTER = 3
"""How often one firing is begun at most: a process that it kills every time is not to be killed for ever."""


class Standing(NamedTuple):
    """A launcher, as the store knows it.

    Attributes:
        name: Its id, unique among all daemons of the store.
        timing: When it fires, as a person would write it.
        since: When a daemon first served it; nothing before that was missed.
        upto: The last moment that is dealt with: fired, missed, or passed over while it was paused; None before the
            first.
        paused: Whether an operator paused it.
        asked: How often an operator asked for a firing in all.
        answered: How many of these were begun.
        busy, served: Whether a tick is in hand, and whether it is served at all, by a daemon that lives.
        began, ended: When the last tick began and ended; `ended` is None while it is in hand, and of one that was lost.
        outcome: What became of the last one that ended, in words.
        run: The run that it started, when it was one; else empty.
        fired, missed: How many ticks ended, and how many moments passed without one.
        at, who, why: The last act of an operator.
    """

    name: str
    timing: str
    since: float
    upto: float | None
    paused: bool
    asked: int
    answered: int
    busy: bool
    served: bool
    began: float | None
    ended: float | None
    outcome: str
    run: str
    fired: int
    missed: int
    at: float | None
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Firing:
    """A firing that a daemon wants to begin.

    Attributes:
        name: The launcher.
        moment: When it was due.
        gap: No other may have been due within so many seconds before it.
        rest: Seconds until the next one. A later firing keeps this one back, unless it lies further ahead of the
            store's clock than this: then a clock had been set wrong, and waiting for it would be silence.
        missed: How many earlier ones were passed over.
        asked: Which of the operators' requests it answers, from 1; 0 when it is the schedule's.
    """

    name: str
    moment: float
    gap: float = 0.0
    rest: float = float("inf")
    missed: int = 0
    asked: int = 0


class End(NamedTuple):
    """What became of a firing that was begun: in words, and the run that it started when it was one, else empty."""

    firing: Firing
    outcome: str
    run: str


Answer = Literal["yours", "done", "busy", "paused", "given up"]
"""Whether a firing may begin: it is the caller's; it was dealt with before; a tick is in hand, maybe this one; the
launcher is paused; it was begun before and never ended, too often. The last two deal with it."""


class Told(NamedTuple):
    """The answer to a daemon that wants to begin a firing.

    Attributes:
        upto: The last moment that is dealt with.
        wait: Of `busy`, after how many seconds the tick in hand is lost if its daemon is dead.
    """

    answer: Answer
    upto: float | None
    wait: float = 0.0


class Launchers(Protocol):
    """The table; every method but `reserve` and `release` is one transaction, and may be called from any thread.

    Raises:
        StoreError: From every method: the store is lost, full or read-only.
    """

    def reserve(self) -> None:
        """Keep other daemons from the launchers, where a store has them served by one at a time, and not by many.

        What one had in hand that is dead can then be begun at once.

        Raises:
            StoreLockedError: Another daemon serves them.
        """

    def release(self) -> None:
        """Let others have them."""

    def now(self) -> float:
        """Return the store's time."""

    def serve(self, timings: Mapping[str, str], daemon: str, lease: float) -> dict[str, Standing]:
        """Note that a daemon serves these launchers, with their timings, and lives; return how they stand."""

    def standings(self, names: Sequence[str] = ()) -> list[Standing]:
        """Return how launchers stand, by name: those that are asked for, or all."""

    def write(
        self, ends: Sequence[End], begins: Sequence[Firing], daemon: str, lease: float
    ) -> tuple[list[bool], list[Told]]:
        """Deal with firings that have ended, then give others to a daemon; answer each, in order.

        Of all daemons that ask for a firing one gets it. It has to end it, or show life, before its lease is over. An
        end is False when another daemon took the firing over meanwhile.
        """

    def give_back(self, name: str, daemon: str) -> None:
        """Leave the firing that a daemon has in hand as if it had never begun it."""

    def skip(self, name: str, moment: float, missed: int) -> None:
        """Deal with firings up to a moment that never ran, `missed` in number."""

    # Operating.

    def pause(self, name: str, *, who: str, why: str) -> bool:
        """Let a launcher fire no more; False when there is none of that name."""

    def resume(self, name: str, *, who: str, why: str) -> bool:
        """Let it fire again, from now on: what would have been fired meanwhile is not made up for."""

    def trigger(self, name: str, *, who: str, why: str) -> bool:
        """Ask for one firing as soon as may be, paused or not."""
