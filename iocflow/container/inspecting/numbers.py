"""Numbers, wherever they stand in an annotation: none is written as true or false, and some may be durations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from iocflow.wiring.duration import seconds_of

__all__ = ["FloatDuration", "TimeDuration", "WholeNumber", "with_numbers"]

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


def number(value: Any) -> Any:
    """Return what may be a number as it is; pydantic would take a truth value for 0 or 1.

    Raises:
        PydanticCustomError: It is a truth value.
    """
    if isinstance(value, bool):
        raise PydanticCustomError("number_type", "input should be a number")
    return value


def seconds(value: Any) -> Any:
    """Return a duration as seconds; anything else that may be a number as it is."""
    found = seconds_of(value) if isinstance(value, str) else None
    return number(value) if found is None else found


class WholeNumber:
    """Stands for an int.

    `Annotated` with a validator says the same, but makes pydantic import modules for a quarter of the time of a first
    load.
    """

    kind: type = int

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return pydantic's schema of the kind, with what is read before it."""
        return _reading(handler.generate_schema(cls.kind))


class FloatDuration(WholeNumber):
    """Stands for a float that may be written as a duration."""

    kind = float


class TimeDuration(WholeNumber):
    """Stands for a timedelta."""

    kind = timedelta


def _reading(schema: CoreSchema) -> CoreSchema:
    """Return the schema of a number with what is read before it."""
    read = number if schema["type"] == "int" else seconds
    return core_schema.no_info_before_validator_function(read, schema)


def with_numbers(schema: CoreSchema) -> CoreSchema:
    """Return a copy of a schema that reads numbers so, inside of data classes and the like too.

    The fields of a class are not in the annotation that names it, but in the schema that pydantic makes of it.
    """
    return cast(CoreSchema, _walked(schema))


def _walked(part: Any) -> Any:
    """Return a schema, or what holds some, with such numbers in it."""
    if isinstance(part, list | tuple):
        return type(part)(map(_walked, part))
    if not isinstance(part, Mapping):
        return part
    kind = part.get("type")
    if kind in ("int", "float", "timedelta"):
        return _reading(cast(CoreSchema, part))
    if kind in _OWN or _is_read(part):
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


def _is_read(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "function-before" and part["function"]["function"] in (number, seconds)
