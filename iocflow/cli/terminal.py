"""Where the commands write: the result on standard output, everything else on standard error."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TextIO

import typer

from iocflow.cli.streams import lead_nowhere, unwritten
from iocflow.launch.texts import error_text, json_line, printable

__all__ = ["Terminal", "described", "table"]


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

    @property
    def coloured(self) -> bool:
        """Whether the result may be coloured."""
        return self.colour and (self._result or sys.stdout).isatty()

    def styled(self, text: str, colour: str) -> str:
        """Return `text`, a part of the result, in `colour` (typer's name of it, or empty) if it may be coloured."""
        return typer.style(text, fg=colour) if colour and self.coloured else text

    def plain(self, text: str) -> str:
        """Return `text`, a part of the result that comes from data: masked, and without a control character."""
        return printable(self.mask(text))

    def write(self, text: str = "") -> None:
        """Write a line of the result.

        Raises:
            OutputClosedError: Nobody reads it any more.
            OutputFailedError: It cannot be written.
        """
        self._put(self.mask(text))

    def write_json(self, data: object) -> None:
        """Write `data` as one line of JSON; secrets are taken out of its texts, so that it stays JSON.

        Raises:
            OutputClosedError: Nobody reads it any more.
            OutputFailedError: It cannot be written.
        """
        self._put(json_line(self._masked(data)))

    def write_bytes(self, data: bytes) -> None:
        """Write bytes as they are, unmasked.

        Raises:
            OutputClosedError: Nobody reads it any more.
            OutputFailedError: It cannot be written.
        """
        stream = self._result or sys.stdout
        try:
            stream.flush()
            stream.buffer.write(data)
            stream.buffer.flush()
        except OSError as error:
            raise unwritten(stream, error) from error

    def abandoned(self, error: BaseException) -> bool:
        """Return whether `error` comes of user code that printed after the reader of standard output had gone.

        A pipe of the user's own may break too: that is an error like any other. Afterwards standard output leads
        nowhere.
        """
        if not _of_a_pipe(error) or not _without_reader(sys.stdout):
            return False
        lead_nowhere(sys.stdout)
        return True

    def _put(self, line: str) -> None:
        stream = self._result or sys.stdout
        try:
            stream.write(line + "\n")
            stream.flush()
        except OSError as error:
            raise unwritten(stream, error) from error

    def _masked(self, data: object) -> object:
        if isinstance(data, Mapping):
            return {key: self._masked(value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return [self._masked(value) for value in data]
        return self.mask(data) if isinstance(data, str) else data

    def complain(self, text: str, *, head: str = "iocflow: ") -> None:
        """Write an error for the person at the keyboard: on one line, unless it has no `head`."""
        text = self.mask(text)
        shown = printable(text) if head else "\n".join(map(printable, text.split("\n")))
        if self.colour and sys.stderr.isatty():
            head = typer.style(head, fg="red")
        try:
            sys.stderr.write(f"{head}{shown}\n")
            sys.stderr.flush()
        except OSError:
            lead_nowhere(sys.stderr)  # there is nobody to be told

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Keep standard output for `write`; what user code and its child processes print goes to standard error."""
        sys.stdout.flush()
        output = sys.stdout.fileno()
        with os.fdopen(os.dup(output), "w", encoding="utf-8", errors="backslashreplace") as self._result:
            os.dup2(sys.stderr.fileno(), output)
            try:
                yield
            finally:
                sys.stdout.flush()
                os.dup2(self._result.fileno(), output)
        self._result = None


def _of_a_pipe(error: BaseException) -> bool:
    """Return whether it all comes of pipes that broke, each part of a group: what closing several beans raised, say."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_of_a_pipe, error.exceptions))
    return isinstance(error, BrokenPipeError) or (error.__cause__ is not None and _of_a_pipe(error.__cause__))


def _without_reader(stream: TextIO) -> bool:
    """Return whether a stream is a pipe that nobody reads any more; what is buffered in it stays there."""
    poll = select.poll()
    poll.register(stream, select.POLLOUT)
    return any(state & (select.POLLERR | select.POLLHUP) for _, state in poll.poll(0))


def described(error: BaseException) -> str:
    """Return an error as `Type: message`, followed by its notes and by the errors of a group."""
    parts = [error_text(error), *getattr(error, "__notes__", ())]
    if isinstance(error, BaseExceptionGroup):
        parts += map(described, error.exceptions)
    return "; ".join(parts)


def table(rows: Sequence[Sequence[str]], *, paint: Callable[[str], str] = str) -> list[str]:
    """Return `rows` as lines with aligned columns; `paint` styles each cell after its width is settled."""
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return ["  " + "  ".join(map(paint, row)).rstrip() for row in padded]
