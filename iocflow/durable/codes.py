"""Small data as JSON: signals and group states."""

from __future__ import annotations

import json
from typing import Any

from iocflow.durable.errors import SubmitError


def data_of(value: Any, what: str) -> bytes:
    """Return `value` as JSON.

    Raises:
        SubmitError: It is no JSON; `what` names it.
    """
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise SubmitError(f"{what} cannot be written as JSON: {error}") from error
