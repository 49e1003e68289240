"""What is known of a processor where its runs are submitted."""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import dataclass
from typing import Any, Literal

from iocflow.coercion import coerce
from iocflow.context import ProcessContext, seed_type_of
from iocflow.durable.contexts.codec import ContextCodec
from iocflow.errors import SeedError

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

    def __init__(
        self, context_type: type[ProcessContext], durable: Durable | None = None, *, plain: bool = False
    ) -> None:
        """Take the class; `plain` says that contexts are made by calling it, and nothing else sets a seed.

        Raises:
            ContextTypeError: It cannot be stored.
        """
        self.durable = durable or Durable()
        self.codec = ContextCodec(context_type)
        self.needs_seed = plain and _needs_seed(context_type)

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


def _needs_seed(context_type: type[ProcessContext]) -> bool:
    """Return whether a new context has no seed of its own, and None is none that fits."""
    own = inspect.getattr_static(context_type, "seed_data", None)
    if own is not None and not inspect.ismemberdescriptor(own):
        return False
    field = getattr(context_type, "__dataclass_fields__", {}).get("seed_data")
    if field and (field.default_factory is not dataclasses.MISSING or hasattr(context_type, "__post_init__")):
        return False
    maker = next(base for base in context_type.__mro__ if "__init__" in vars(base))
    if issubclass(maker, ProcessContext) and not dataclasses.is_dataclass(maker):
        return False
    try:
        coerce(None, seed_type_of(context_type), "seed")
    except SeedError:
        return True
    return False
