"""Signals that no store could keep, or no run take: refused at their senders."""

from __future__ import annotations

from typing import Any

import pytest

from iocflow import ProcessContext
from iocflow.durable.contexts.codec import DEFAULT_LIMIT
from iocflow.durable.errors import SubmitError
from tests.integration.durable.house import House


class Deal(ProcessContext):
    """What was heard."""

    seed_data: None
    heard: str = ""


def hear(context: Deal) -> None:
    context.heard = context.step.wait_for("approved")


@pytest.mark.parametrize("name", ["", "a\0b", "a\ud800", "n" * 256], ids=["empty", "NUL", "surrogate", "long"])
def test_a_name_that_no_store_keeps_is_refused(house: House, name: str) -> None:
    """A signal by such a name is refused at its sender, and nothing is stored."""
    house.sequence(hear, context=Deal)
    run = house.submit()
    with pytest.raises(SubmitError, match=r"the signal's name is .*no name of a signal"):
        house.client.signal(run, name, 1)
    assert house.kinds(run) == ["submitted"]


@pytest.mark.parametrize("data", ["x" * DEFAULT_LIMIT, "ä" * (DEFAULT_LIMIT // 2), {"half": "\ud800"}, float("nan")])
def test_data_that_no_context_holds_is_refused(house: House, data: Any) -> None:
    """A signal is refused at its sender where its data could never be stored with the run that takes it."""
    house.sequence(hear, context=Deal)
    run = house.submit()
    with pytest.raises(SubmitError, match=r"signal 'approved' (has 16,777,218 bytes|cannot be written)"):
        house.client.signal(run, "approved", data)
    assert house.kinds(run) == ["submitted"]


def test_the_most_that_a_signal_brings(house: House) -> None:
    """Data at the limit is taken, stored and given to the activity that waits; names with any sign are found."""
    name = "ß" * 255

    def measure(context: Deal) -> None:
        context.heard = str(len(context.step.wait_for(name)))

    house.sequence(measure, context=Deal)
    run = house.submit()
    assert house.client.signal(run, name, "x" * (DEFAULT_LIMIT - 2))
    house.work()
    assert house.context(run).heard == str(DEFAULT_LIMIT - 2)
