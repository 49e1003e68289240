"""The fields of a context class that are stored, and the refusal of those that cannot be."""

from __future__ import annotations

import dataclasses
import inspect
import io
import pathlib
import socket
import typing
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import inspect as kinds

from iocflow.context import ProcessContext, annotation_of
from iocflow.durable.contexts.kinds import STORABLE, Kind, reach
from iocflow.durable.errors import ContextTypeError
from iocflow.errors import SeedError
from iocflow.wiring.fresh import unfresh

_SEED = "annotate it with the type of the seed, or with None where there is none"
_UNTYPED = "write the type of what it holds"
_UNION = "JSON would not tell these types apart; store one of them, or a dataclass with a field for each"
_KEY = "a key is text in JSON and cannot be read as this; use str, int or another plain type"
_UNEQUAL = "it has no `__eq__`, so nobody can tell whether it came back as it was"
_NO_DATA = "store data as a dataclass, NamedTuple, TypedDict or pydantic model; wire what is no data into the activity"
_INSTEAD: tuple[tuple[tuple[Any, ...], str], ...] = (
    ((type,), "store its name"),
    ((Callable,), "store a name, and look it up by that"),
    ((io.IOBase, typing.IO), "store its path as a `Path`, and open it in the activity"),
    ((socket.socket,), "store the address, and connect in the activity"),
    ((deque, Iterator), "store a list"),
    ((BaseException,), "store its text"),
)
_NO_KEYS = (
    kinds.BoolType,
    kinds.NoneType,
    kinds.UnionType,
    kinds.CollectionType,
    kinds.TupleType,
    kinds.DictType,
    kinds.TypedDictType,
    kinds.DataclassType,
    kinds.NamedTupleType,
    kinds.StructType,
)


def stored_fields(context: type[ProcessContext]) -> tuple[dict[str, Any], dict[str, Kind]]:
    """Return the resolved annotations of the fields that are stored, and their kinds, by name.

    Names that begin with an underscore and class variables are none.

    Raises:
        ContextTypeError: Some fields cannot be stored; all of them are named.
    """
    annotations: dict[str, Any] = {}
    found: dict[str, Kind] = {}
    refused: list[str] = []
    names = dict.fromkeys(name for base in reversed(context.__mro__) for name in inspect.get_annotations(base))
    for name in (name for name in names if not name.startswith("_")):
        try:
            annotation = annotation_of(context, name)
        except SeedError as error:
            refused.append(f"{name}: {error}")
            continue
        if not _is_field(annotation):
            continue
        try:
            annotations[name], found[name] = annotation, kinds.type_info(annotation)
            reasons = list(_reasons(context, name, annotation, found[name]))
        except (TypeError, NameError, AttributeError) as error:
            reasons = [_UNION if str(error).startswith("Type unions") else str(error)]
        refused += [f"{name}: {inspect.formatannotation(annotation)}: {reason}" for reason in _told_once(reasons)]
    if refused:
        lines = [f"{context.__qualname__} cannot be stored, as a durable run needs:", *refused]
        raise ContextTypeError("\n  ".join(lines))
    return annotations, found


def _is_field(annotation: Any) -> bool:
    is_shared = annotation is typing.ClassVar or typing.get_origin(annotation) is typing.ClassVar
    return not is_shared and not isinstance(annotation, dataclasses.InitVar)


def _reasons(context: type[ProcessContext], name: str, annotation: Any, kind: Kind) -> Iterator[str]:
    """Yield why a field cannot be stored."""
    if why := unfresh(context, name):
        yield why
    if annotation is Any and name == "seed_data":
        yield _SEED
        return
    for where, one in reach(kind).values():
        reason = _reason(one)
        if reason is not None:
            yield f"{name}{where}: {reason}" if where else reason


def _told_once(reasons: Iterable[str]) -> Iterable[str]:
    """Return reasons, only one where it is the same of a dict's keys and of its values."""
    found: dict[tuple[str, str], str] = {}
    for reason in reasons:
        where, _, why = reason.rpartition(": ")
        of = where.removesuffix("[key]" if where.endswith("[key]") else "[]")
        found[of, why] = (f"{of}: {why}" if where else why) if (of, why) in found else reason
    return found.values()


def _reason(kind: Kind) -> str | None:
    if isinstance(kind, kinds.AnyType):
        return _UNTYPED
    if isinstance(kind, kinds.CustomType):
        return _reason_of_class(kind.cls)
    if isinstance(kind, kinds.DictType) and isinstance(kind.key_type, _NO_KEYS):
        return _KEY
    if isinstance(kind, kinds.DataclassType) and getattr(kind.cls, "__eq__", None) is object.__eq__:
        return _UNEQUAL
    return None if isinstance(kind, STORABLE) else _NO_DATA


def _reason_of_class(cls: type) -> str | None:
    if issubclass(cls, pathlib.PurePath) or _is_model(cls):
        return None
    if cls is object:
        return _UNTYPED
    if cls.__module__.partition(".")[0] == "lxml":
        return f"{cls.__qualname__} is no data; keep the document as str"
    instead = (text for bases, text in _INSTEAD if issubclass(cls, bases))
    return f"{cls.__qualname__} is no data; {next(instead, _NO_DATA)}"


def _is_model(cls: type) -> bool:
    """Return whether it is one of pydantic's models, or is used as they are."""
    return hasattr(cls, "model_validate_json") and hasattr(cls, "model_dump_json")


def decoder_of(annotations: Mapping[str, Any]) -> msgspec.json.Decoder[dict[str, Any]]:
    """Return what reads a JSON object whose fields may all be missing; it passes over fields that it does not know."""
    form: Any = typing.TypedDict("Stored", annotations, total=False)  # type: ignore[misc] # its fields are data
    return msgspec.json.Decoder(form, dec_hook=_made)


def encoder() -> msgspec.json.Encoder:
    """Return what writes JSON: msgspec's own types, paths, pydantic's models, and subclasses of str, int and float."""
    return msgspec.json.Encoder(enc_hook=_plain)


def _made(wanted: Any, value: Any) -> Any:
    return wanted.model_validate_json(msgspec.json.encode(value)) if _is_model(wanted) else wanted(value)


def _plain(value: Any) -> Any:
    if isinstance(value, pathlib.PurePath):
        return str(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if _is_model(type(value)):
        return msgspec.Raw(value.model_dump_json(by_alias=True, round_trip=True).encode())
    raise TypeError(f"{type(value).__qualname__} is no data that can be stored")
