"""Telling people that something went wrong."""

from __future__ import annotations

import logging

from iocflow import PASS, Decision, ErrorHandler
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
        logger.warning("to the team %s: %s", self.team, text)


class AlertOps(ErrorHandler):
    """Tells the operators, and leaves what becomes of the run to the next handler."""

    def __init__(self, to: Pager) -> None:
        """Take what reaches them."""
        self.to = to

    def handle_error(self, context: FareDropContext, error: Exception) -> Decision:
        """Page the team and pass."""
        self.to.page(f"the news of {context.seed_data.airline_name!r} did not reach everybody: {error}")
        return PASS
