"""How far long work is, on standard error: a line that is redrawn on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from iocflow.cli.terminal import Terminal

__all__ = ["Progress"]

_REDRAW = 0.1
_LINE = 10.0
"""Seconds between two redraws, and between two lines where nothing can be redrawn."""


class Progress:
    """Tells how much is done, while the block runs."""

    def __init__(self, terminal: Terminal, what: str) -> None:
        """Take where to tell it, and what is done, as `submitted`."""
        self._live = terminal.live
        self._what = what
        self._next = time.monotonic() + (_REDRAW if self._live else _LINE)
        self._drawn = False

    def at(self, done: int) -> None:
        """Note how many are done."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (_REDRAW if self._live else _LINE)
        text = f"{done:,} {self._what}"
        sys.stderr.write(f"\r{text}\x1b[K" if self._live else f"{text}\n")
        sys.stderr.flush()
        self._drawn = self._live

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the line off the screen."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
