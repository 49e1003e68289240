"""`--seed`: the data that starts a run, as JSON on the command line, in a file, or on standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

from iocflow.cli.command import UsageError

__all__ = ["read_seed"]


def read_seed(argument: str | None) -> Any:
    """Return the seed data that `--seed` gives: None without one, `@FILE` reads a file, `@-` standard input.

    Raises:
        UsageError: The file cannot be read, or what it holds is no JSON, with line and column; or it is `null`.
    """
    if argument is None:
        return None
    source, text = "--seed", argument
    if argument.startswith("@"):
        source, text = _read(argument[1:])
    try:
        seed = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise UsageError(f"{source}:{error.lineno}:{error.colno}: {error.msg}; the seed is JSON") from error
    except RecursionError as error:
        raise UsageError(f"{source}: nested too deeply") from error
    if seed is None:
        raise UsageError(f"{source}: null is no seed; leave --seed out to run without one")
    return seed


def _refuse(constant: str) -> NoReturn:
    """Refuse what Python's reader accepts beyond JSON."""
    raise UsageError(f"--seed: {constant} is no JSON; write a number, or a string")


def _read(name: str) -> tuple[str, str]:
    """Return the name to show, and the text."""
    source = "standard input" if name == "-" else name
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return source, data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"--seed @{name}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--seed @{name}: byte {error.start} is not UTF-8") from error
