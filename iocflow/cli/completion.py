"""What the shell offers when the tab key is pressed."""

from __future__ import annotations

import importlib
import os
import sys

import typer

from iocflow.cli.files import applications, is_module
from iocflow.container import check

__all__ = ["processor_ids"]


def processor_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the processors of the FILE that was typed; none of them when it cannot be read."""
    file = ctx.params.get("file") or ""
    sys.path.insert(0, os.getcwd())
    if is_module(file):
        module, _, name = file.partition(":")
        app = applications(importlib.import_module(module)).get(name)
        return [id for id in (app.processors if app else ()) if id.startswith(incomplete)]
    if not os.path.isfile(file):
        return []
    checked = check(file, profiles=ctx.params.get("profile") or ())
    return [id for id in checked.summary["processors"] if id.startswith(incomplete)]
