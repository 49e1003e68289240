"""Writes the context of a durable run as JSON, and reads it in another process."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from iocflow.coercion import coerce
from iocflow.context import ProcessContext, fields_of, seed_type_of
from iocflow.durable.contexts.faults import find_fault
from iocflow.durable.contexts.fields import decoder_of, encoder, stored_fields
from iocflow.durable.contexts.moments import MomentChecks
from iocflow.durable.errors import ContextReadError, ContextTooLargeError, ContextTypeError, ContextValueError
from iocflow.errors import text_of

DEFAULT_LIMIT = 16 * 1024 * 1024
"""The most bytes that a stored context or seed may have."""

# No field's name: those with an underscore are the engine's.
_VERSION = "_version"

Upgrade = Callable[[dict[str, Any], int], dict[str, Any]]


class ContextCodec:
    """The stored form of one context class: a JSON object of the fields that are set, by their annotations.

    What is written was read back and found equal; what the `==` of a field's class leaves out is not compared. A value
    comes back as its annotation says: an int that a `float` field held is a float. Two fields that held one object hold
    two that are equal. No class is named in what is stored, and nothing but the annotated types is made of it.

    A class whose fields change may have a `version: ClassVar[int]`, 1 or more, and a class method
    `upgrade(data: dict, version: int) -> dict`: what an older version stored is handed to it as plain JSON, a seed as
    a context that has nothing but `seed_data`. What was stored without a version has version 0.
    """

    def __init__(self, context_type: type[ProcessContext], *, limit: int = DEFAULT_LIMIT) -> None:
        """Take the class, and the most bytes that a context or seed may have.

        Raises:
            ContextTypeError: The class has fields that cannot be stored; the message names all of them.
        """
        annotations, self._kinds = stored_fields(context_type)
        self._type = context_type
        self._limit = limit
        self._names = frozenset(annotations)
        self._version, self._upgrade = _versioning(context_type, self._names)
        self._slotted = any(
            inspect.ismemberdescriptor(inspect.getattr_static(context_type, name, None)) for name in self._names
        )
        checks = MomentChecks(self._kinds.values())
        self._moments = [(name, check) for name, kind in self._kinds.items() if (check := checks.of(kind))]
        self._encode = encoder().encode
        self._decode = decoder_of(annotations).decode
        self._split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

    def write(self, context: ProcessContext) -> bytes:
        """Return the fields that are set, as JSON.

        Raises:
            ContextValueError: A field would not come back as it is, or is not annotated; the message names it.
            ContextTooLargeError: It is larger than the limit.
        """
        fields = fields_of(context) if self._slotted else vars(context)
        return self._written(fields if fields.keys() <= self._names else self._without_marks(fields))

    def read(self, data: bytes, into: ProcessContext) -> None:
        """Set the fields on a new context; those that `data` lacks stay as its factory made them.

        Raises:
            ContextReadError: The class cannot read it; the message names the field and the reason. Nothing is set.
        """
        values = self._read(data)
        if self._slotted:
            for name, value in values.items():
                object.__setattr__(into, name, value)
        else:
            vars(into).update(values)

    def write_seed(self, seed: Any) -> bytes:
        """Return the seed, fitted to the annotation of `seed_data`: as the context that has nothing else.

        Raises:
            SeedError: It does not fit.
            ContextValueError: It would not come back as it is.
            ContextTooLargeError: It is larger than the limit.
        """
        return self._written({"seed_data": coerce(seed, seed_type_of(self._type), "seed")})

    def read_seed(self, data: bytes) -> Any:
        """Return the seed.

        Raises:
            ContextReadError: The class cannot read it.
        """
        values = self._read(data)
        if "seed_data" not in values:
            raise self._unreadable(": it has no seed_data")
        return values["seed_data"]

    def seed_identity(self, data: bytes) -> bytes:
        """Return what is the same for the same seed, written by whichever version of the class: to make a digest of.

        A set has another order in another process: a seed that is submitted twice needs a list or a tuple instead.
        """
        return self._encode(self._decode(data)) if self._version else data

    def _without_marks(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        for name in fields.keys() - self._names:
            if not name.startswith("_"):
                raise ContextValueError(
                    f"{self._type.__qualname__}.{name} is set and cannot be stored: annotate it on the class"
                )
        return {name: value for name, value in fields.items() if name in self._names}

    def _written(self, fields: Mapping[str, Any]) -> bytes:
        try:
            data = self._encode({**fields, _VERSION: self._version} if self._version else fields)
            proven = len(data) > self._limit or self._is_proven(fields, data)
        except Exception as error:
            raise self._refusal(fields) from error
        if len(data) > self._limit:
            raise self._too_large(fields, len(data))
        if not proven:
            raise self._refusal(fields)
        return data

    def _is_proven(self, fields: Mapping[str, Any], data: bytes) -> bool:
        """Return whether `data` reads as what it was made of."""
        if self._decode(data) != fields:
            return False
        return all(name not in fields or check(fields[name]) for name, check in self._moments)

    def _refusal(self, fields: Mapping[str, Any]) -> ContextValueError:
        """Return the error that names what cannot be stored; nothing of this is done for what can."""
        reasons = (self._reason(name, value) for name, value in fields.items())
        found = next((reason for reason in reasons if reason), ": it does not come back equal")
        return ContextValueError(f"{self._type.__qualname__}{found}")

    def _reason(self, name: str, value: Any) -> str | None:
        """Return why a field cannot be stored, and where in it, as `.lines[3].price: …`."""
        one = {name: value}
        try:
            if self._is_proven(one, self._encode(one)):
                return None
            reason = (
                f".{name}: it does not come back equal; does `__post_init__` change what is read, or `__eq__` fail?"
            )
        except RecursionError:
            return f".{name}: it is nested too deeply, or holds itself"
        except Exception as error:  # noqa: BLE001 - the value's own class may raise anything, and it is told of
            reason = _told(error, f".{name}")
        fault = find_fault(value, self._kinds[name])
        return f".{name}{fault[0]}: {fault[1]}" if fault else reason

    def _too_large(self, fields: Mapping[str, Any], size: int) -> ContextTooLargeError:
        sizes = {name: len(self._encode(value)) for name, value in fields.items()}
        biggest = max(sizes, key=sizes.__getitem__)
        return ContextTooLargeError(
            f"{self._type.__qualname__} has {size:,} bytes as JSON, and {self._limit:,} is the limit; its biggest "
            f"field is {biggest} with {sizes[biggest]:,}: keep that in a file or a table, and here what finds it",
            size=size,
            limit=self._limit,
            field=biggest,
        )

    def _read(self, data: bytes) -> dict[str, Any]:
        try:
            return self._decode(self._current(data))
        except ContextReadError:
            raise
        except Exception as error:
            raise self._unreadable(_told(error)) from error

    def _current(self, data: bytes) -> bytes:
        """Return `data` as this version of the class writes it; nothing in it is without a field."""
        stored = self._split(data)
        mark = stored.pop(_VERSION, None)
        version = 0 if mark is None else msgspec.json.decode(mark, type=int)
        if version > self._version:
            raise self._unreadable(f": version {version} of the class wrote it, and this is {self._version or 'none'}")
        names = stored.keys()
        if version < self._version:
            upgraded = self._upgraded(json.loads(data), version)
            names, data = upgraded.keys(), self._encode(upgraded)
        for name in names - self._names:
            raise self._unreadable(f".{name}: the class has no such field; keep it, or take it out in `upgrade`")
        return data

    def _upgraded(self, stored: dict[str, Any], version: int) -> dict[str, Any]:
        stored.pop(_VERSION, None)
        if self._upgrade is None:
            raise self._unreadable(f": version {version} of the class wrote it; give the class an `upgrade`")
        try:
            upgraded = self._upgrade(stored, version)
        except Exception as error:
            raise self._unreadable(f": its `upgrade` from version {version} failed: {_text(error)}") from error
        if not isinstance(upgraded, dict):
            raise self._unreadable(
                f": its `upgrade` from version {version} returned {type(upgraded).__name__}, not a dict"
            )
        return upgraded

    def _unreadable(self, reason: str) -> ContextReadError:
        return ContextReadError(f"a stored {self._type.__qualname__}{reason}")


def _versioning(context_type: type[ProcessContext], fields: frozenset[str]) -> tuple[int, Upgrade | None]:
    """Return the class's version, 0 without one, and its `upgrade`; a field of either name is neither."""
    version = 0 if "version" in fields else getattr(context_type, "version", 0)
    if type(version) is not int or version < 0:
        raise ContextTypeError(f"{context_type.__qualname__}.version is {version!r}; it must be a number, 1 or more")
    return version, None if "upgrade" in fields else getattr(context_type, "upgrade", None)


# How msgspec ends a message, as in "Expected `int`, got `str` - at `$.lines[3].price`".
_PLACE = re.compile(r"(.*) - at `(?:key in )?\$(.*)`")


def _told(error: Exception, where: str = "") -> str:
    """Return where it failed and the reason; `where` is for an error that does not say."""
    text = _text(error)
    found = _PLACE.fullmatch(text)
    return f"{found[2]}: {found[1]}" if found else f"{where}: {text}"


def _text(error: Exception) -> str:
    text = " ".join(text_of(error).split())
    return text if isinstance(error, ValueError | TypeError) else f"{type(error).__name__}: {text}"
