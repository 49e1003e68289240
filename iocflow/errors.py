"""The one tree of iocflow's errors."""

from __future__ import annotations

import inspect
import itertools
import time
from typing import NotRequired, TypedDict


class IocflowError(Exception):
    """The base of every error that iocflow itself raises."""


class UnsetError(IocflowError, AttributeError):
    """A context field that is annotated but not set was read.

    It is an `AttributeError` too, so that `hasattr` and `getattr` with a default work as usual.
    """


class SeedError(IocflowError, ValueError):
    """Seed data does not fit the type that the context annotates; the message names the field."""


class UnknownActivityError(IocflowError, LookupError):
    """A route, a `GoTo` or `next_activity` names no activity of the processor, or none that can be gone to."""


class UnsupportedActivityError(IocflowError, TypeError):
    """A processor's `supports` refused an activity that is wired into it."""


class DuplicateNameError(IocflowError, ValueError):
    """Two activities of one exclusive choice, or two branches of one split, have the same name."""


class StepLimitError(IocflowError, RuntimeError):
    """A processor, branch or item made more attempts than its `max_steps` allows."""


class JoinConflictError(IocflowError, ValueError):
    """Two branches of a split changed one field differently, and no joiner is wired."""


class RunSignal(BaseException):
    """An activity leaves by it without failing, to wait; no error, so that user code's `except Exception` lets it pass.

    Attributes:
        name: What is waited for.
        timeout: For how many seconds at most; None means for ever.
    """

    def __init__(self, name: str, timeout: float | None = None) -> None:
        """Take what is waited for."""
        super().__init__(name, timeout)
        self.name, self.timeout = name, timeout


class ErrorRecord(TypedDict):
    """An error as plain data, so that a position which holds one can be stored.

    `names` are the qualified class names of the error's MRO, what `for:` of an error rule matches. `logged` says that
    the failure is in the log already. `ref` is the engine's own key of the live exception, -1 when there is none.
    `errors` are the parts of a group, `notes` what was added to it. `over` is the path of a step whose time limit ended
    inside of it, which is this error; empty for a limit around all of the run.
    """

    type: str
    names: list[str]
    message: str
    cause: str
    logged: bool
    ref: int
    errors: list[ErrorRecord]
    notes: list[str]
    over: NotRequired[str]


def refuse_unfit(thing: object, method: str = "__call__", *, awaited: bool = False) -> None:
    """Raise when a class stands where an object of it is wanted, or when a call of `method` would not run it."""
    if isinstance(thing, type):
        raise TypeError(f"{thing.__name__} is a class: make an object of it, as in {thing.__name__}()")
    if why := deferral(thing, method, awaited=awaited):
        raise TypeError(f"{getattr(thing, '__qualname__', type(thing).__qualname__)} {why}: write a plain function")


def deferral(thing: object, method: str = "__call__", *, awaited: bool = False) -> str:
    """Return why a call does not run a function, or the `method` of an object or class: it is async, or yields."""
    functions = thing, getattr(thing, method, None)
    if not awaited and any(map(inspect.iscoroutinefunction, functions)):
        return "is async, and nobody awaits it"
    yields = any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in functions)
    return "yields, and nobody takes what it yields" if yields else ""


def qualified(cls: type) -> str:
    """Return `module.Class`, or just the name for a built-in class."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def record_of(cls: type[BaseException], message: str, cause: str = "", ref: int = -1) -> ErrorRecord:
    """Return an error of that class as plain data."""
    mro = [qualified(base) for base in cls.__mro__]
    return ErrorRecord(type=mro[0], names=mro, message=message, cause=cause, logged=False, ref=ref, errors=[], notes=[])


class RecordedError(IocflowError):
    """Stands in for an error that was raised in another process, or before a crash.

    Attributes:
        type: The qualified class name of the original.
        names: The qualified class names of its MRO.
        cause: The text of its cause, empty without one.
    """

    def __init__(self, record: ErrorRecord) -> None:
        """Take the parts of `record`."""
        super().__init__(record)
        self.type, self.names, self.cause = record["type"], tuple(record["names"]), record["cause"]

    def __str__(self) -> str:
        """Return the message of the original."""
        return str(self.args[0]["message"])


def text_of(error: BaseException) -> str:
    """Return the message of `error`; its class may compute it, and fail at that."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever it is, the failure that is to be told of is `error`
        return f"<{type(error).__name__}, whose text cannot be made>"


def blame(raised: Exception, error: Exception) -> None:
    """Make `error` the first cause of what its handler raised, so that it is not lost."""
    chain = _causes(raised)
    if all(one is not error for one in chain) and all(one is not raised for one in _causes(error)):
        object.__setattr__(chain[-1], "__cause__", error)  # the class may refuse attributes


def _causes(error: BaseException) -> list[BaseException]:
    """Return the error, its cause, the cause of that, and so on."""
    chain = [error]
    while (cause := chain[-1].__cause__) is not None and all(one is not cause for one in chain):
        chain.append(cause)
    return chain


class LiveErrors:
    """The exceptions of one run, kept alive, and their records: from one to the other and back, in all its threads."""

    def __init__(self) -> None:
        """Start empty."""
        # Records are stored, and read by other processes: the numbers of two must not be the same.
        self._refs = itertools.count(time.time_ns())
        self._live: dict[object, Exception] = {}

    def record(self, error: Exception) -> ErrorRecord:
        """Return `error` as plain data, and keep it."""
        cause, parts = error.__cause__, error.exceptions if isinstance(error, ExceptionGroup) else ()
        record = record_of(type(error), text_of(error), ref=next(self._refs))
        record["cause"] = "" if cause is None else f"{qualified(type(cause))}: {text_of(cause)}"
        record["errors"] = [self.record(part) for part in parts]
        if isinstance(error, RecordedError):
            record |= {"type": error.type, "names": list(error.names), "cause": error.cause}
        self._live[record["ref"]] = error
        return record

    def live(self, record: ErrorRecord) -> Exception:
        """Return the exception that `record` stands for, with its notes: the original, or what stands in for it."""
        error = self._live.get(record["ref"])
        if error is None:
            parts = [self.live(part) for part in record["errors"]]
            key = (record["type"], record["message"], *map(id, parts))
            error = self._live.setdefault(key, _made(record, parts))
        had = getattr(error, "__notes__", [])
        new = [note for note in record["notes"] if note not in had]
        if new:
            object.__setattr__(error, "__notes__", [*had, *new])  # the class may refuse attributes
        return error


def _made(record: ErrorRecord, parts: list[Exception]) -> Exception:
    """Return an exception for what `advance` found, or for what was raised elsewhere."""
    if parts:
        return ExceptionGroup(record["message"], parts)
    for cls in (StepLimitError, UnknownActivityError):
        if record["type"] == qualified(cls):
            return cls(record["message"])
    return RecordedError(record)
