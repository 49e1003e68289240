"""How many runs a worker keeps in hand: enough that a commit is shared by many, and no more."""

from __future__ import annotations

_GROW_ABOVE, _FILLED, _SHRINK_BELOW = 0.25, 0.7, 0.06


class Window:
    """Adapts the number of runs in hand to what commits cost.

    It doubles when commits take more than a quarter of the time and a batch filled 70 % of it; it shrinks by an
    eighth when they take less than 6 %: where activities take long, no run waits in hand for a thread. (Shares found
    by measuring; see the benchmarks.)
    """

    def __init__(self, least: int, most: int) -> None:
        """Begin with `least`, one run a thread; `most` is the bound."""
        self.least, self.most = min(least, most), most
        self.size = self.least

    def adapt(self, share: float, batch: int) -> None:
        """Take the share of time that the last commit took, and how many records were in it."""
        if share > _GROW_ABOVE and batch >= _FILLED * self.size:
            self.size = min(self.most, self.size * 2)
        elif share < _SHRINK_BELOW:
            self.size = max(self.least, self.size - max(1, self.size // 8))
