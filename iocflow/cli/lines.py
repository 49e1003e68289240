"""`--seeds`: many seeds, one a line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import IO, Any, Self

from iocflow.cli.command import UsageError
from iocflow.cli.seeds import parse_json

__all__ = ["Lines"]


class Lines:
    """A file of JSON lines, or standard input, that is read as its seeds are wanted.

    Attributes:
        name: What the file is called in messages.
        broken: The lines that are no seeds, each with the reason.
        done: The last line of those that were dealt with; 0 at the beginning.
    """

    def __init__(self, argument: str, number_field: str) -> None:
        """Take what `--seeds` gives, and the path of the field with a seed's number.

        Raises:
            UsageError: It names no file.
        """
        if not argument.startswith("@"):
            raise UsageError(f"--seeds takes a file with a line of JSON for each run; write --seeds @{argument}")
        self._path = argument[1:]
        self._field = number_field
        self._file: IO[bytes] | None = None
        self._lines: list[int] = []
        self.name = "standard input" if self._path == "-" else self._path
        self.broken: list[tuple[int, str]] = []
        self.done = 0

    def seeds(self) -> Iterator[Any]:
        """Yield the seeds; empty lines are passed over, and those that are none are noted."""
        assert self._file is not None
        for line, data in enumerate(self._file, 1):
            if not data.strip():
                continue
            try:
                seed = parse_json("", data.decode("utf-8-sig"))
            except UnicodeDecodeError as error:
                self.broken.append((line, f"byte {error.start} is not UTF-8"))
            except UsageError as error:
                self.broken.append((line, str(error).replace(":1:", "column ", 1)))
            else:
                if self._field and self._value(seed) is None:
                    self.broken.append((line, f"the seed has no {self._field}, its --number-field"))
                    continue
                self._lines.append(line)
                yield seed

    def line_of(self, index: int) -> int:
        """Return the line in which the seed of that index stands."""
        return self._lines[index]

    def dealt_with(self, seeds: int) -> int:
        """Note that the first so many seeds were dealt with; return that number."""
        self.done = self._lines[seeds - 1]
        return seeds

    def number(self, seed: Any) -> str:
        """Return the own number of a seed that was yielded."""
        return str(self._value(seed))

    def _value(self, seed: Any) -> Any:
        value = seed
        for name in self._field.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        return None if isinstance(value, Mapping | list) else value

    def __enter__(self) -> Self:
        """Open the file."""
        try:
            self._file = sys.stdin.buffer if self._path == "-" else open(self._path, "rb")
        except OSError as error:
            raise UsageError(f"--seeds @{self._path}: {error.strerror or error}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        if self._file is not None and self._path != "-":
            self._file.close()
