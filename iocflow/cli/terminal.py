"""Where the commands write: the result on standard output, everything else on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

import typer

from iocflow.errors import IocflowError

__all__ = ["OutputClosedError", "Terminal", "table"]


class OutputClosedError(IocflowError):
    """Whoever read the standard output has gone (`| head`): nobody wants the rest."""


class Terminal:
    """Writes for one command.

    Attributes:
        colour: Whether styles are wanted at all; a stream that is no terminal gets none in any case.
        mask: Replaces secrets in every text before it is written; set once they are known.
    """

    def __init__(self, *, colour: bool = True) -> None:
        """Write to the process's standard streams."""
        self.colour = colour
        self.mask: Callable[[str], str] = str
        self._result: TextIO | None = None

    @property
    def live(self) -> bool:
        """Whether standard error is a terminal on which a line may be redrawn."""
        return self.colour and sys.stderr.isatty()

    def styled(self, text: str, colour: str, stream: TextIO | None = None) -> str:
        """Return `text` in `colour` (a name that typer knows) if `stream`, else the result's, shows colours."""
        wanted = self.colour and (stream or self._result or sys.stdout).isatty()
        return typer.style(text, fg=colour) if wanted else text

    def write(self, text: str = "") -> None:
        """Write a line of the result.

        Raises:
            OutputClosedError: Nobody reads it any more.
        """
        stream = self._result or sys.stdout
        try:
            stream.write(self.mask(text) + "\n")
            stream.flush()
        except BrokenPipeError as error:
            raise OutputClosedError("standard output was closed") from error

    def complain(self, text: str) -> None:
        """Write an error for the person at the keyboard."""
        head = self.styled("iocflow:", "red", sys.stderr)
        sys.stderr.write(f"{head} {self.mask(text)}\n")
        sys.stderr.flush()

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Keep standard output for `write`; what user code and its child processes print goes to standard error."""
        sys.stdout.flush()
        output = sys.stdout.fileno()
        with os.fdopen(os.dup(output), "w", encoding="utf-8") as self._result:
            os.dup2(sys.stderr.fileno(), output)
            try:
                yield
            finally:
                sys.stdout.flush()
                os.dup2(self._result.fileno(), output)
        self._result = None


def table(rows: Sequence[Sequence[str]], *, indent: str = "  ") -> list[str]:
    """Return `rows` as lines with aligned columns; the last column is not padded."""
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
