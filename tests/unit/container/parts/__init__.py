"""What the container files of these tests name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

from iocflow.activity import Activity
from iocflow.context import ProcessContext
from iocflow.error_handling import PASS, Decision, ErrorHandler

BUILT: list[str] = []
"""Everything that was constructed, opened and closed, in order; emptied before each test."""


class Order(ProcessContext):
    """The context of most processors here."""

    lines: list[str]
    line: str
    lost: list[str]
    prices: list[Decimal]
    price: Decimal


class Parcel(ProcessContext):
    """Another context."""

    weight: float


class Filled(ProcessContext):
    """A context that is given something."""

    def __init__(self, rate: Decimal) -> None:
        self.rate = rate


class Talker:
    """Logs what it is given."""

    def __init__(self, token: str) -> None:
        logging.getLogger(__name__).warning("connected with %s", token)


@dataclass
class Tariff:
    """A data class that holds what has to be exact."""

    base: Decimal
    steps: dict[str, Decimal] = field(default_factory=dict)
    code: str = ""


class Prices:
    """What has to be exact."""

    def __init__(
        self,
        price: Decimal,
        prices: list[Decimal],
        gross: Decimal | None = None,
        tariff: Tariff | None = None,
        tariffs: Sequence[Tariff] = (),
    ) -> None:
        self.price, self.prices, self.gross = price, prices, gross
        self.tariff, self.tariffs = tariff, tariffs


class HasLines(Protocol):
    """What a reader of lines needs of a context."""

    lines: list[str]


class HasWeight(Protocol):
    """What a carrier needs of a context."""

    weight: float


class Sender(Protocol):
    """Sends."""

    def send(self, text: str) -> None: ...


class Smtp:
    """Sends by mail."""

    def __init__(self, host: str, port: int = 25, *, timeout: float = 10.0) -> None:
        BUILT.append(f"Smtp({host})")
        self.host, self.port, self.timeout = host, port, timeout
        self.sent: list[str] = []

    def connect(self) -> None:
        BUILT.append(f"connect {self.host}")

    def disconnect(self) -> None:
        BUILT.append(f"disconnect {self.host}")

    def again(self, times: int) -> None: ...

    def send(self, text: str) -> None:
        self.sent.append(text)


class Picky:
    """Takes a real one only."""

    def __init__(self, sender: Sender) -> None:
        if not isinstance(sender, Smtp):
            raise TypeError(f"not a {type(sender).__name__}")


class Clock:
    """Sends nothing."""

    zone: str = "UTC"

    def __init__(self) -> None:
        BUILT.append("Clock()")
        self.offset = 0

    @property
    def now(self) -> float:
        return 0.0

    @property
    def pace(self) -> timedelta:
        return self._pace

    @pace.setter
    def pace(self, pace: timedelta) -> None:
        self._pace = pace


class Send(Activity[Order]):
    """Sends by its delegate."""

    def __init__(self, delegate: Sender) -> None:
        BUILT.append("Send()")
        self.delegate = delegate

    def execute(self, context: Order) -> None:
        self.delegate.send(self.name)


class Note(Activity[ProcessContext]):
    """Works on any context."""

    def execute(self, context: ProcessContext) -> None: ...


class ReadLines(Activity[HasLines]):
    """Works on what has lines."""

    def execute(self, context: HasLines) -> None: ...


class Weigh(Activity[Parcel]):
    """Works on parcels."""

    def execute(self, context: Parcel) -> None: ...


class Carry(Activity[HasWeight]):
    """Works on what has a weight."""

    def execute(self, context: HasWeight) -> None: ...


class Decide(Activity[Order]):
    """Picks one of two ways."""

    def execute(self, context: Order) -> Literal["approve", "review"]:
        return "approve"


class Guess(Activity[Order]):
    """Picks a way that nobody knows."""

    def execute(self, context: Order) -> str:
        return "approve"


class Wait(Activity[Order]):
    """Can be cancelled."""

    async def execute(self, context: Order) -> None: ...


class Patient(Activity[Order]):
    """Looks at the time that is left."""

    def execute(self, context: Order) -> None:
        context.step.remaining()


class Counting(Activity[Order]):
    """Keeps state of a run on itself, which it should not."""

    def execute(self, context: Order) -> None:
        self.count = 1


class Retired(Activity[Order]):
    """Is abstract."""


class Duck:
    """Has `execute` and is no Activity."""

    def execute(self, context: Order) -> None: ...


class Alert(ErrorHandler):
    """Tells somebody."""

    def __init__(self, to: Sender | None = None) -> None:
        self.to = to

    def handle_error(self, context: Any, error: Exception) -> Decision:
        return PASS


class ParcelAlert(ErrorHandler):
    """Handles errors of parcels."""

    def handle_error(self, context: Parcel, error: Exception) -> Decision:
        return PASS


class LostError(Exception):
    """A parcel is lost."""


@dataclass
class Address:
    """A data class that a value becomes."""

    street: str
    number: int = 1


class Values:
    """Takes all kinds of values."""

    def __init__(self, *rest: int, text: str = "", **more: Any) -> None:
        self.rest, self.text, self.more = rest, text, more


class Typed:
    """Annotates all kinds of values."""

    def __init__(  # noqa: PLR0913, PLR0917
        self,
        count: int = 0,
        ratio: float | None = None,
        pause: timedelta = timedelta(0),
        price: Decimal = Decimal(0),
        path: Path = Path(),
        mode: Literal["fast", "slow"] = "fast",
        numbers: Sequence[int] = (),
        table: Mapping[str, float] | None = None,
        home: Address | None = None,
        unknown: Missing | None = None,  # type: ignore[name-defined]  # noqa: F821
        plain=None,  # type: ignore[no-untyped-def]
    ) -> None:
        self.count, self.ratio, self.pause, self.price, self.path = count, ratio, pause, price, path
        self.mode, self.numbers, self.table, self.home, self.unknown, self.plain = (
            mode,
            numbers,
            table,
            home,
            unknown,
            plain,
        )


class Hub:
    """Takes other beans in all forms."""

    def __init__(
        self,
        sender: Sender | None = None,
        senders: Sequence[Sender] = (),
        named: Mapping[str, Sender] | None = None,
        make: Callable[[], Sender] | None = None,
        kind: type[Sender] | None = None,
        first: tuple[Sender, Clock] | None = None,
        anything: Any = None,
    ) -> None:
        self.sender, self.senders, self.named, self.make = sender, senders, named, make
        self.kind, self.first, self.anything = kind, first, anything


T = TypeVar("T")


class Box(Generic[T]):
    """A generic class."""

    def __init__(self, inside: T) -> None:
        self.inside = inside


class Holder:
    """Wants a generic one, or a circle."""

    def __init__(self, box: Box[int] | None = None, other: Any = None, context: Any = None) -> None:
        self.box, self.other, self.context = box, other, context


@dataclass(frozen=True)
class Frozen:
    """Cannot be changed."""

    size: int = 0


class Positional:
    """Takes its arguments by position."""

    def __init__(self, first: int, /, second: int = 2, *rest: str, last: int = 0) -> None:
        self.taken = (first, second, rest, last)


def make_smtp(host: str = "made") -> Smtp:
    return Smtp(host)


def make_anything(size: int):  # type: ignore[no-untyped-def]
    return [size]


async def make_later() -> Smtp:
    return Smtp("later")


def step(context: Order, sender: Sender, times: int = 1) -> None:
    sender.send(str(times))


def decide(context: Order) -> Literal["approve", "review"]:
    return "review"


def nothing() -> None: ...


def takes_any(context: Order, provides: int, holder: Hub) -> None:
    lines: Any = [*(one.more for one in holder.anything), provides]
    context.lines = lines


def merge(context: Order, branches: Mapping[str, Order]) -> None: ...


def observe(event: object) -> None: ...


@dataclass
class Interceptor:
    """Wraps every attempt."""

    seen: list[str] = field(default_factory=list)

    def around_step(self, step: Any, context: Any, proceed: Callable[[], Any]) -> Any:
        self.seen.append(step.activity)
        return proceed()
