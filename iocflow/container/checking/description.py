"""The checked description of an application: what a document says, with names looked up, nothing built.

Values are never changed, but not frozen: that would take several times as long to make one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from iocflow.wiring import Place

__all__ = [
    "Bean",
    "Block",
    "Choice",
    "Chosen",
    "Constant",
    "Demand",
    "Each",
    "Entries",
    "Inner",
    "Items",
    "Process",
    "ProviderOf",
    "Reference",
    "Rule",
    "Shape",
    "Split",
    "Step",
    "Stepped",
    "Steps",
    "Value",
    "Wire",
]


@dataclass(slots=True, eq=False)
class Constant:
    """A value that is known from the file."""

    value: Any


@dataclass(slots=True, eq=False)
class Reference:
    """Another bean or processor, by its id; `wanted` is the annotation that it meets, None without one."""

    id: str
    place: Place
    wanted: Any = None


@dataclass(slots=True, eq=False)
class ProviderOf:
    """The provider of another bean: whoever gets it decides when to ask for the bean."""

    id: str
    place: Place


@dataclass(slots=True, eq=False)
class Inner:
    """A bean without an id, which belongs to the one that holds it; `wanted` is the annotation that it meets."""

    bean: Bean
    wanted: Any = None


@dataclass(slots=True, eq=False)
class Items:
    """A list in which references or inner beans stand; `kind` makes the final object of it."""

    items: tuple[Value, ...]
    kind: Callable[[Any], Any] = list


@dataclass(slots=True, eq=False)
class Entries:
    """A table in which references or inner beans stand."""

    entries: Mapping[Any, Value]


Wire = Reference | Inner
"""What stands where a bean is named."""


@dataclass(slots=True, eq=False)
class Chosen:
    """A word of the file, one of several that it might be."""

    word: str
    place: Place


@dataclass(slots=True, eq=False)
class Stepped:
    """A bean given to a processor that is a bean itself, where that takes a step: with the options it is wired by.

    Attributes:
        sure: Whether the annotation there says that a step is taken; False where nothing does.
    """

    wire: Wire
    sure: bool


Value = Constant | Reference | ProviderOf | Inner | Items | Entries | Stepped


@dataclass(slots=True, eq=False)
class Rule:
    """One entry of an `on-error`.

    Attributes:
        errors: The exception classes of `for:`; empty for every error.
        answer: A handler; as a constant, one of the core's own or a decision.
        goto: The activity that the answer goes to, if it does.
    """

    place: Place
    answer: Value
    errors: tuple[type[Exception], ...] = ()
    goto: str = ""


@dataclass(slots=True, eq=False)
class Demand:
    """What somebody wants of an object whose factory does not say enough: it is looked at when it is made.

    Attributes:
        wanted: Who wants what, as the beginning of a sentence.
        met: Whether an object is that.
    """

    place: Place
    wanted: str
    met: Callable[[object], bool]


@dataclass(slots=True, eq=False)
class Bean:
    """How one object is made.

    Attributes:
        id: Empty for an inner bean.
        target: The class or function; None when the file's is wrong.
        type: The class that the object will have; `object` when nobody knows.
        loose: Whether the object may be of a subclass of `type`, as what a factory returns.
        time_limit: Seconds for one attempt, where the bean is an activity.
        mode: How a durable run performs it; `on_lost` is what becomes of an attempt of which nobody knows the end.
        isolate: `process` for an activity in a process of its own.
        demands: What is wanted of the object beyond what `type` promises.
    """

    id: str
    place: Place
    kind: Literal["class", "call", "factory"]
    target: Any
    type: type
    loose: bool = False
    positional: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict)
    set: Mapping[str, Value] = field(default_factory=dict)
    scope: Literal["singleton", "prototype"] = "singleton"
    init: str = ""
    close: str = ""
    depends_on: tuple[Reference, ...] = ()
    on_error: tuple[Rule, ...] = ()
    time_limit: float | None = None
    mode: Chosen | None = None
    on_lost: Chosen | None = None
    isolate: Chosen | None = None
    demands: list[Demand] = field(default_factory=list)

    @property
    def owner(self) -> str:
        """The bean in the words of a message about the file."""
        return f"bean `{self.id}`" if self.id else "the inner bean"

    @property
    def step_options(self) -> tuple[str, ...]:
        """What it has, as the file calls it, that is of its uses as a step and not of the object."""
        options = {
            "on-error": self.on_error,
            "time-limit": self.time_limit,
            "mode": self.mode,
            "on-lost": self.on_lost,
        }
        return tuple(key for key, given in options.items() if given not in ((), None))

    def __str__(self) -> str:
        """Return `bean ID`, as messages name it; an inner bean goes by what makes it."""
        return f"bean `{self.id}`" if self.id else f"`{getattr(self.target, '__name__', 'the inner bean')}`"


@dataclass(slots=True, eq=False)
class Step:
    """One use of an activity, a processor or a block inside a processor; `time_limit` in seconds."""

    place: Place
    name: str
    what: Reference | Inner | Block
    on_error: tuple[Rule, ...] = ()
    time_limit: float | None = None
    mode: Chosen | None = None
    on_lost: Chosen | None = None
    isolate: Chosen | None = None


@dataclass(slots=True, eq=False)
class Steps:
    """The shape of a sequence."""

    steps: tuple[Step, ...]


@dataclass(slots=True, eq=False)
class Choice:
    """The shape of an exclusive choice: steps by name, the first one starts, and where each one's results lead."""

    steps: Mapping[str, Step]
    routes: Mapping[str, Mapping[str, str]]


@dataclass(slots=True, eq=False)
class Split:
    """The shape of a parallel split."""

    branches: Mapping[str, Step]
    join: Value | None = None


@dataclass(slots=True, eq=False)
class Each:
    """The shape of a for-each over the context's field `items`."""

    items: str
    body: Step
    as_: str
    parallel: int = 0
    may_fail: int | str = 0
    failed: str | None = None
    collect: Mapping[str, str] = field(default_factory=dict)


Shape = Steps | Choice | Split | Each


@dataclass(slots=True, eq=False)
class Block:
    """A processor without an id, inside another one."""

    kind: str
    name: str
    place: Place
    shape: Shape


@dataclass(slots=True, eq=False)
class Process:
    """A processor of the section `processors:`.

    Attributes:
        context: The class of its contexts; None when the file's is wrong.
        context_bean: The id of the prototype bean that makes them, unless the class is called.
        concurrency: How many runs launchers may have at work at once; None for no bound of its own.
        durable: How its runs are durable, as `iocflow.durable.job.Durable` takes it; None when they are not.
        durable_place: Where the file says so; `context_place` is where it names the context.
    """

    id: str
    place: Place
    kind: str
    context: type | None = None
    shape: Shape = field(default_factory=lambda: Steps(()))
    context_bean: str = ""
    on_error: tuple[Rule, ...] = ()
    finally_: tuple[Step, ...] = ()
    max_steps: int = 1000
    concurrency: int | None = None
    durable: Mapping[str, str] | None = None
    durable_place: Place | None = None
    context_place: Place | None = None

    @property
    def owner(self) -> str:
        """The processor in the words of a message about the file."""
        return f"processor `{self.id}`"
