"""The numbers of a run's rows."""

from __future__ import annotations

import threading

from iocflow.store.contract import Record


class Numbers:
    """Counts the rows of one run without a gap, in the order in which they are written."""

    def __init__(self, last: int) -> None:
        """Go on behind the number `last`."""
        self._last = last
        self._lock = threading.Lock()

    def next(self) -> int:
        """Return the next number, for a run of one strand."""
        self._last += 1
        return self._last

    def given(self, rows: list[Record]) -> list[Record]:
        """Give rows the next numbers."""
        with self._lock:
            first = self._last + 1
            self._last += len(rows)
        return [row._replace(n=first + i) for i, row in enumerate(rows)]

    def taken_back(self, rows: list[Record]) -> list[Record]:
        """Take the numbers of rows back that were not written, and are the last ones."""
        with self._lock:
            self._last -= len(rows)
        return [row._replace(n=0) for row in rows]
