"""What the table of processes is made of: a context, activities, handlers, and the form of a row."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from iocflow import (
    CONTINUE,
    BoundActivity,
    Decision,
    ErrorHandler,
    ExclusiveChoiceProcessor,
    ForEachProcessor,
    ParallelSplitProcessor,
    ProcessContext,
    Processor,
    Retry,
    SequenceProcessor,
    activity,
)


class Box(ProcessContext):
    """A context for all cases."""

    seed_data: int = 0
    n: int = 0
    left: int = 0
    right: int = 0
    item: int = 0
    square: int = 0
    items: tuple[int, ...] = ()
    squares: list[int]
    root: int
    roots: list[int]
    bad: list[int]


class BrokenError(Exception):
    """What activities raise here."""


class Asking(ErrorHandler):
    """Calls a function."""

    def __init__(self, ask: Callable[[Any, Exception], Decision | None]) -> None:
        self.ask = ask

    def handle_error(self, context: Any, error: Exception) -> Decision | None:
        return self.ask(context, error)


def add(context: Box) -> None:
    context.n += 1


def fail(context: Box) -> None:
    raise BrokenError(f"n is {context.n}")


def fail_twice(context: Box) -> None:
    context.n += 1
    if context.step.attempt < 3:
        raise BrokenError("not yet")


def stop(context: Box) -> None:
    context.stop_process("enough")


def idle(context: Box) -> None:
    context.nothing_to_do()


def stop_and_fail(context: Box) -> None:
    context.stop_process("enough")
    raise BrokenError("and broken")


def yes(context: Box) -> str:
    return "yes"


def ask_for_b(context: Box) -> None:
    context.next_activity = "b"


def ask_for_nobody(context: Box) -> None:
    context.next_activity = "nobody"


def fresh(context: Box) -> Box:
    other = Box()
    other.n = context.n + 100
    return other


def number(context: Box) -> int:
    return 7


async def add_later(context: Box) -> None:
    context.n += 1


def go_right(context: Box) -> None:
    context.right += 1


def go_left(context: Box) -> None:
    context.left += 1


def fill(context: Box) -> None:
    context.items = (1, 2, 3)


def fill_with_bad(context: Box) -> None:
    context.items = (1, -2, 3, -4)


def to_square(context: Box) -> None:
    if context.item < 0:
        raise BrokenError(f"{context.item} is negative")
    context.square = context.item**2


def to_root(context: Box) -> None:
    if context.item < 0:
        raise BrokenError(f"{context.item} is negative")
    context.root = context.item


def negative_stops(context: Box) -> None:
    if context.item < 0:
        context.stop_process("negative")


def hopeless(context: Any, error: Exception) -> Decision | None:
    raise LookupError("the handler broke")


def again(context: Any, error: Exception) -> Decision | None:
    raise error


def retry_slowly(context: Any, error: Exception) -> Decision | None:
    time.sleep(0.25)
    return Retry()


def handler_stops(context: Any, error: Exception) -> Decision | None:
    context.stop_process("by the handler")
    return CONTINUE


NONE = Asking(lambda context, error: None)
FOREVER = Asking(lambda context, error: Retry())


def named(name: str, what: Callable[[Box], Any], **options: Any) -> BoundActivity[Box]:
    return activity(what, name=name, **options)


@dataclass(frozen=True)
class Case:
    """A process and what its run leaves; a row of the trail is `path`, with the outcome unless DONE, and attempts.

    `timed` says that time passes in it, which begins anew after a crash: it is not crashed. `refused` is the error with
    which a durable engine takes no such run, at submit: that is before anything is run.
    """

    name: str
    build: Callable[..., Processor[Any]]
    trail: str
    outcome: str = "COMPLETED"
    error: str = ""
    raised: bool = False
    fields: dict[str, Any] = field(default_factory=dict)
    seed: Any = None
    refused: str = ""
    timed: bool = False


def seq(*steps: Any, **options: Any) -> Callable[..., Processor[Any]]:
    return lambda **more: SequenceProcessor(steps, context=Box, **{"name": "main", **options, **more})


def inner(*steps: Any, name: str = "inner", **options: Any) -> Processor[Any]:
    return SequenceProcessor(steps, context=Box, name=name, **options)


def choice(routes: dict[str, Any], **steps: Any) -> Callable[..., Processor[Any]]:
    def build(**more: Any) -> Processor[Any]:
        on_error = steps.pop("on_error", None)
        return ExclusiveChoiceProcessor(routes, steps, context=Box, name="main", **{"on_error": on_error, **more})

    return build


def split(branches: dict[str, Any], **options: Any) -> Processor[Any]:
    return ParallelSplitProcessor(branches, context=Box, name="split", **options)


def each(body: Any, **options: Any) -> Processor[Any]:
    return ForEachProcessor("items", body, as_="item", context=Box, name="each", **options)
