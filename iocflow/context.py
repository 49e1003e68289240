"""The process context: what one run's activities hand to one another."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import sys
import time
import typing
from collections import deque
from collections.abc import Collection, Mapping, Set
from datetime import datetime, timedelta
from typing import Any, Protocol, Self

from iocflow.coercion import coerce, hints_of
from iocflow.errors import ErrorRecord, IocflowError, JoinConflictError, UnsetError

# What belongs to one run alone.
_NEVER_JOINED = frozenset({"stopped", "stop_reason"})


class RunGroup(Protocol):
    """The runs that go one at a time, in order, as `context.step.group` shows them.

    Attributes:
        key: The group's name; None when the run is alone in it.
        state: JSON-able data that the group's runs hand to one another; it is saved with the run's next record.
    """

    key: str | None
    state: Any


def _not_durable(what: str) -> IocflowError:
    return IocflowError(f"only a durable run can {what}: set `durable: true` for its processor")


class StepInfo:
    """What the engine lends an activity while it runs, as `context.step`; empty outside a run.

    Attributes:
        run_id: The run's id.
        processor: The name of the processor whose activity this is.
        activity: The activity's path in the trail, as in `fare-drop/send-message`.
        attempt: 1 for the first attempt of the step.
        deadline: When the attempt should have ended, on the clock of `time.monotonic`; None without a limit.
        scheduled_for: The time a schedule meant, which may lie before the start of the run.
        idempotency_key: The same for every attempt of this step and for no other step; hand it to foreign systems.
        memo: A dict that lives from the step's first attempt to its end, as for the recipients that are done.
        failure: While a handler is asked, the error as plain data.
        parts: How many processors this attempt has run by their `execute`.
    """

    def __init__(self, run_id: str = "", processor: str = "", scheduled_for: datetime | None = None) -> None:
        """Make the info of a run; the engine sets the rest before every attempt."""
        self.run_id, self.processor, self.scheduled_for = run_id, processor, scheduled_for
        self.activity, self.idempotency_key, self.attempt, self.parts = "", "", 1, 0
        self.deadline: float | None = None
        self.memo: dict[str, Any] = {}
        self.failure: ErrorRecord | None = None

    def remaining(self) -> float | None:
        """Return the seconds that are left of the time limit, never below 0; None without a limit."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def cancelled(self) -> bool:
        """Whether the activity should end: its time is over."""
        return self.remaining() == 0

    def following(self) -> StepInfo:
        """Return the info of another step of the same run, with a memo of its own; subclasses return their kind."""
        return StepInfo(self.run_id, self.processor, self.scheduled_for)

    def wait_for(self, name: str, *, timeout: str | float | timedelta | None = None) -> Any:  # noqa: ARG002
        """Return what arrives under `name`, once it has: a durable run is put aside until then.

        Raises:
            IocflowError: The run is not durable.
        """
        raise _not_durable(f"wait, as for {name!r}")

    @property
    def transaction(self) -> Any:
        """The store's DB-API connection, in the transaction of a durable run's step with `mode: transactional`.

        Raises:
            IocflowError: The run is not durable, or the step has another mode.
        """
        raise _not_durable("have a transaction")

    @property
    def group(self) -> RunGroup:
        """The group of a durable run.

        Raises:
            IocflowError: The run is not durable.
        """
        raise _not_durable("have a group")

    def lend(self) -> StepInfo:
        """Return itself: it is up to date."""
        return self


class Lender(Protocol):
    """Gives the `StepInfo` of what runs now."""

    def lend(self) -> StepInfo:
        """Return the info, brought up to date."""


class Asked(typing.TypedDict, total=False):
    """What an activity asked of the engine."""

    stop: bool
    idle: bool
    next: str


