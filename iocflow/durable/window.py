"""How many runs a worker keeps in hand: enough that a commit is shared by many, and no more."""

from __future__ import annotations

_LEAST = 16
_GROW_ABOVE, _FILLED, _SHRINK_BELOW = 0.25, 0.7, 0.06


class Window:
    """Adapts the number of runs in hand to what commits cost.

    It doubles when commits take more than a quarter of the time and a batch filled 70 % of it; it shrinks by an
    eighth when they take less than 6 %. (Shares found by measuring; see the benchmarks.)
    """

    def __init__(self, most: int) -> None:
        """Begin small; `most` is the bound."""
        self.most = most
        self.size = min(_LEAST, most)

    def adapt(self, share: float, batch: int) -> None:
        """Take the share of time that the last commit took, and how many records were in it."""
        if share > _GROW_ABOVE and batch >= _FILLED * self.size:
            self.size = min(self.most, self.size * 2)
        elif share < _SHRINK_BELOW:
            self.size = max(min(_LEAST, self.most), self.size - self.size // 8)
