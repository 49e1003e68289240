"""Numbers with a fraction in the JSON of a seed, so that a `Decimal` has all the digits that were written."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from iocflow.coercion import coerce
from iocflow.context import ProcessContext, seed_type_of
from iocflow.errors import SeedError

__all__ = ["WrittenFloat", "fitted", "plain", "read_float", "shallow"]

_LEVELS = 100
"""How deep a document may be nested: fitting it to a type takes several calls a level, and Python allows 1,000."""


class WrittenFloat(float):
    """A float whose text is what was written, of which a `Decimal` is made where one is wanted."""

    def __init__(self, text: str) -> None:
        """Take the text of a JSON number."""
        self.text = text

    def __repr__(self) -> str:
        """Return the text."""
        return self.text

    def __reduce__(self) -> tuple[type, tuple[str]]:
        """Return what it is made of, for a copy."""
        return WrittenFloat, (self.text,)


def read_float(text: str) -> float:
    """Return the number that a JSON text with a fraction or exponent is; for the `parse_float` of `json.loads`.

    Raises:
        OverflowError: It is more than a float can hold.
    """
    number = float(text)
    if math.isinf(number):
        raise OverflowError(f"{text} is too large for a number; write it as a string")
    return number if repr(number) == text else WrittenFloat(text)


def shallow(document: Any) -> Any:
    """Return the data of a JSON document that is nested 100 levels deep at most.

    Raises:
        RecursionError: It is nested deeper: what works on it, level by level, would find no end.
    """
    level = {0: document}  # by identity: what holds itself would fill each level with more of it
    for _ in range(_LEVELS + 1):
        parts = [one.values() if type(one) is dict else one for one in level.values() if type(one) in (dict, list)]
        if not parts:
            return document
        level = {id(one): one for some in parts for one in some if type(one) in (dict, list)}
    raise RecursionError(f"nested more than {_LEVELS} levels deep")


def fitted(document: Any, context: type[ProcessContext]) -> Any:
    """Return the data of a JSON document as the seed of runs with such a context, free of `WrittenFloat`s.

    Only what has some is changed: it is fitted to the annotation of `seed_data`, as a run does it. What does not fit,
    or is for a context that takes its seed in its own way, has plain floats and is left to the run.

    Raises:
        SeedError: It is nested too deeply.
    """
    if type(document) not in (dict, list, WrittenFloat):
        return document
    try:
        bare = plain(shallow(document))
    except RecursionError as error:
        raise SeedError(f"seed: {error}") from None
    if bare is document or context.set_seed_data is not ProcessContext.set_seed_data:
        return bare
    try:
        return plain(coerce(document, seed_type_of(context), "seed"))
    except Exception:  # noqa: BLE001 - the class of a seed may raise anything; the run meets it again, and tells of it
        return bare


def plain(value: Any) -> Any:
    """Return `value` with a plain float in the place of each `WrittenFloat`; one without any is returned as it is."""
    if type(value) is WrittenFloat:
        return float(value)
    if type(value) is dict:
        found = {plain(key): plain(one) for key, one in value.items()}
        return value if _same(found.values(), value.values()) and _same(found, value) else found
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for name in (field.name for field in dataclasses.fields(value) if hasattr(value, field.name)):
            if (one := getattr(value, name)) is not (bare := plain(one)):
                object.__setattr__(value, name, bare)  # it may be frozen, and was made of the document just now
        return value
    if type(value) in (list, tuple, set, frozenset):
        items = [plain(one) for one in value]
        if not _same(items, value):
            return type(value)(items)
    return value


def _same(some: Any, others: Any) -> bool:
    return all(one is other for one, other in zip(some, others, strict=True))
