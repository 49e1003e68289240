"""Asking several airlines at once, and going through what they answered: a parallel split, then a for-each."""

from __future__ import annotations

from samples.quotes.activities import AskAirline, Quote, QuotesContext, Rate, Trip, choose_cheapest, gather

__all__ = ["AskAirline", "Quote", "QuotesContext", "Rate", "Trip", "choose_cheapest", "gather"]
