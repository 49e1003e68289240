"""What a store tells of runs as plain data, for JSON: times are ISO 8601 in UTC, durations are in seconds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from iocflow.store.reports import Entry, RunStatus

__all__ = ["TIMES", "entry_data", "run_data"]

TIMES = ("submitted", "started", "ended", "deadline", "not_before")
"""The attributes of a run that are times."""


def run_data(run: RunStatus) -> dict[str, Any]:
    """Return a run as JSON-able data."""
    data = {field.name: getattr(run, field.name) for field in dataclasses.fields(run)}
    waits = [{**one._asdict(), "until": _iso(one.until)} for one in run.waits]
    return {**data, **{name: _iso(data[name]) for name in TIMES}, "error": _error_data(run.error), "waits": waits}


def entry_data(entry: Entry) -> dict[str, Any]:
    """Return an entry of a journal as JSON-able data."""
    times = {"at": _iso(entry.at), "began": _iso(entry.began)}
    return {**entry._asdict(), **times, "error": _error_data(entry.error)}


def _error_data(error: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what of an error's record tells of the error; the rest is the engine's."""
    return None if error is None else {name: error.get(name) for name in ("type", "message", "cause", "notes")}


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
