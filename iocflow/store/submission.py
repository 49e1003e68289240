"""What a run is made of when it is submitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

__all__ = ["AGEING", "Accepted", "Submission"]

AGEING = 60.0
"""Seconds of waiting that are worth one level of priority."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A run to be.

    Attributes:
        processor: The processor's id.
        body: The seed.
        digest: Tells two bodies, processors and groups of one identity apart.
        submitter: Who sends it.
        number: The submitter's own number, unique for the life of the record.
        group: Runs of one group go one at a time, in order of submission; None is a group of its own.
        priority: 0 to 9, 9 first.
        not_before: It does not start earlier, and does not hold up its group till then.
        deadline: It is timed out then, wherever it stands.
        start_by: It fails as expired when it was not started by then.
    """

    processor: str
    body: bytes
    digest: str
    submitter: str
    number: str
    group: str | None = None
    priority: int = 0
    not_before: float | None = None
    deadline: float | None = None
    start_by: float | None = None


class Accepted(NamedTuple):
    """The answer to one submission: the run's id, and whether it was made now, was there, or is another's."""

    id: int
    what: Literal["new", "known", "conflict"]
