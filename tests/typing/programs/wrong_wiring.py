"""Mistakes in wiring that a type checker finds; a line with `expect` is wrong, all others are right."""

from __future__ import annotations

import functools

from iocflow import (
    CONTINUE,
    Activity,
    ExclusiveChoiceProcessor,
    ForEachProcessor,
    ParallelSplitProcessor,
    ProcessContext,
    RunEvent,
    SequenceProcessor,
    StepInfo,
    activity,
)


class Order(ProcessContext):
    """The context of these programs."""

    number: int
    items: list[str]


class Invoice(ProcessContext):
    """Another one."""

    total: float


class Ship(Activity[Order]):
    """Works on orders."""

    def execute(self, context: Order) -> None:
        """Use a field."""
        print(context.number)


class Bill(Activity[Invoice]):
    """Works on invoices."""

    def execute(self, context: Invoice) -> None:
        """Use a field."""
        print(context.total)


class Anything(Activity[ProcessContext]):
    """Works on every context."""

    def execute(self, context: ProcessContext) -> None:
        """Use what all have."""
        context.stop_process("enough")


def ship(context: Order) -> None:
    """Work on orders."""


def bill(context: Invoice) -> None:
    """Work on invoices."""


def count(context: Order) -> int:
    """Return what no activity may."""
    return context.number


async def count_later(context: Order) -> int:
    """Return what no activity may, later."""
    return context.number


def scale(factor: float, context: Order) -> None:
    """Take a collaborator first."""


def observe(event: RunEvent) -> None:
    """Watch."""


def observe_number(event: int) -> None:
    """Watch something else."""


class Passing:
    """An interceptor."""

    def around_step(self, step: StepInfo, context: Order, proceed: object) -> None:
        """Have the wrong kind of `proceed`, which is wider, and return less: allowed."""


class NoInterceptor:
    """Has another method."""

    def around(self) -> None:
        """Wrap nothing."""


# An activity of another context.
SequenceProcessor([Ship(), Anything(), ship], context=Order)
SequenceProcessor([Bill()], context=Order)  # expect
SequenceProcessor([Ship(), Bill()], context=Order)  # expect
SequenceProcessor([bill], context=Order)  # expect
SequenceProcessor([ship, bill], context=Order)  # expect
SequenceProcessor([activity(Bill())], context=Order)  # expect
SequenceProcessor([activity(bill)], context=Order)  # expect
SequenceProcessor([SequenceProcessor([bill], context=Invoice)], context=Order)  # expect
SequenceProcessor([ship], context=Order, finally_=[bill])  # expect
ExclusiveChoiceProcessor({"a": "end"}, {"a": ship}, context=Order)
ExclusiveChoiceProcessor({"a": "end"}, {"a": bill}, context=Order)  # expect
ParallelSplitProcessor({"a": ship, "b": [ship, Ship()]}, context=Order)
ParallelSplitProcessor({"a": bill}, context=Order)  # expect
ParallelSplitProcessor({"a": [bill]}, context=Order)  # expect
ForEachProcessor("items", ship, as_="item", context=Order)
ForEachProcessor("items", [ship, Ship()], as_="item", context=Order)
ForEachProcessor("items", bill, as_="item", context=Order)  # expect

# What is no activity, or returns what none may.
SequenceProcessor([Ship], context=Order)  # expect
SequenceProcessor(["ship"], context=Order)  # expect
SequenceProcessor([None], context=Order)  # expect
SequenceProcessor([count], context=Order)  # expect
SequenceProcessor([count_later], context=Order)  # expect
SequenceProcessor([functools.partial(scale, 2.0)], context=Order)
SequenceProcessor([lambda context: context.stop_process()], context=Order)
SequenceProcessor(ship, context=Order)  # expect

# Options.
SequenceProcessor([ship], context=Order, name="ship", on_error=CONTINUE, max_steps=5, observers=[observe])
SequenceProcessor([ship])  # expect
SequenceProcessor([ship], context=Order, on_eror=CONTINUE)  # expect
SequenceProcessor([ship], context=Order, name=3)  # expect
SequenceProcessor([ship], context=Order, max_steps="many")  # expect
SequenceProcessor([ship], context=Order())  # expect
SequenceProcessor([ship], context=int)  # expect
SequenceProcessor([ship], context=Order, observers=[observe_number])  # expect
SequenceProcessor([ship], context=Order, interceptors=[Passing()])
SequenceProcessor([ship], context=Order, interceptors=[NoInterceptor()])  # expect
SequenceProcessor([ship], Order)  # expect
activity(ship, name="ship", time_limit=2, args={"a": 1})
activity(ship, time_limt=2)  # expect
activity(ship, time_limit="2s")  # expect
activity(ship, name=["ship"])  # expect
ExclusiveChoiceProcessor({"a": {"yes": "a", "else": "end"}}, {"a": ship}, context=Order)
ExclusiveChoiceProcessor({"a": 3}, {"a": ship}, context=Order)  # expect
ExclusiveChoiceProcessor({"a": "end"}, [ship], context=Order)  # expect
ParallelSplitProcessor({"a": ship}, join="all", context=Order)  # expect
ForEachProcessor("items", ship, context=Order)  # expect
ForEachProcessor("items", ship, as_="item", may_fail="10%", parallel=2, collect={"a": "b"}, context=Order)
ForEachProcessor("items", ship, as_="item", may_fail=0.1, context=Order)  # expect
ForEachProcessor("items", ship, as_="item", paralel=2, context=Order)  # expect
ForEachProcessor("items", ship, as_="item", collect=["a"], context=Order)  # expect
