"""Floats and timedeltas that a file may write as durations, wherever they stand in an annotation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from iocflow.wiring.duration import seconds_of

__all__ = ["FloatDuration", "TimeDuration", "with_durations"]

_PARTS = (
    "arguments_schema",
    "choices",
    "definitions",
    "fields",
    "items_schema",
    "json_schema",
    "keys_schema",
    "lax_schema",
    "python_schema",
    "schema",
    "steps",
    "strict_schema",
    "values_schema",
)
"""Where the schemas stand that a schema of pydantic-core is made of."""
_OWN = ("model", "definition-ref")
"""Schemas that stay what they are: a model has rules of its own, a reference none."""


def seconds(value: Any) -> Any:
    """Return a duration as seconds; anything else as it is."""
    found = seconds_of(value) if isinstance(value, str) else None
    return value if found is None else found


class FloatDuration:
    """Stands for a float that may be written as a duration.

    `Annotated` with a validator says the same, but makes pydantic import modules for a quarter of the time of a first
    load.
    """

    kind: type = float

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return pydantic's schema of the kind, with durations before it."""
        return core_schema.no_info_before_validator_function(seconds, handler.generate_schema(cls.kind))


class TimeDuration(FloatDuration):
    """Stands for a timedelta."""

    kind = timedelta


def with_durations(schema: CoreSchema) -> CoreSchema:
    """Return a copy of a schema that takes durations, inside of data classes and the like too.

    The fields of a class are not in the annotation that names it, but in the schema that pydantic makes of it.
    """
    return cast(CoreSchema, _walked(schema))


def _walked(part: Any) -> Any:
    """Return a schema, or what holds some, with durations in it."""
    if isinstance(part, list | tuple):
        return type(part)(map(_walked, part))
    if not isinstance(part, Mapping):
        return part
    kind = part.get("type")
    if kind in ("float", "timedelta"):
        return core_schema.no_info_before_validator_function(seconds, cast(CoreSchema, part))
    if kind in _OWN or _takes_durations(part):
        return part
    if not isinstance(kind, str):  # fields or parameters, by name
        return {key: _walked(value) for key, value in part.items()}
    found = {key: _walked(value) if key in _PARTS else value for key, value in part.items()}
    if kind == "union":
        found["choices"] = _choices(part["choices"])
    return found


def _choices(choices: list[Any]) -> list[Any]:
    """Return the choices of a union; beside text, what would be a float stays what it is."""
    kinds = [(one[0] if isinstance(one, tuple) else one)["type"] for one in choices]
    return [
        one if kind == "float" and "str" in kinds else _walked(one) for one, kind in zip(choices, kinds, strict=True)
    ]


def _takes_durations(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "function-before" and part["function"]["function"] is seconds
