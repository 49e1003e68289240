"""What a sender is told of how the run of its event ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from iocflow.durable.errors import ConflictError, ContextTooLargeError, ContextValueError, SubmitError
from iocflow.errors import SeedError
from iocflow.launch.contract import Acknowledgement
from iocflow.launch.ended import Ended
from iocflow.launch.http.messages import Response, json_response, problem

__all__ = ["STOPPING", "STORE_AWAY", "answer_of", "masked"]

_SENDERS_FAULT = {
    ConflictError: 409,
    ContextTooLargeError: 413,
    SeedError: 400,
    SubmitError: 400,
    ContextValueError: 400,
}

STORE_AWAY = problem(503, "the run cannot be recorded now; nothing was done", retry_after=5)
STOPPING = problem(503, "the daemon is stopping; nothing was done", retry_after=5)


def answer_of(ended: Ended, status: str | None, mask: Callable[[str], str]) -> Response:
    """Return the answer to a request whose run ended so.

    Args:
        ended: How the launch ended.
        status: The path of the run's status, if runs are recorded; then it is enough that it is.
        mask: Keeps secrets out of texts.
    """
    if ended.untried:
        return STORE_AWAY
    if status is not None and ended.run is not None:
        where = f"{status}{ended.run.id}"
        return json_response(202, {"run": ended.run.id, "status": where}, {"Location": where})
    reason = mask(ended.reason)
    fault = next((code for kind, code in _SENDERS_FAULT.items() if isinstance(ended.error, kind)), 0)
    if ended.refused and fault:
        return problem(fault, reason)
    told = {"run": ended.run_id, "outcome": ended.outcome.name.lower()}
    if ended.acknowledgement is Acknowledgement.DONE:
        return json_response(200, told)
    return problem(
        500, reason or f"the run ended {ended.outcome.name}", more={**told, "activity": ended.failing_activity}
    )


def masked(data: Any, mask: Callable[[str], str]) -> Any:
    """Return plain data with every text in it masked."""
    if isinstance(data, str):
        return mask(data)
    if isinstance(data, dict):
        return {key: masked(value, mask) for key, value in data.items()}
    return [masked(one, mask) for one in data] if isinstance(data, (list, tuple)) else data
