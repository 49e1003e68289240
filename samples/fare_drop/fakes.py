"""A collaborator that pretends, for tests and for trying things out without a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from iocflow.activities import Delivery, DeliveryOutcome, Letter, Remaining

__all__ = ["FakeSender"]


class FakeSender:
    """Takes letters as a mail server would, and keeps them.

    Attributes:
        sent: The letters that it was handed and did not refuse.
    """

    def __init__(self, failures: int = 0, outcomes: Mapping[str, DeliveryOutcome] | None = None) -> None:
        """Begin with an empty list.

        Args:
            failures: So many times it is unreachable before it works.
            outcomes: What becomes of the letters to certain addresses, instead of being sent.
        """
        self.failures = failures
        self.outcomes = dict(outcomes or {})
        self.sent: list[Letter] = []

    def send(self, letters: Sequence[Letter], *, remaining: Remaining) -> Iterator[Delivery]:  # noqa: ARG002
        """Take the letters, one after the other."""
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the fake mail server does not answer")
        for letter in letters:
            outcome = self.outcomes.get(letter.address, DeliveryOutcome.SENT)
            if outcome is DeliveryOutcome.SENT:
                self.sent.append(letter)
            yield Delivery(letter.address, outcome, "" if outcome is DeliveryOutcome.SENT else "says the fake")
