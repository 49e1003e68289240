"""The activities: one asks an airline, one rates a quote, one chooses."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from decimal import Decimal

from iocflow import Activity, ProcessContext

__all__ = ["AskAirline", "Quote", "QuotesContext", "Rate", "Trip", "choose_cheapest", "gather"]


@dataclass(frozen=True)
class Trip:
    """The seed: where somebody wants to go."""

    origin: str
    destination: str


@dataclass(frozen=True)
class Quote:
    """What an airline asks for, and how long the trip takes."""

    airline: str
    fare: Decimal
    hours: Decimal


class QuotesContext(ProcessContext):
    """The state of one run.

    Each branch of the split sets a field of its own, so that joining them needs no decision.
    """

    seed_data: Trip
    x_jet: Quote
    nordwind: Quote
    quotes: list[Quote]
    quote: Quote
    cost: Decimal
    costs: list[Decimal]
    text: str


class AskAirline(Activity[QuotesContext]):
    """Asks one airline; it answers after a while. `async`, so that a time limit cancels it."""

    def __init__(self, airline: str, field: str, fare: Decimal, hours: Decimal, answers_after: float = 0.0) -> None:
        """Take what the airline will say, the field that gets it, and the seconds it takes to answer."""
        self.quote = Quote(airline, fare, hours)
        self.field = field
        self.answers_after = answers_after

    async def execute(self, context: QuotesContext) -> None:
        """Set the field to the airline's quote."""
        await asyncio.sleep(self.answers_after)
        setattr(context, self.field, self.quote)


def gather(context: QuotesContext) -> None:
    """List the quotes of those who answered in time; without any, the run is over."""
    context.quotes = [getattr(context, name) for name in ("x_jet", "nordwind") if hasattr(context, name)]
    if not context.quotes:
        context.stop_process("no airline answered in time")


class Rate(Activity[QuotesContext]):
    """Turns one quote into what the trip really costs, the traveller's time counted in."""

    def __init__(self, hour: Decimal) -> None:
        """Take the price of an hour."""
        self.hour = hour

    def execute(self, context: QuotesContext) -> None:
        """Set `cost` for `quote`, the item of the for-each."""
        context.cost = context.quote.fare + context.quote.hours * self.hour


def choose_cheapest(context: QuotesContext) -> None:
    """Say which trip costs least, all counted."""
    cost, quote = min(zip(context.costs, context.quotes, strict=True), key=lambda pair: pair[0])
    trip = context.seed_data
    print(f"{trip.origin} to {trip.destination}: {quote.airline} for {quote.fare}, {cost:.2f} with the hours")
