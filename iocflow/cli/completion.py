"""What the shell offers when the tab key is pressed."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable

import typer

from iocflow.cli.files import applications, is_module
from iocflow.container import check

__all__ = ["processor_ids"]


def processor_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the processors of the FILE that was typed; none when it cannot be read."""
    file = ctx.params.get("file") or ""
    sys.path.insert(0, os.getcwd())
    try:
        known = _processors(file, ctx.params.get("profile") or ())
    except Exception:  # noqa: BLE001  # a module of the user may raise anything, and the shell would print it into the line
        known = ()
    return [id for id in known if id.startswith(incomplete)]


def _processors(file: str, profiles: Iterable[str]) -> Iterable[str]:
    if is_module(file):
        module, _, name = file.partition(":")
        return applications(importlib.import_module(module))[name].processors
    if not os.path.isfile(file):
        return ()
    ids: Iterable[str] = check(file, profiles=profiles).summary["processors"]
    return ids
