"""`--seed`: the data that starts a run, as JSON on the command line, in a file, or on standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

from iocflow.cli.command import UsageError
from iocflow.wiring.json_floats import read_float, shallow

__all__ = ["parse_json", "read_json", "read_seed"]


def read_seed(argument: str | None) -> Any:
    """Return the seed data that `--seed` gives: None without one, `@FILE` reads a file, `@-` standard input.

    Raises:
        UsageError: The file cannot be read, or what it holds is no JSON, with line and column; or it is `null`.
    """
    if argument is None:
        return None
    seed = read_json("--seed", argument)
    if seed is None:
        raise UsageError("--seed: null is no seed; leave --seed out to run without one")
    return seed


def read_json(option: str, argument: str) -> Any:
    """Return the data that an option gives: JSON, or `@FILE` with JSON in it, or `@-` for standard input.

    Raises:
        UsageError: The file cannot be read, or what it holds is no JSON, with line and column.
    """
    if argument.startswith("@"):
        return parse_json(*_read(option, argument[1:]))
    return parse_json(option, argument)


def parse_json(source: str, text: str) -> Any:
    """Return the data that `text` is.

    Raises:
        UsageError: It is no JSON, with line and column behind `source`.
    """

    def refuse(constant: str) -> NoReturn:
        raise UsageError(f"{source}: {constant} is no JSON; write a number, or a string")

    try:
        return shallow(json.loads(text, parse_constant=refuse, parse_float=read_float))
    except json.JSONDecodeError as error:
        raise UsageError(f"{source}:{error.lineno}:{error.colno}: {error.msg}; it has to be JSON") from error
    except ValueError as error:
        raise UsageError(f"{source}: it has a number of thousands of digits; write it as a string") from error
    except OverflowError as error:
        raise UsageError(f"{source}: {error}") from error
    except RecursionError as error:
        raise UsageError(f"{source}: nested too deeply; 100 levels are the most") from error


def _read(option: str, name: str) -> tuple[str, str]:
    """Return the name to show, and the text."""
    source = "standard input" if name == "-" else name
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return source, data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{option} @{name}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{option} @{name}: byte {error.start} is not UTF-8") from error
