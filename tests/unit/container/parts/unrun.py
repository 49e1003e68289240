"""Parts of which a call runs nothing, because they are async or yield, and some of which it does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Protocol

from iocflow.activity import Activity
from iocflow.context import ProcessContext
from iocflow.error_handling import PASS, Decision, ErrorHandler
from tests.unit.container.parts import Order


async def hear_later(event: object) -> None: ...


def hear_some(event: object) -> Iterator[object]:
    yield event


class HearsLater:
    """Observes in a coroutine."""

    async def __call__(self, event: object) -> None: ...


class StepsLater:
    """Intercepts in a coroutine."""

    async def around_step(self, step: Any, context: Any, proceed: Callable[[], Any]) -> Any: ...


class StepsSome:
    """Intercepts as pytest's fixtures do."""

    def around_step(self, step: Any, context: Any, proceed: Callable[[], Any]) -> Any:
        yield proceed()


async def join_later(context: Order, branches: object) -> None: ...


def join_some(context: Order, branches: object) -> Iterator[None]:
    yield


def act_some(context: Order) -> Iterator[None]:
    yield


async def act_some_later(context: Order) -> AsyncIterator[None]:
    yield


async def act_later(context: Order) -> None: ...


class ActsSome(Activity[Order]):
    """Yields."""

    def execute(self, context: Order) -> Any:
        yield


class ActsSomeLater(Activity[Order]):
    """Yields in a coroutine."""

    async def execute(self, context: Order) -> Any:
        yield


class ActsLater(Activity[Order]):
    """Is awaited."""

    async def execute(self, context: Order) -> None: ...


class Five(Activity[Order]):
    """Has a number where the method should be."""

    execute: Any = 5


class HandlesSome(ErrorHandler):
    """Yields its decision."""

    def handle_error(self, context: Order, error: Exception) -> Any:
        yield PASS


class HandlesLater(ErrorHandler):
    """Is awaited."""

    async def handle_error(self, context: Order, error: Exception) -> Decision:
        return PASS


class Opens:
    """Is opened and closed."""

    async def later(self) -> None: ...

    def some(self) -> Iterator[None]:
        yield

    async def some_later(self) -> AsyncIterator[None]:
        yield


def make_some() -> Iterator[Opens]:
    yield Opens()


async def make_some_later() -> AsyncIterator[Opens]:
    yield Opens()


class SeededLater(ProcessContext):
    """Is seeded in a coroutine."""

    async def set_seed_data(self, seed_data: Any) -> None: ...  # type: ignore[override]


class SeededSome(ProcessContext):
    """Yields when it is seeded."""

    def set_seed_data(self, seed_data: Any) -> Any:
        yield


class Unseeded(ProcessContext):
    """Takes no seed."""

    def set_seed_data(self) -> None: ...  # type: ignore[override]


class Pipe(Protocol):
    """Is not awaited, but by `drain`."""

    def put(self, text: str) -> None: ...

    def drain(self) -> Awaitable[None]: ...

    async def shut(self) -> None: ...

    def look(self) -> Any: ...


class Plain:
    """Is what `Pipe` says."""

    def put(self, text: str) -> None: ...

    async def drain(self) -> None: ...

    async def shut(self) -> None: ...

    async def look(self) -> None: ...


class Late(Plain):
    """Wants to be awaited."""

    async def put(self, text: str) -> None: ...  # type: ignore[override]


class Piped(Activity[Order]):
    """Has a collaborator that it does not await."""

    def __init__(self, pipe: Pipe, other: Pipe | None = None) -> None:
        self.pipe, self.other = pipe, other

    def execute(self, context: Order) -> None: ...


class NoExecute(Activity[Order]):
    """Took the method away."""

    execute: Any = None


class NoHandle(ErrorHandler):
    """Took the method away."""

    handle_error: Any = None


class NoPut(Plain):
    """Has a number where the Protocol has a method."""

    put: Any = 5
    shut: Any = None
