"""Parts whose arguments, methods or products are not what they should be, and some that only look so."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, NamedTuple, NewType, NotRequired, TypedDict

from iocflow.activity import Activity
from iocflow.context import ProcessContext
from iocflow.error_handling import PASS, Decision, ErrorHandler, RetryingErrorHandler
from tests.unit.container.parts import BUILT, Clock, Order, Sender, Smtp


class Range:
    """Knows which of its arguments go together, and a name that it cannot bear."""

    def __init__(self, low: int = 0, high: int = 9, sender: Any = None, name: str = "") -> None:
        BUILT.append("Range()")

    @classmethod
    def check_arguments(cls, arguments: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        if "sender" in arguments:
            yield "sender", "it is no constant"
        low, high = arguments.get("low", 0), arguments.get("high", 9)
        assert isinstance(low, int)
        assert isinstance(high, int)
        if low > high:
            yield "low", f"{low} is more than {high}; write a smaller one"
            yield "high", f"{high} is less than {low}; write a larger one"
        if low == high:
            yield "open", "an empty range has to be open"
        if arguments.get("name"):
            raise LookupError(f"nobody is called {arguments['name']}")


class Weighed(ProcessContext):
    """Adds up what it has."""

    parts: list[float]

    @property
    def total(self) -> float:
        return sum(self.parts)


class Courier(TypedDict):
    """Keys with types."""

    name: str
    pause: NotRequired[float]
    price: NotRequired[Decimal]


def make_courier() -> dict[str, Any]:
    return {"name": "c"}


class Tour(NamedTuple):
    """A row."""

    start: timedelta
    stops: int = 1


@dataclass
class Plan:
    """A data class with durations."""

    pause: float
    tours: list[Tour] = field(default_factory=list)


class Depot:
    """Takes what has annotations of its own."""

    def __init__(
        self, courier: Courier, plan: Plan | None = None, pair: tuple[int, str] = (1, "a"), reserve: Tour | None = None
    ) -> None:
        self.courier, self.plan, self.pair, self.reserve = courier, plan, pair, reserve


class Eager(Activity[Order]):
    """Wants more than the context."""

    def execute(self, context: Order, sender: Sender, *, times: int, pace: int = 1) -> None: ...  # type: ignore[override]


class Idle(Activity[Order]):
    """Takes no context."""

    def execute(self) -> None: ...  # type: ignore[override]


class Static(Activity[Order]):
    """Forgot what `staticmethod` means."""

    @staticmethod
    def execute(this: object, context: Order) -> None: ...  # type: ignore[override]


class Helpful(Activity[Order]):
    """Knows what `staticmethod` means."""

    @staticmethod
    def execute(context: Order) -> None: ...  # type: ignore[override]


def lending(execute: Callable[..., None]) -> Callable[..., None]:
    """Give a method more than it is given."""

    @functools.wraps(execute)
    def lent(*arguments: Any) -> None:
        execute(*arguments, None)

    return lent


class Lent(Activity[Order]):
    """Is given more by its decorator."""

    @lending
    def execute(self, context: Order, session: object) -> None: ...


class Persistent(RetryingErrorHandler):
    """Is made like the one of iocflow."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Persistent:
        BUILT.append("Persistent()")
        return super().__new__(cls)


class Twice(RetryingErrorHandler):
    """Knows better."""

    def __init__(self, attempts: int) -> None:
        super().__init__(attempts + 2)


class Deaf(ErrorHandler):
    """Takes no error."""

    def handle_error(self, context: Order) -> Decision:  # type: ignore[override]
        return PASS


class Meddler:
    """Wants too much of a step."""

    def around_step(self, step: Any, context: Any, proceed: Callable[[], Any], more: int) -> Any: ...


class Asking:
    """Polls by what nobody gives."""

    def poll(self, cursor: str) -> Iterator[object]: ...


class Polling:
    """Polls."""

    def poll(self, cursor: str = "") -> Iterator[object]: ...


class Awaited:
    """Has a poll that has to be awaited."""

    async def poll(self) -> list[object]: ...  # type: ignore[empty-body]


class Flowing:
    """Has a poll whose seeds have to be awaited."""

    async def poll(self) -> AsyncIterator[object]:
        yield


def by_name(*, context: Order) -> None: ...


def only_names(**names: Any) -> None: ...


def any_number(*contexts: Order) -> None: ...


def by_place(context: Order, times: int, /, pace: int = 1, *more: int) -> None: ...


@functools.wraps(by_name)
def by_name_after_all(context: Order) -> None: ...


def overhear(event: object, more: object) -> None: ...


def join_two(context: Order) -> None: ...


def make_nothing():  # type: ignore[no-untyped-def]
    BUILT.append("make_nothing")


def make_nothing_perhaps() -> Smtp | None: ...


def make_wrong() -> Smtp:
    return Clock()  # type: ignore[return-value]


def make_any() -> Any:
    return Clock()


def make_activity():  # type: ignore[no-untyped-def]
    def act(context: Order) -> None:
        context.line = "acted"

    return act


class Guard:
    """Is annotated with a concrete class."""

    def __init__(self, smtp: Smtp) -> None:
        self.smtp = smtp


MaybeSmtp = NewType("MaybeSmtp", Smtp | None)  # type: ignore[valid-newtype]


class Unguarded:
    """Does without."""

    def __init__(self, smtp: Smtp | None) -> None:
        self.smtp = smtp


class UnguardedByName:
    """Does without, as its type's name says."""

    def __init__(self, smtp: Annotated[MaybeSmtp, "a note"]) -> None:
        self.smtp = smtp


class Listed:
    """Takes a list, and no None."""

    def __init__(self, smtp: list[None]) -> None:
        self.smtp = smtp


def make_text() -> str:
    return "text"


def open_step(context: Order, **more: Any) -> None: ...


def open_by_place(context: Order, /, **more: Any) -> None: ...


class Open:
    """Takes any name but one."""

    def __init__(self, **more: Any) -> None:
        self.more = more


class Unseedable(ProcessContext):
    """Has a seed of which nobody knows the type."""

    seed_data: Missing  # type: ignore[name-defined]  # noqa: F821


class SeedsItself(ProcessContext):
    """Does not ask for the type of its seed."""

    seed_data: Missing  # type: ignore[name-defined]  # noqa: F821

    def set_seed_data(self, seed_data: Any) -> None:
        self.seed_data = seed_data
