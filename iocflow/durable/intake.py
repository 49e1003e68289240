"""What is known of a processor where its runs are only submitted."""

from __future__ import annotations

from typing import Any

from iocflow.context import ProcessContext
from iocflow.durable.contexts import ContextCodec
from iocflow.durable.job import Durable

__all__ = ["Intake"]


class Intake:
    """How a durable processor's seeds are stored: no bean is needed for it, only the class of the context."""

    def __init__(self, context_type: type[ProcessContext], durable: Durable) -> None:
        """Take the class.

        Raises:
            ContextTypeError: It cannot be stored.
        """
        self.durable = durable
        self._codec = ContextCodec(context_type)

    def write_seed(self, seed: Any) -> bytes:
        """Return the seed as it is stored, empty for none.

        Raises:
            IocflowError: It does not fit the context's `seed_data`.
        """
        return b"" if seed is None else self._codec.write_seed(seed)

    def seed_identity(self, body: bytes) -> bytes:
        """Return what of a stored seed tells it from others."""
        return self._codec.seed_identity(body) if body else b""
