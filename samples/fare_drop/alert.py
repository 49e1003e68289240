"""Telling people that something went wrong."""

from __future__ import annotations

import logging

from iocflow import PASS, Decision, ErrorHandler
from iocflow.activities import DeliveryOutcome
from samples.fare_drop.context import FareDropContext

__all__ = ["AlertOps", "Pager"]

logger = logging.getLogger(__name__)


class Pager:
    """Calls a team; this one writes the call into the log, where yours would ring somebody up."""

    def __init__(self, team: str) -> None:
        """Take the name of the team."""
        self.team = team

    def page(self, text: str) -> None:
        """Call the team."""
        logger.warning("paging the team %s: %s", self.team, text)


class AlertOps(ErrorHandler):
    """Tells the operators, and leaves what becomes of the run to the next handler."""

    def __init__(self, to: Pager) -> None:
        """Take what reaches them."""
        self.to = to

    def handle_error(self, context: FareDropContext, error: Exception) -> Decision:
        """Page the team and pass."""
        drop, sent = context.seed_data, [each for each in context.deliveries if each.outcome is DeliveryOutcome.SENT]
        told = f"{len(sent)} of {len(context.recipients)} were notified"
        self.to.page(f"{told} of the fare of {drop.airline_name} from {drop.origin} to {drop.destination}: {error}")
        return PASS
