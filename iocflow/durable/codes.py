"""Small data as JSON: signals and group states."""

from __future__ import annotations

import json
from typing import Any

from iocflow.durable.contexts.codec import DEFAULT_LIMIT
from iocflow.durable.errors import SubmitError


def data_of(value: Any, what: str) -> bytes:
    """Return `value` as JSON, which has no more bytes than a context may have.

    Raises:
        SubmitError: It is no JSON, or too large; `what` names it.
    """
    try:
        data = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise SubmitError(f"{what} cannot be written as JSON: {error}") from error
    if len(data) > DEFAULT_LIMIT:
        raise SubmitError(
            f"{what} has {len(data):,} bytes as JSON, and {DEFAULT_LIMIT:,} is the limit: keep that in a file or a"
            " table, and send what finds it"
        )
    return data
