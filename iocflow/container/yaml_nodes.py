"""YAML text as nodes that know their place; nothing in a file is ever constructed."""

from __future__ import annotations

from iocflow.wiring import Findings, Table

__all__ = ["TAGS", "parse", "plain_value"]

TAGS = {"ref": "scalar", "new": "mapping", "provider": "scalar", "type": "scalar"}


def parse(text: str, file: str, findings: Findings) -> Table | None:
    """Return the one mapping that `text` holds, or note why it cannot be read and return None."""
    raise NotImplementedError


def plain_value(text: str) -> str | int | float | bool | None:
    """Return what an unquoted scalar stands for by the core schema of YAML 1.2."""
    raise NotImplementedError
