"""What is known of a processor where its runs are submitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from iocflow.context import ProcessContext
from iocflow.durable.contexts.codec import ContextCodec

__all__ = ["Durable", "Intake"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Durable:
    """How a processor's runs are durable.

    Attributes:
        submitter: The seed's field with the name of who sends it, as in `customer` or `header.customer`.
        number: The seed's field with the submitter's own number, unique with the submitter.
        group: The seed's field whose runs go one at a time, in order.
        deadline: The seed's field with the longest time to the end, or that time itself, as in `1h`.
        on_failure: `failed` ends a failed run and lets its group go on; `incident` suspends it and holds its group.
    """

    submitter: str = ""
    number: str = ""
    group: str = ""
    deadline: str = ""
    on_failure: Literal["failed", "incident"] = "failed"


class Intake:
    """How the seeds of a durable processor are stored; no bean is needed for that, only the context's class."""

    def __init__(self, context_type: type[ProcessContext], durable: Durable | None = None) -> None:
        """Take the class.

        Raises:
            ContextTypeError: It cannot be stored.
        """
        self.durable = durable or Durable()
        self.codec = ContextCodec(context_type)

    def write_seed(self, seed: Any) -> bytes:
        """Return the seed as it is stored, empty for none.

        Raises:
            IocflowError: It does not fit the context's `seed_data`.
        """
        return b"" if seed is None else self.codec.write_seed(seed)

    def read_seed(self, body: bytes) -> Any:
        """Return a stored seed, fitted to its type; None for none."""
        return self.codec.read_seed(body) if body else None

    def seed_identity(self, body: bytes) -> bytes:
        """Return what of a stored seed tells it from others."""
        return self.codec.seed_identity(body) if body else b""
