"""From rows of the tables to what the contract returns: shared by both dialects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from iocflow.store.contract import Entry, RunStatus

STATUS = """id, submitter, number, processor, state, outcome, reason, error, "group", priority, deliveries, submitted,
 started, ended, deadline, not_before, activity, steps"""
"""The columns of `v_run_status` that `status` takes."""

ENTRY = "number, at, kind, thread, name, began, outcome, attempts, error, result, who, why"
"""The columns of `v_journal` that `entry` takes."""


def data(value: Any) -> bytes | None:
    """Return JSON as it was stored."""
    return None if value is None else bytes(value)


def _error(text: str | None) -> Mapping[str, Any] | None:
    return None if text is None else cast("Mapping[str, Any]", json.loads(text))


def status(row: Sequence[Any], now: float) -> RunStatus:
    """Return a run's status of a row of `STATUS`."""
    *head, error, group, priority, deliveries, submitted, started, ended, deadline, not_before, activity, steps = row
    id, submitter, number, processor, state, outcome, reason = head
    return RunStatus(
        id=id,
        submitter=submitter,
        number=number,
        processor=processor,
        state=state,
        outcome=outcome,
        reason=reason,
        error=_error(error),
        group=group,
        priority=priority,
        deliveries=deliveries,
        submitted=submitted,
        started=started,
        ended=ended,
        deadline=deadline,
        not_before=not_before,
        activity=activity,
        spent=max(0.0, (now if ended is None else ended) - submitted),
        steps=steps,
    )


def entry(row: Sequence[Any]) -> Entry:
    """Return an entry of the journal of a row of `ENTRY`."""
    number, at, kind, thread, name, began, outcome, attempts, error, result, who, why = row
    return Entry(number, at, kind, thread, name, began, outcome, attempts, _error(error), result, who, why)