class ProcessContext:
    """The state of one run, made anew for each; subclass it with plain annotations, or as a dataclass.

    A field that is annotated and not set raises `UnsetError` when it is read. Annotate `seed_data` with the type that
    the processor needs: seed data is then checked and fitted to it before the first activity. Names that begin with an
    underscore are the engine's.

    Attributes:
        stopped: Whether the run is to stop, or did: a stop that was asked for, also by a handler or in a branch, and
            that is not ignored, as in a `finally`.
        stop_reason: The reason that was given.
    """

    # Slots, so that the engine's two marks are no fields: they are not in `vars`, and quick to set and to read.
    __slots__ = ("__dict__", "__weakref__", "_asked", "_lender")
    _asked: Asked | None
    _lender: Lender | None

    seed_data: Any
    stopped: bool = False
    stop_reason: str = ""

    def set_seed_data(self, seed_data: Any) -> None:
        """Set the data that starts the run, fitted to the annotation of `seed_data`.

        Raises:
            SeedError: It does not fit; the message names the field.
        """
        self.seed_data = coerce(seed_data, seed_type_of(type(self)), "seed")

    def stop_process(self, reason: str = "") -> None:
        """Ask for a clean stop after this activity: the run ends STOPPED, its `finally` is run."""
        self.stopped = True
        self.stop_reason = reason
        self._ask({"stop": True})

    def nothing_to_do(self) -> None:
        """Stop as a poll does that found nothing: launchers keep a count of it and nothing else."""
        self.stop_process("nothing to do")
        self._ask({"idle": True})

    @property
    def next_activity(self) -> str | None:
        """The activity that an exclusive choice should run next; cleared after every activity."""
        return (self._asked or {}).get("next") or None

    @next_activity.setter
    def next_activity(self, name: str | None) -> None:
        self._ask({"next": name or ""})

    def _ask(self, asked: Asked) -> None:
        self._asked = {**(self._asked or {}), **asked}

    @property
    def step(self) -> StepInfo:
        """What the engine lends: attempt, time left, idempotency key, memo; never stored, empty outside a run."""
        if self._lender is None:
            self._lender = StepInfo()
        return self._lender.lend()

    def fork(self, *, without: Collection[str] = frozenset()) -> Self:
        """Return the context of one branch or parallel item: a deep copy, but for the fields named in `without`.

        Override it to share what is costly to copy and only read.
        """
        twin = type(self).__new__(type(self))
        copied: dict[int, Any] = {id(self): twin}
        for name, value in fields_of(self).items():
            if name not in without:
                try:
                    object.__setattr__(twin, name, copy.deepcopy(value, copied))
                except Exception as error:
                    where = f"{type(self).__name__}.{name}"
                    hint = "override `fork` to share it with the branches, or set it to None before"
                    raise TypeError(f"{where} cannot be copied for a branch or item ({error}): {hint}") from error
        return twin

    if not typing.TYPE_CHECKING:  # or checkers would believe in every field that is misspelt

        def __getattr__(self, name: str) -> Any:
            """Tell an annotated field that is not set from one that does not exist."""
            if name in ("_asked", "_lender"):
                return None
            defined = inspect.getattr_static(type(self), name, None)
            if defined is not None and not inspect.ismemberdescriptor(defined):
                return object.__getattribute__(self, name)  # a property failed: let it raise its own error again
            if not name.startswith("_") and any(name in inspect.get_annotations(base) for base in type(self).__mro__):
                at = self.step.activity
                read = f"{at} read it" if at else "read"
                raise UnsetError(f"{type(self).__name__}.{name} is not set ({read} before any activity set it)")
            raise AttributeError(f"{type(self).__name__!r} has no field {name!r}", name=name, obj=self)

    def __getstate__(self) -> object:
        """Return the fields alone: what the engine lends is neither copied nor stored."""
        return None, fields_of(self)


def succeed(old: ProcessContext, new: ProcessContext) -> None:
    """Let `new` take the place of `old` in a run: what was asked on `old` counts."""
    new._lender = old._lender
    new._asked = {**(old._asked or {}), **(new._asked or {})} or None
    if old._asked and old.stopped and not new.stopped:
        new.stopped, new.stop_reason = True, old.stop_reason


def fields_of(context: ProcessContext) -> dict[str, Any]:
    """Return the fields that are set, also those that a subclass keeps in slots."""
    found = dict(vars(context))
    for base in type(context).__mro__:
        slots = vars(base).get("__slots__", ()) if base is not ProcessContext else ()
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(context, name):
                found[name] = getattr(context, name)
    return found


