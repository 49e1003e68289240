"""What starts a run of the notifier, and what its activities hand on to one another."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from iocflow import ProcessContext
from iocflow.activities import Delivery, Recipient

__all__ = ["FareDrop", "FareDropContext"]


@dataclass(frozen=True)
class FareDrop:
    """The seed: an airline flies a route for less than before.

    `rate_drop` is the difference, in the currency of the fares. `origin` and `destination` are airport codes.
    """

    airline_id: int
    airline_name: str
    route_id: int
    origin: str
    destination: str
    rate_drop: Decimal

    def __post_init__(self) -> None:
        """Refuse a fare that did not fall."""
        if self.rate_drop <= 0:
            raise ValueError(f"rate_drop must be more than 0, not {self.rate_drop}")


class FareDropContext(ProcessContext):
    """The state of one run.

    Attributes:
        seed_data: The fare that fell.
        recipients: Those who asked to hear of it (build-recipients).
        document: The news as XML (construct-document).
        subject: The subject of the mail (construct-document).
        text: The news as plain text, for readers that show no HTML (construct-document).
        message: The news as HTML (apply-xslt).
        audited_in: The database in which each recipient has an audit row (write-audit); empty before.
        deliveries: What became of each mail (send-message).
        stop_without_takers: Whether the run ends when nobody asked to hear of it, or goes on to another activity.
    """

    seed_data: FareDrop
    recipients: list[Recipient]
    document: str
    subject: str
    text: str
    message: str
    audited_in: str = ""
    deliveries: list[Delivery]
    stop_without_takers: bool = True