def put_back(context: ProcessContext, names: Collection[str]) -> None:
    """Take from fields the values that were set: each has the default of its class again, or no value; not the seed."""
    for name in fields_of(context).keys() & set(names) - {"seed_data"}:
        object.__delattr__(context, name)
        field = getattr(type(context), "__dataclass_fields__", {}).get(name)
        if field and field.default_factory is not dataclasses.MISSING:
            setattr(context, name, field.default_factory())
        elif field and field.default is not dataclasses.MISSING:
            setattr(context, name, field.default)


def annotation_of(context: type[ProcessContext], name: str) -> Any:
    """Return the annotation of a field, resolved where the class that has it was defined.

    Raises:
        SeedError: It cannot be resolved.
    """
    owner = next(base for base in context.__mro__ if name in inspect.get_annotations(base))
    shim = type(owner.__name__, (), {"__annotations__": {name: inspect.get_annotations(owner)[name]}})
    module = sys.modules.get(owner.__module__)
    scopes = {"globalns": vars(module) if module else {}, "localns": dict(vars(owner))}
    return hints_of(shim, f"{owner.__name__}.{name}", **scopes)[name]


def seed_type_of(context: type[ProcessContext]) -> Any:
    """Return the annotation of `seed_data`, resolved once a class and kept on it."""
    if "_seed_type" not in vars(context):
        context._seed_type = annotation_of(context, "seed_data")  # type: ignore[attr-defined]
    return context._seed_type  # type: ignore[attr-defined]


def changes(
    context: ProcessContext, before: Mapping[str, Any], fork: ProcessContext, without: Collection[str] = ()
) -> dict[str, Any]:
    """Return the fields of `fork` that were bound anew since it had `before`, or differ from those of `context`.

    Those `without` are left out, as are the marks of a stop and names with an underscore.
    """
    original = fields_of(context)
    return {
        name: value
        for name, value in fields_of(fork).items()
        if not name.startswith("_")
        and name not in _NEVER_JOINED
        and name not in without
        and (name not in before or value is not before[name] or _differ(original.get(name), value))
    }


def merge(
    context: ProcessContext, changed: Mapping[str, Mapping[str, Any]], remedy: str, own: Collection[str] = ()
) -> None:
    """Set the changed fields on `context`, all or none; of those that are the parts' `own`, what all parts agree on.

    Raises:
        JoinConflictError: Two parts changed one field differently; the message ends with the `remedy`.
    """
    disputed: set[str] = set()
    merged: dict[str, tuple[str, Any]] = {}
    for part, fields in changed.items():
        for name, value in fields.items():
            first, other = merged.setdefault(name, (part, value))
            if first != part and _differ(other, value, unknown=other is not value):
                if name not in own:
                    raise JoinConflictError(f"{first} and {part} changed {name!r} differently; {remedy}")
                disputed.add(name)
    for name in merged.keys() - disputed:
        setattr(context, name, merged[name][1])


def _differ(one: Any, other: Any, *, unknown: bool = False) -> bool:
    """Return whether two values differ; `unknown` is the answer for types without `__eq__`, also inside of containers.

    A fork holds copies, so such objects never compare equal to their originals, changed or not.
    """
    if one is other:
        return False
    if type(one) is not type(other):
        return True
    if isinstance(one, Mapping):
        return one.keys() != other.keys() or any(_differ(one[key], other[key], unknown=unknown) for key in one)
    if isinstance(one, list | tuple | deque):
        return len(one) != len(other) or any(_differ(a, b, unknown=unknown) for a, b in zip(one, other, strict=True))
    if isinstance(one, Set):
        rest = one ^ other
        return len(one) != len(other) or any(unknown or _compares(item) for item in rest)
    if not _compares(one):
        return unknown
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one) if field.compare]
        return any(_differ(getattr(one, name, None), getattr(other, name, None), unknown=unknown) for name in names)
    return _unequal(one, other)


def _compares(value: Any) -> bool:
    return any("__eq__" in vars(base) for base in type(value).__mro__[:-1])


def _unequal(one: Any, other: Any) -> bool:
    """Return whether `one != other`; arrays and tables answer by element, for whom NaN is not equal to itself."""
    if getattr(one, "shape", None) != getattr(other, "shape", None):
        return True
    unequal = one != other
    if not hasattr(unequal, "any"):
        return bool(unequal)
    found = (unequal & ~((one != one) & (other != other))).any()  # noqa: PLR0124 - that is how to find NaN
    return bool(found.any() if hasattr(found, "any") else found)
